#include "exporter/endpoints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <thread>
#include <vector>

#include "exporter/selection.h"
#include "tests/support/fake_collectors.h"
#include "tests/support/gunzip.h"
#include "tests/support/wait.h"

namespace apu {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;
using testing::StartsWith;

HttpRequest get(std::string path, Selection::Query query = {}) {
  return {"GET", std::move(path), std::move(query), false};
}

class EndpointsTest : public testing::Test {
 protected:
  /// Endpoints of collectors that have all ended a pass or are overdue.
  Endpoints& serve(const std::vector<CollectorSpec>& specs, EndpointOptions options = {}) {
    std::vector<EnabledCollector> enabled;
    for (const CollectorSpec& spec : specs) {
      enabled.push_back({spec, spec.period});
    }
    runner_ = std::make_shared<Runner>(enabled, fake_runner_context());
    endpoints_ = std::make_unique<Endpoints>(std::move(options), runner_, sources_);
    runner_->start();
    return *endpoints_;
  }

  Endpoints& serve_one(EndpointOptions options = {}) {
    Endpoints& endpoints = serve({fake_spec("fake", counting_.function())}, std::move(options));
    EXPECT_TRUE(runner_->wait_ready(kLongWait));
    return endpoints;
  }

  CountingCollector counting_;
  std::shared_ptr<SourceBoard> sources_ = std::make_shared<SourceBoard>();
  std::shared_ptr<Runner> runner_;
  std::unique_ptr<Endpoints> endpoints_;
};

TEST_F(EndpointsTest, ServeTheMetrics) {
  sources_->set_available("fake", "procfs");
  const HttpResponse response = serve_one().handle(get("/metrics"));
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.content_type, "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_THAT(response.headers, Contains(Pair("Vary", "Accept-Encoding")));
  EXPECT_THAT(response.headers, Not(Contains(Pair("Content-Encoding", testing::_))));
  EXPECT_THAT(response.body,
              AllOf(HasSubstr("apu_fake_value 1\n"), HasSubstr("apu_exporter_build_info{"),
                    HasSubstr("apu_collector_success{collector=\"fake\"} 1\n"),
                    HasSubstr("apu_source_available{source=\"procfs\"} 1\n")));
}

TEST_F(EndpointsTest, PrintTheSameForOnceAsForAScrape) {
  EXPECT_THAT(serve_one().exposition(),
              AllOf(HasSubstr("apu_fake_value 1\n"), HasSubstr("apu_collector_success")));
}

TEST_F(EndpointsTest, ServeTheMetricsElsewhereIfToldTo) {
  EndpointOptions options;
  options.telemetry_path = "/m";
  Endpoints& endpoints = serve_one(options);
  EXPECT_EQ(endpoints.handle(get("/m")).status, 200);
  EXPECT_EQ(endpoints.handle(get("/metrics")).status, 404);
}

TEST_F(EndpointsTest, MayServeTheMetricsAtTheRoot) {
  EndpointOptions options;
  options.telemetry_path = "/";
  EXPECT_THAT(serve_one(options).handle(get("/")).body, HasSubstr("apu_fake_value"));
}

TEST_F(EndpointsTest, AnswerWhileACollectorIsStuckInItsFirstPass) {
  BlockingCollector blocking;
  CollectorSpec stuck = fake_spec("stuck", blocking.function());
  stuck.on_scrape = OnScrape::kRefresh;
  stuck.deadline = milliseconds(1);
  Endpoints& endpoints = serve({stuck, fake_spec("fake", counting_.function())});
  ASSERT_TRUE(runner_->wait_ready(kLongWait));
  const HttpResponse response = endpoints.handle(get("/metrics"));
  EXPECT_THAT(response.body,
              AllOf(HasSubstr("apu_fake_value 1\n"),
                    HasSubstr("apu_collector_overdue{collector=\"stuck\"} 1\n"),
                    HasSubstr("apu_collector_success{collector=\"stuck\"} 0\n"),
                    Not(HasSubstr("apu_collector_age_seconds{collector=\"stuck\"}"))));
}

TEST_F(EndpointsTest, GzipOnRequest) {
  HttpRequest request = get("/metrics");
  request.accepts_gzip = true;
  const HttpResponse response = serve_one().handle(request);
  EXPECT_THAT(response.headers, Contains(Pair("Content-Encoding", "gzip")));
  EXPECT_THAT(response.headers, Contains(Pair("Vary", "Accept-Encoding")));
  EXPECT_THAT(gunzip(response.body), HasSubstr("apu_fake_value 1\n"));
}

TEST_F(EndpointsTest, SelectCollectors) {
  Endpoints& endpoints = serve(
      {fake_spec("fake", counting_.function()), fake_spec("other", failing_collector("gone"))});
  ASSERT_TRUE(runner_->wait_ready(kLongWait));
  EXPECT_THAT(endpoints.handle(get("/metrics", {{"collect[]", "other"}})).body,
              AllOf(Not(HasSubstr("apu_fake_value")), Not(HasSubstr("collector=\"fake\"")),
                    HasSubstr("collector=\"other\"")));
  EXPECT_THAT(endpoints.handle(get("/metrics", {{"exclude[]", "other"}})).body,
              AllOf(HasSubstr("apu_fake_value"), Not(HasSubstr("collector=\"other\""))));
}

TEST_F(EndpointsTest, RefuseAWrongSelection) {
  EndpointOptions options;
  options.known_collectors = {"fake", "probes"};
  Endpoints& endpoints = serve_one(options);
  const HttpResponse unknown = endpoints.handle(get("/metrics", {{"collect[]", "bogus"}}));
  EXPECT_EQ(unknown.status, 400);
  EXPECT_EQ(unknown.body, "Bad request: missing collector: bogus\n");
  EXPECT_EQ(endpoints.handle(get("/metrics", {{"collect[]", "probes"}})).body,
            "Bad request: disabled collector: probes\n");
  const Selection::Query both{{"collect[]", "fake"}, {"exclude[]", "fake"}};
  EXPECT_EQ(endpoints.handle(get("/metrics", both)).status, 400);
}

TEST_F(EndpointsTest, ServeTheTriage) {
  Endpoints& endpoints = serve_one();
  EXPECT_THAT(endpoints.handle(get("/triage")).body, StartsWith("UNKNOWN"));
  const HttpResponse json = endpoints.handle(get("/triage", {{"format", "json"}}));
  EXPECT_EQ(json.content_type, "application/json");
  EXPECT_THAT(json.body, HasSubstr("\"has_verdict\": false"));
  EXPECT_EQ(endpoints.handle(get("/triage", {{"format", "xml"}})).status, 400);
}

TEST_F(EndpointsTest, DoNotFindOtherPaths) {
  Endpoints& endpoints = serve_one();
  for (const char* path : {"/metrics/", "/nothing", "", "/-/", "/-/healthy/"}) {
    EXPECT_EQ(endpoints.handle(get(path)).status, 404) << path;
  }
}

TEST_F(EndpointsTest, AllowGetAndHeadOnly) {
  Endpoints& endpoints = serve_one();
  for (const char* path : {"/", "/metrics", "/-/healthy", "/-/ready"}) {
    for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS"}) {
      const HttpResponse response = endpoints.handle({method, path, {}, false});
      EXPECT_EQ(response.status, 405) << method << " " << path;
      EXPECT_THAT(response.headers, Contains(Pair("Allow", "GET, HEAD")));
    }
    EXPECT_EQ(endpoints.handle({"HEAD", path, {}, false}).status, 200) << path;
  }
}

