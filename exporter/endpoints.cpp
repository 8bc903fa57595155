#include "exporter/endpoints.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "exporter/exposition.h"
#include "exporter/gzip.h"
#include "exporter/health.h"
#include "exporter/log.h"
#include "exporter/selection.h"
#include "exporter/text.h"
#include "triage/report.h"

namespace apu {
namespace {

constexpr std::string_view kMetricsType = "text/plain; version=0.0.4; charset=utf-8";
constexpr std::chrono::milliseconds kRefreshWait{20};

HttpResponse plain(int status, std::string text) {
  return {status, "text/plain; charset=utf-8", {}, std::move(text)};
}

/// Counts a scrape while it lives.
class InFlight {
 public:
  explicit InFlight(std::atomic<unsigned>& count) : count_(count), number_(++count) {}

  ~InFlight() { --count_; }

  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;

  [[nodiscard]] unsigned number() const { return number_; }

 private:
  std::atomic<unsigned>& count_;
  unsigned number_;
};

std::vector<std::string> names_of(const std::vector<CollectorView>& views) {
  std::vector<std::string> names;
  names.reserve(views.size());
  for (const CollectorView& view : views) {
    names.emplace_back(view.name);
  }
  return names;
}

std::string health_text(const CollectorView& view) {
  if (view.status.overdue) {
    return "overdue";
  }
  if (view.status.passes() == 0) {
    return "starting";
  }
  return view.status.last_pass_ok ? "ok" : "failed";
}

std::string age_text(const CollectorView& view) {
  return view.age ? fmt::format("{:.1f} s", std::chrono::duration<double>(*view.age).count())
                  : "none yet";
}

std::string collector_rows(const std::vector<CollectorView>& views) {
  std::string rows;
  for (const CollectorView& view : views) {
    rows += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td></tr>\n", escape_html(view.name),
                        health_text(view), age_text(view));
  }
  return rows;
}

}  // namespace

Endpoints::Endpoints(EndpointOptions options, std::shared_ptr<Runner> runner,
                     std::shared_ptr<const SourceBoard> sources)
    : options_(std::move(options)), runner_(std::move(runner)), sources_(std::move(sources)) {}

HttpResponse Endpoints::handle(const HttpRequest& request) {
  const bool known = request.path == options_.telemetry_path || request.path == "/" ||
                     request.path == "/triage" || request.path == "/-/healthy" ||
                     request.path == "/-/ready";
  if (!known) {
    return plain(404, "Not found\n");
  }
  if (request.method != "GET" && request.method != "HEAD") {
    HttpResponse response = plain(405, "Method not allowed\n");
    response.headers.emplace_back("Allow", "GET, HEAD");
    return response;
  }
  if (request.path == options_.telemetry_path) {
    return metrics(request);
  }
  if (request.path == "/triage") {
    return triage(request);
  }
  if (request.path == "/-/healthy") {
    return plain(200, "Healthy\n");
  }
  return request.path == "/-/ready" ? readiness() : landing_page();
}

std::string Endpoints::exposition() const {
  return render(runner_->view());
}

HttpResponse Endpoints::metrics(const HttpRequest& request) {
  const InFlight scrape(scrapes_in_flight_);
  if (options_.max_requests != 0 && scrape.number() > options_.max_requests) {
    return plain(503, fmt::format("Limit of concurrent requests reached ({}), try again later.\n",
                                  options_.max_requests));
  }
  return selected_metrics(request);
}

HttpResponse Endpoints::selected_metrics(const HttpRequest& request) {
  const auto selection =
      Selection::from_query(request.query, names_of(runner_->view()), options_.known_collectors);
  if (!selection) {
    return plain(400, "Bad request: " + to_valid_utf8(selection.error().message) + "\n");
  }
  runner_->refresh(kRefreshWait);
  std::vector<CollectorView> views = runner_->view();
  std::erase_if(views, [&](const CollectorView& view) { return !selection->includes(view.name); });
  HttpResponse response{200, std::string(kMetricsType), {}, render(views)};
  response.headers.emplace_back("Vary", "Accept-Encoding");
  if (request.accepts_gzip) {
    if (std::string packed = gzip(response.body); !packed.empty()) {
      response.body = std::move(packed);
      response.headers.emplace_back("Content-Encoding", "gzip");
    }
  }
  return response;
}

std::string Endpoints::render(const std::vector<CollectorView>& views) const {
  const Families build = build_families();
  const Families health = collector_families(views);
  const Families sources = sources_->families();
  std::vector<const Families*> parts{&build, &health, &sources};
  for (const CollectorView& view : views) {
    if (view.snapshot && !view.stale) {
      parts.push_back(&view.snapshot->families);
    }
  }
  const MergedFamilies merged = merge_families(parts);
  log_conflicts(merged.conflicts);
  return to_text(merged.families);
}

void Endpoints::log_conflicts(const std::vector<std::string>& conflicts) const {
  constexpr size_t kMostLogged = 20;
  const std::lock_guard lock(logged_mutex_);
  for (const std::string& conflict : conflicts) {
    if (logged_conflicts_.size() < kMostLogged && logged_conflicts_.insert(conflict).second) {
      log::error("Left out of the exposition", {{"err", conflict}});
    }
  }
}

HttpResponse Endpoints::readiness() const {
  return runner_->ready() ? plain(200, "Ready\n")
                          : plain(503, "Not ready: a collector has not finished its first pass\n");
}

HttpResponse Endpoints::triage(const HttpRequest& request) const {
  std::string format = "text";
  for (const auto& [name, value] : request.query) {
    if (name == "format") {
      format = value;
    }
  }
  if (format != "text" && format != "json") {
    return plain(400, "Bad request: format is text or json\n");
  }
  const TriageReport report = make_triage(*runner_->store(), options_.clock->now());
  return format == "json" ? HttpResponse{200, "application/json", {}, to_triage_json(report)}
                          : plain(200, to_triage_text(report));
}

HttpResponse Endpoints::landing_page() const {
  constexpr std::string_view kPage = R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>apu_exporter</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>:root{{color-scheme:light dark}}body{{font:16px/1.5 sans-serif;margin:2em auto;max-width:40em;padding:0 1em}}
td,th{{text-align:left;padding-right:2em}}</style></head><body>
<h1>apu_exporter</h1>
<p>Version {}, revision {}</p>
<ul><li><a href="{}">Metrics</a></li><li><a href="/triage">Triage</a></li><li><a href="/-/healthy">Healthy</a></li>
<li><a href="/-/ready">Ready</a></li></ul>
<table><tr><th>Collector</th><th>State</th><th>Age</th></tr>
{}</table></body></html>
)";
  return {200,
          "text/html; charset=utf-8",
          {},
          fmt::format(kPage, escape_html(version()), escape_html(revision()),
                      escape_html(options_.telemetry_path), collector_rows(runner_->view()))};
}

}  // namespace apu
