#include "exporter/health.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exporter/exposition.h"

namespace apu {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

TEST(CollectorFamilies, ArePresentBeforeTheFirstPassButForAgeAndDuration) {
  CollectorView view;
  view.name = "swap";
  const std::string page = to_text(collector_families({view}));
  EXPECT_THAT(
      page,
      AllOf(HasSubstr("apu_collector_success{collector=\"swap\"} 0\n"),
            HasSubstr("apu_collector_overdue{collector=\"swap\"} 0\n"),
            HasSubstr("apu_collector_passes_total{collector=\"swap\",outcome=\"ok\"} 0\n"),
            HasSubstr("apu_collector_passes_total{collector=\"swap\",outcome=\"failed\"} 0\n"),
            Not(HasSubstr("apu_collector_age_seconds")),
            Not(HasSubstr("apu_collector_duration_seconds"))));
}

TEST(CollectorFamilies, SayHowThePassesGo) {
  CollectorView view;
  view.name = "swap";
  view.status.passes_ok = 7;
  view.status.passes_failed = 2;
  view.status.last_pass_ok = true;
  view.status.last_duration = milliseconds(250);
  view.status.overdue = true;
  view.age = milliseconds(1500);
  const std::string page = to_text(collector_families({view}));
  EXPECT_THAT(page, AllOf(HasSubstr("apu_collector_success{collector=\"swap\"} 1\n"),
                          HasSubstr("apu_collector_overdue{collector=\"swap\"} 1\n"),
                          HasSubstr("apu_collector_age_seconds{collector=\"swap\"} 1.5\n"),
                          HasSubstr("apu_collector_duration_seconds{collector=\"swap\"} 0.25\n"),
                          HasSubstr("{collector=\"swap\",outcome=\"ok\"} 7\n"),
                          HasSubstr("{collector=\"swap\",outcome=\"failed\"} 2\n")));
}

TEST(CollectorFamilies, HoldEveryCollector) {
  CollectorView memory;
  memory.name = "memory";
  CollectorView swap;
  swap.name = "swap";
  EXPECT_THAT(to_text(collector_families({memory, swap})),
              AllOf(HasSubstr("apu_collector_success{collector=\"memory\"}"),
                    HasSubstr("apu_collector_success{collector=\"swap\"}")));
}

TEST(BuildFamilies, SayWhatTheExporterWasBuiltFrom) {
  EXPECT_THAT(
      to_text(build_families()),
      HasSubstr("apu_exporter_build_info{version=\"" + std::string(version()) + "\",revision=\"" +
                std::string(revision()) + "\",compiler=\"" + std::string(compiler()) + "\"} 1\n"));
}

TEST(BuildInfo, IsFilledIn) {
  EXPECT_THAT(std::string(version()), MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+"));
  EXPECT_FALSE(revision().empty());
  EXPECT_FALSE(compiler().empty());
}

}  // namespace
}  // namespace apu