TEST_F(EndpointsTest, AreHealthyEvenIfACollectorIsStuck) {
  const BlockingCollector blocking;
  Endpoints& endpoints = serve({fake_spec("stuck", blocking.function())});
  EXPECT_EQ(endpoints.handle(get("/-/healthy")).status, 200);
}

TEST_F(EndpointsTest, AreReadyAfterTheFirstPasses) {
  BlockingCollector blocking;
  Endpoints& endpoints = serve({fake_spec("slow", blocking.function())});
  EXPECT_EQ(endpoints.handle(get("/-/ready")).status, 503);
  blocking.release();
  ASSERT_TRUE(runner_->wait_ready(kLongWait));
  EXPECT_EQ(endpoints.handle(get("/-/ready")).status, 200);
}

TEST_F(EndpointsTest, ShowCollectorsOnTheLandingPage) {
  const BlockingCollector blocking;
  const BlockingCollector overdue;
  CollectorSpec late = fake_spec("late", overdue.function());
  late.deadline = milliseconds(1);
  Endpoints& endpoints =
      serve({fake_spec("fake", counting_.function()), fake_spec("bad", failing_collector("gone")),
             fake_spec("slow", blocking.function()), late});
  ASSERT_TRUE(eventually([&] {
    const std::vector<CollectorView> views = runner_->view();
    return views[0].snapshot && views[1].status.passes() > 0 && views[3].status.overdue;
  }));
  const HttpResponse response = endpoints.handle(get("/"));
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.content_type, "text/html; charset=utf-8");
  EXPECT_THAT(response.body, StartsWith("<!DOCTYPE html>"));
  EXPECT_THAT(response.body,
              AllOf(HasSubstr("<a href=\"/metrics\">"), HasSubstr("<td>fake</td><td>ok</td>"),
                    HasSubstr("<td>bad</td><td>failed</td><td>none yet</td>"),
                    HasSubstr("<td>slow</td><td>starting</td>"),
                    HasSubstr("<td>late</td><td>overdue</td>")));
}

