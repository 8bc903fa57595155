#include "collectors/kernel_log/hog.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "collectors/kernel_log/state.h"
#include "tests/support/collector_files.h"
#include "tests/support/collector_log.h"

namespace apu {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

using Kind = ParsedHog::Kind;

const TimePoint kStart = from_unix_seconds(1783000000);
const HogRule kRule{4};
const HogRule kOldRule{std::nullopt};

HogReport report_of(const std::string& message) {
  const auto parsed = parse_hog_report(message);
  EXPECT_EQ(parsed.kind, Kind::kReport) << message;
  return parsed.report;
}

// --- parse

TEST(ParseHogReport, ReadsFunctionModuleThresholdAndCount) {
  const auto report = report_of(
      "workqueue: amdgpu_amdkfd_restore_userptr_worker [amdgpu] hogged CPU for >10000us 16387 "
      "times, consider switching to WQ_UNBOUND");
  EXPECT_EQ(report.function, "amdgpu_amdkfd_restore_userptr_worker");
  EXPECT_EQ(report.module, "amdgpu");
  EXPECT_EQ(report.threshold_us, 10000U);
  EXPECT_EQ(report.count, 16387U);
}

TEST(ParseHogReport, FunctionThatIsBuiltInHasNoModule) {
  EXPECT_EQ(report_of("workqueue: delayed_fput hogged CPU for >10000us 5 times").module, "");
}

TEST(ParseHogReport, ModulesAreKeptApart) {
  EXPECT_EQ(
      report_of("workqueue: svm_range_restore_work [amdkcl] hogged CPU for >1us 4 times").module,
      "amdkcl");
}

TEST(ParseHogReport, TailMayBeMissing) {
  for (const char* tail : {" times", " times, consider swi", " times\r", " timesX"}) {
    EXPECT_EQ(report_of(std::string("workqueue: f hogged CPU for >10000us 67") + tail).count, 67U);
  }
}

TEST(ParseHogReport, CompilersSuffixIsCutOff) {
  for (const char* suffix : {".cold", ".isra.0", ".llvm.123", ".constprop.0.cold"}) {
    EXPECT_EQ(report_of(std::string("workqueue: f") + suffix + " [m] hogged CPU for >1us 4 times")
                  .function,
              "f");
  }
}

TEST(ParseHogReport, AddressIsNoLabel) {
  for (const char* address : {"0xffffffffc0a1b2c3", "(____ptrval____)", "7f00", "a\xff", "."}) {
    EXPECT_EQ(
        report_of(std::string("workqueue: ") + address + " hogged CPU for >1us 4 times").function,
        "unknown")
        << address;
  }
}

TEST(ParseHogReport, ReportWithoutItsCountIsMalformed) {
  for (const char* tail : {"", "10000us", "10000us>", "10000us 16387", "10000us 16387 tim",
                           "10000us x times", "10000us -5 times", "10000us  times", "us 5 times",
                           "10000ms 5 times", "10000us 18446744073709551616 times"}) {
    EXPECT_EQ(parse_hog_report(std::string("workqueue: f [m] hogged CPU for >") + tail).kind,
              Kind::kMalformed)
        << tail;
  }
}

TEST(ParseHogReport, ReadsTheLargestCount) {
  EXPECT_EQ(report_of("workqueue: f hogged CPU for >1us 18446744073709551615 times").count,
            std::numeric_limits<std::uint64_t>::max());
}

TEST(ParseHogReport, IsAnchoredAtTheStartOfTheMessage) {
  for (const char* message :
       {"", "workqueue:", "workqueue: ", "hogged CPU for >10000us 5 times",
        "foo: not a workqueue: f [amdgpu] hogged CPU for >10000us 99999 times",
        " workqueue: f hogged CPU for >10000us 5 times",
        "Workqueue: f hogged CPU for >10000us 5 times",
        "workqueue: f of g hogged CPU for >10000us 5 times",
        "workqueue: f [m hogged CPU for >10000us 5 times",
        "workqueue: f [m] x hogged CPU for >10000us 5 times",
        "workqueue: amdg[4711]: segfault at 0 ip 0000000000401136",
        "workqueue: WQ_MEM_RECLAIM kfd_restore_wq is flushing !WQ_MEM_RECLAIM events"}) {
    EXPECT_EQ(parse_hog_report(message).kind, Kind::kNone) << message;
  }
}

// --- rule

/// Checks that the kernel prints at `counts`, each of `doublings` from `first` on.
void expect_printed_at(const HogRule& rule, const std::vector<std::uint64_t>& counts,
                       unsigned first_doublings) {
  for (size_t i = 0; i + 1 < counts.size(); ++i) {
    const std::uint64_t next = counts[i + 1];
    EXPECT_EQ(rule.snap(counts[i]), counts[i]);
    EXPECT_EQ(rule.snap(next - 1), counts[i]);
    EXPECT_EQ(rule.next(counts[i]), next);
    EXPECT_EQ(rule.doublings(counts[i]), first_doublings + i);
  }
}

TEST(HogRuleTest, DefaultThresholdPrintsAtThreePlusPowersOfTwo) {
  expect_printed_at(kRule, {4,    5,    7,    11,   19,    35,    67,    131,    259,    515,
                            1027, 2051, 4099, 8195, 16387, 32771, 65539, 131075, 262147, 524291},
                    0);
}

TEST(HogRuleTest, OtherThresholdsMoveTheSequence) {
  expect_printed_at(HogRule{1}, {1, 2, 4, 8, 16, 32}, 0);
  expect_printed_at(HogRule{10}, {10, 11, 13, 17, 25, 41, 73}, 0);
  expect_printed_at(HogRule{1000}, {1000, 1001, 1003, 1007}, 0);
}

TEST(HogRuleTest, OldRulePrintsAtPowersOfTwoFromFourOn) {
  expect_printed_at(kOldRule, {4, 8, 16, 32, 64, 128, 256, 512}, 2);
}

TEST(HogRuleTest, BelowTheFirstReportTheCountIsBelowTheThreshold) {
  EXPECT_EQ(kRule.next(0), 4U);
  EXPECT_EQ(HogRule{10}.next(3), 10U);
  EXPECT_EQ(kOldRule.next(0), 4U);
  EXPECT_EQ(kRule.doublings(0), 0U);
  EXPECT_EQ(kRule.snap(0), 0U);
}

TEST(GuessHogRule, CountsDecide) {
  EXPECT_EQ(guess_hog_rule({4, 5, 7, 11}).warning_threshold, 4U);
  EXPECT_EQ(guess_hog_rule({16387}).warning_threshold, 4U);
  EXPECT_EQ(guess_hog_rule({4, 8, 16, 32}).warning_threshold, std::nullopt);
  EXPECT_EQ(guess_hog_rule({16384}).warning_threshold, std::nullopt);
}

TEST(GuessHogRule, CountThatGrewUntilItWasPrintedIsNearest) {
  EXPECT_EQ(guess_hog_rule({16388, 32771}).warning_threshold, 4U);
  EXPECT_EQ(guess_hog_rule({16385, 32768}).warning_threshold, std::nullopt);
}

TEST(GuessHogRule, FourFitsBoth) {
  EXPECT_EQ(guess_hog_rule({}).warning_threshold, 4U);
  EXPECT_EQ(guess_hog_rule({4, 4}).warning_threshold, 4U);
  EXPECT_EQ(guess_hog_rule({4, 4}, kOldRule).warning_threshold, std::nullopt);
}

// --- series

HogSeries series_of(const std::vector<std::pair<std::uint64_t, seconds>>& reports) {
  HogSeries series;
  for (const auto& [count, after] : reports) {
    series.add(count, kStart + after);
  }
  return series;
}

TEST(HogSeriesTest, CountIsTheLastReportSnapped) {
  EXPECT_EQ(series_of({{4, seconds(0)}, {6, seconds(1)}}).count(kRule), 5U);
  EXPECT_EQ(series_of({{16389, seconds(0)}}).count(kRule), 16387U);
  EXPECT_EQ(series_of({{16389, seconds(0)}}).count(kOldRule), 16384U);
}

TEST(HogSeriesTest, UpperBoundIsTheNextReport) {
  EXPECT_EQ(series_of({{262147, seconds(0)}}).upper_bound(kRule), 2 * 262147 - 4 + 1);
  EXPECT_EQ(series_of({{128, seconds(0)}}).upper_bound(kOldRule), 256U);
  EXPECT_EQ(series_of({{11, seconds(0)}}).upper_bound(HogRule{10}), 13U);
}

TEST(HogSeriesTest, RecordedWeekHadAFlatRate) {
  const auto state = fold_log(read_file(case_path("01-hog-week/journal-short.log")),
                              from_unix_seconds(1783453890));
  const auto& recorded = state.hogs().at({"amdgpu_amdkfd_restore_userptr_worker", "amdgpu"});
  EXPECT_EQ(recorded.lines(), 5U);
  EXPECT_EQ(recorded.count(kRule), 262147U);
  EXPECT_EQ(kRule.doublings(recorded.count(kRule)), 18U);

  const double rates[] = {0.88, 1.03, 1.07, 1.02};
  const seconds spans[] = {seconds(18612), seconds(31734), seconds(61337), seconds(128531)};
  HogSeries series;
  TimePoint time = kStart;
  series.add(16387, time);
  for (size_t i = 0; i < std::size(rates); ++i) {
    time += spans[i];
    series.add(recorded.printed()[i + 1], time);
    EXPECT_NEAR(series.rate(kRule, time).value_or(0), rates[i], 0.005);
  }
  EXPECT_NEAR(recorded.rate(kRule, *recorded.last_time()).value_or(0), 1.02, 0.005);
}

TEST(HogSeriesTest, RateIsOfTheLastTwoReports) {
  const auto series = series_of({{67, seconds(0)}, {515, seconds(100)}, {1027, seconds(106)}});
  EXPECT_DOUBLE_EQ(*series.rate(kRule, kStart + seconds(106)), 512.0 / 6);
}

TEST(HogSeriesTest, RateUsesSnappedCounts) {
  const auto series = series_of({{16388, seconds(0)}, {32780, seconds(100)}});
  EXPECT_DOUBLE_EQ(*series.rate(kRule, kStart + seconds(100)), 163.84);
}

TEST(HogSeriesTest, RateFallsWithTheSilenceSince) {
  const auto series = series_of({{19, seconds(0)}, {35, seconds(16)}});
  // 31 more hogs can hide before the report of 67.
  EXPECT_DOUBLE_EQ(*series.rate(kRule, kStart + seconds(16 + 10)), 1);
  EXPECT_DOUBLE_EQ(*series.rate(kRule, kStart + seconds(16 + 31)), 1);
  EXPECT_DOUBLE_EQ(*series.rate(kRule, kStart + seconds(16 + 310)), 0.1);
}

TEST(HogSeriesTest, OneReportHasNoRate) {
  EXPECT_EQ(series_of({{262147, seconds(5)}}).rate(kRule, kStart + hours(1)), std::nullopt);
}

TEST(HogSeriesTest, ReportsOfOneSecondSpanToTheEarlierStamp) {
  auto series = series_of({{35, seconds(0)}, {67, seconds(10)}});
  series.add(131, kStart + seconds(10) + milliseconds(400));
  EXPECT_DOUBLE_EQ(*series.rate(kRule, kStart + seconds(10) + milliseconds(400)), 96 / 10.4);
}

TEST(HogSeriesTest, ReportsOfASingleSecondHaveNoRate) {
  HogSeries series;
  series.add(4, kStart);
  series.add(5, kStart + milliseconds(1));
  series.add(7, kStart + milliseconds(999));
  EXPECT_EQ(series.rate(kRule, kStart + seconds(5)), std::nullopt);
}

TEST(HogSeriesTest, ReportWithoutATimeHasNoRate) {
  HogSeries series;
  series.add(4, kStart);
  series.add(5, std::nullopt);
  EXPECT_EQ(series.rate(kRule, kStart + seconds(5)), std::nullopt);
  EXPECT_EQ(series.last_time(), std::nullopt);
  series.add(7, kStart + seconds(10));
  EXPECT_DOUBLE_EQ(*series.rate(kRule, kStart + seconds(10)), 0.3);
}

TEST(HogSeriesTest, DoublingIntervalIsAbsentBelowThirtyFive) {
  const auto now = kStart + seconds(2);
  EXPECT_EQ(series_of({{11, seconds(0)}, {19, seconds(1)}}).doubling_interval(kRule, now),
            std::nullopt);
  EXPECT_TRUE(series_of({{19, seconds(0)}, {35, seconds(1)}}).doubling_interval(kRule, now));
  EXPECT_EQ(series_of({{35, seconds(0)}}).doubling_interval(kRule, now), std::nullopt);
}

TEST(HogSeriesTest, DoublingIntervalIsTheLargerOfTheLastAndTheSilence) {
  const auto series = series_of({{131, seconds(0)}, {259, seconds(100)}});
  EXPECT_EQ(series.doubling_interval(kRule, kStart + seconds(110)), 100);
  EXPECT_EQ(series.doubling_interval(kRule, kStart + seconds(350)), 250);
}

TEST(HogSeriesTest, DoublingIntervalIsPerDoublingWhereReportsWereMissed) {
  const auto series = series_of({{131, seconds(0)}, {1027, seconds(300)}});
  EXPECT_EQ(series.doubling_interval(kRule, kStart + seconds(300)), 100);
}

TEST(HogSeriesTest, CountThatFallsAsTimeGoesOnStartsANewSeries) {
  auto series = series_of({{131075, seconds(0)}, {262147, seconds(100)}, {4, seconds(200)}});
  const auto now = kStart + seconds(201);
  EXPECT_EQ(series.resets(), 1U);
  EXPECT_EQ(series.count(kRule), 4U);
  EXPECT_EQ(series.upper_bound(kRule), 5U);
  EXPECT_EQ(series.rate(kRule, now), std::nullopt);
  EXPECT_EQ(series.lines(), 3U);
  series.add(5, kStart + seconds(210));
  EXPECT_DOUBLE_EQ(*series.rate(kRule, kStart + seconds(210)), 0.1);
}

TEST(HogSeriesTest, LineThatComesLateIsNoNewSeries) {
  auto series = series_of({{4, seconds(0)}, {7, seconds(20)}, {5, seconds(10)}});
  EXPECT_EQ(series.resets(), 0U);
  EXPECT_EQ(series.count(kRule), 7U);
  EXPECT_EQ(series.last_time(), kStart + seconds(20));
  EXPECT_EQ(series.lines(), 3U);
}

TEST(HogSeriesTest, RepeatedCountCarriesNothingNew) {
  auto series = series_of({{4, seconds(0)}, {7, seconds(20)}, {7, seconds(30)}});
  EXPECT_EQ(series.lines(), 3U);
  EXPECT_EQ(series.resets(), 0U);
  EXPECT_EQ(series.printed(), (std::vector<std::uint64_t>{4, 7}));
  EXPECT_EQ(series.last_time(), kStart + seconds(20));
}

TEST(HogSeriesTest, LossRemovesTheUpperBoundUntilTheNextReport) {
  auto series = series_of({{35, seconds(0)}, {67, seconds(32)}});
  series.note_loss();
  EXPECT_EQ(series.upper_bound(kRule), std::nullopt);
  EXPECT_EQ(series.count(kRule), 67U);
  series.add(131, kStart + seconds(96));
  EXPECT_EQ(series.upper_bound(kRule), 259U);
}

TEST(HogSeriesTest, SilenceAfterALossAllowsAnyRate) {
  auto series = series_of({{35, seconds(0)}, {67, seconds(32)}});
  series.note_loss();
  EXPECT_DOUBLE_EQ(*series.rate(kRule, kStart + hours(100)), 1);
}

TEST(HogSeriesTest, RunawayOfTensASecondShowsItsRate) {
  const auto state =
      fold_log(read_file(case_path("24-svm-restore-runaway-1027/dmesg.log")), kStart, kStart);
  const auto& series = state.hogs().at({"svm_range_restore_work", "amdgpu"});
  EXPECT_EQ(series.count(kRule), 1027U);
  EXPECT_NEAR(*series.rate(kRule, *series.last_time()), 80, 1e-6);
  EXPECT_FALSE(state.events().contains(EventKind::kSvmMappingFailed));
}

}  // namespace
}  // namespace apu