TEST_F(EndpointsTest, EscapeWhatTheLandingPageShows) {
  EndpointOptions options;
  options.telemetry_path = "/\"><script>";
  Endpoints& endpoints = serve({fake_spec("<b>&", counting_.function())}, options);
  const std::string body = endpoints.handle(get("/")).body;
  EXPECT_THAT(body, AllOf(HasSubstr("href=\"/&quot;&gt;&lt;script&gt;\""),
                          HasSubstr("<td>&lt;b&gt;&amp;</td>"), Not(HasSubstr("<script>"))));
}

/// Requests /metrics from four threads at a time until `enough(refused)`; returns the refusals.
template <typename Enough>
std::vector<HttpResponse> refusals_of_four_scrapers(Endpoints& endpoints, Enough enough) {
  std::mutex mutex;
  std::vector<HttpResponse> refused;
  const auto deadline = std::chrono::steady_clock::now() + kLongWait;
  const auto scrape = [&] {
    bool done = false;
    while (!done && std::chrono::steady_clock::now() < deadline) {
      const HttpResponse response = endpoints.handle(get("/metrics"));
      const std::lock_guard lock(mutex);
      if (response.status != 200) {
        refused.push_back(response);
      }
      done = enough(refused);
    }
  };
  std::vector<std::thread> scrapers;
  for (int i = 0; i < 4; ++i) {
    scrapers.emplace_back(scrape);
  }
  for (std::thread& scraper : scrapers) {
    scraper.join();
  }
  return refused;
}

/// A collector that holds each scrape for as long as a scrape waits.
CollectorSpec holding(const BlockingCollector& blocking) {
  CollectorSpec spec = fake_spec("stuck", blocking.function());
  spec.on_scrape = OnScrape::kRefresh;
  return spec;
}

TEST_F(EndpointsTest, RefuseMoreScrapesAtATimeThanTheLimit) {
  const BlockingCollector blocking;
  EndpointOptions options;
  options.max_requests = 1;
  Endpoints& endpoints = serve({holding(blocking)}, options);
  ASSERT_TRUE(blocking.wait_begun());
  const auto refused =
      refusals_of_four_scrapers(endpoints, [](const auto& refusals) { return !refusals.empty(); });
  ASSERT_FALSE(refused.empty());
  EXPECT_EQ(refused[0].status, 503);
  EXPECT_THAT(refused[0].body, HasSubstr("(1)")) << "it says which limit";
  EXPECT_EQ(endpoints.handle(get("/metrics")).status, 200) << "those before are counted off";
}

TEST_F(EndpointsTest, TakeAnyNumberOfScrapesWithoutALimit) {
  const BlockingCollector blocking;
  EndpointOptions options;
  options.max_requests = 0;
  Endpoints& endpoints = serve({holding(blocking)}, options);
  ASSERT_TRUE(blocking.wait_begun());
  EXPECT_THAT(refusals_of_four_scrapers(endpoints, [](const auto&) { return true; }), IsEmpty());
}

}  // namespace
}  // namespace apu
