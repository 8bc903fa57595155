#include "collectors/kernel_log/kernel_log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <regex>

#include "tests/support/collector_files.h"
#include "tests/support/collector_host.h"
#include "tests/support/collector_log.h"
#include "tests/support/temp_tree.h"

namespace apu {
namespace {

const std::string kBanner =
    "5,0,0,-;Linux version 6.14.0-36-generic (buildd@lcy02-amd64-067) (gcc 13)\n";
const std::string kRefusal =
    "6,1,50000000,-;amdgpu: SVM mapping failed, exceeds resident system memory limit\n";

constexpr const char* kRefusals = R"(apu_kernel_events_total{event="svm_mapping_failed",gpu=""})";
constexpr const char* kUserptrHogs =
    R"(apu_workqueue_hog_events_total{function="amdgpu_amdkfd_restore_userptr_worker",module="amdgpu"})";

std::string hog_record(int sequence, int second, std::uint64_t count) {
  return "4," + std::to_string(sequence) + "," + std::to_string(second) +
         "000000,-;workqueue: svm_range_restore_work [amdgpu] hogged CPU for >10000us " +
         std::to_string(count) + " times, consider switching to WQ_UNBOUND\n";
}

/// A host with a log file, the driver as a module, and a kernel that reports hogs.
class KernelLogTest : public ::testing::Test {
 protected:
  KernelLogTest() {
    tree_.write("proc/stat", "btime 1783000000\n");
    tree_.write("sys/module/amdgpu/coresize", "1\n");
    tree_.write("sys/module/workqueue/parameters/cpu_intensive_thresh_us", "10000\n");
    tree_.write("sys/module/workqueue/parameters/cpu_intensive_warning_thresh", "4\n");
    host_.clock->set(from_unix_seconds(1783000100));
    host_.kernel_log = log_path();
  }

  [[nodiscard]] std::string log_path() const { return (tree_.path() / "log/kern.log").string(); }

  /// What one pass over `log` publishes.
  Families families_of(const std::string& log) {
    tree_.write("log/kern.log", log);
    return collect_once();
  }

  Families collect_once() {
    auto snapshot = make_kernel_log_collector(host_.context())->collect();
    EXPECT_TRUE(snapshot) << snapshot.error().message;
    return snapshot ? snapshot->families : Families();
  }

  TempTree tree_;
  CollectorHost host_{tree_.path()};
};

// --- the log

TEST_F(KernelLogTest, PublishesTheCountsOfTheWholeLog) {
  const auto families =
      families_of(kBanner + kRefusal + hog_record(2, 60, 19) + hog_record(3, 76, 35));
  const std::string labels = R"({function="svm_range_restore_work",module="amdgpu"})";
  const std::pair<const char*, double> expected[] = {
      {"apu_workqueue_hog_events_total", 35},
      {"apu_workqueue_hog_events_upper_bound", 67},
      {"apu_workqueue_hog_doublings_total", 5},
      {"apu_workqueue_hog_reports_total", 2},
      {"apu_workqueue_hog_last_report_timestamp_seconds", 1783000076},
      {"apu_workqueue_hog_doubling_interval_seconds", 24},
      {"apu_workqueue_hog_events_per_second", 1}};
  for (const auto& [name, value] : expected) {
    EXPECT_EQ(value_of(families, name + labels), value) << name;
  }
  EXPECT_EQ(value_of(families, "apu_workqueue_hog_threshold_seconds"), 0.01);
  EXPECT_EQ(value_of(families, "apu_workqueue_hog_warning_threshold"), 4);
  EXPECT_EQ(value_of(families, kRefusals), 1);
  EXPECT_EQ(value_of(families, R"(apu_kernel_event_bursts_total{event="svm_mapping_failed"})"), 1);
  EXPECT_EQ(
      value_of(families, R"(apu_kernel_event_last_timestamp_seconds{event="svm_mapping_failed"})"),
      1783000050);
  EXPECT_EQ(value_of(families, "apu_kernel_log_lines_total"), 4);
  EXPECT_EQ(value_of(families, R"(apu_kernel_log_lost_total{by="kmsg_overrun"})"), 0);
  EXPECT_EQ(value_of(families, "apu_kernel_log_covers_boot"), 1);
}

TEST_F(KernelLogTest, UsesTheThresholdOfTheRunningKernel) {
  tree_.write("sys/module/workqueue/parameters/cpu_intensive_warning_thresh", "10\n");
  const auto families = families_of(hog_record(2, 60, 18));
  const std::string labels = R"({function="svm_range_restore_work",module="amdgpu"})";
  EXPECT_EQ(value_of(families, "apu_workqueue_hog_events_total" + labels), 17);
  EXPECT_EQ(value_of(families, "apu_workqueue_hog_events_upper_bound" + labels), 25);
}

TEST_F(KernelLogTest, KernelWithoutTheThresholdFileHasTheOldRule) {
  tree_.remove("sys/module/workqueue/parameters/cpu_intensive_warning_thresh");
  const auto families = families_of(hog_record(2, 60, 4));
  const std::string labels = R"({function="svm_range_restore_work",module="amdgpu"})";
  EXPECT_EQ(value_of(families, "apu_workqueue_hog_events_upper_bound" + labels), 8);
  EXPECT_EQ(value_of(families, "apu_workqueue_hog_doublings_total" + labels), 2);
  EXPECT_FALSE(has_family(families, "apu_workqueue_hog_warning_threshold"));
}

TEST_F(KernelLogTest, LinesThatWereAddedCountInTheNextPass) {
  tree_.write("log/kern.log", kBanner + kRefusal);
  const auto collector = make_kernel_log_collector(host_.context());
  EXPECT_EQ(value_of(collector->collect()->families, kRefusals), 1);
  std::ofstream(log_path(), std::ios::app) << kRefusal;
  EXPECT_EQ(value_of(collector->collect()->families, kRefusals), 2);
}

TEST_F(KernelLogTest, RateIsThatOfThePass) {
  tree_.write("log/kern.log", hog_record(2, 60, 19) + hog_record(3, 76, 35));
  const auto collector = make_kernel_log_collector(host_.context());
  const char* rate =
      R"(apu_workqueue_hog_events_per_second{function="svm_range_restore_work",module="amdgpu"})";
  EXPECT_EQ(value_of(collector->collect()->families, rate), 1);
  host_.clock->set(from_unix_seconds(1783000076 + 310));
  EXPECT_DOUBLE_EQ(*value_of(collector->collect()->families, rate), 0.1);
}

TEST_F(KernelLogTest, MissingLogFailsAndPublishesNothingUntilItAppears) {
  const auto collector = make_kernel_log_collector(host_.context());
  const auto snapshot = collector->collect();
  ASSERT_FALSE(snapshot);
  EXPECT_EQ(snapshot.error().kind, ErrorKind::kNotFound);
  EXPECT_EQ(host_.source(R"(apu_source_available{source="log_file"})"), 0);
  EXPECT_EQ(host_.source(R"(apu_source_unavailable_info{source="log_file",reason="not_found"})"),
            1);
  tree_.write("log/kern.log", kBanner + kRefusal);
  const auto recovered = collector->collect();
  ASSERT_TRUE(recovered);
  EXPECT_EQ(value_of(recovered->families, kRefusals), 1);
  EXPECT_EQ(host_.source(R"(apu_source_available{source="log_file"})"), 1);
}

TEST_F(KernelLogTest, DeviceThatIsNotThereFailsAsKmsg) {
  host_.kernel_log = "kmsg";
  const auto snapshot = make_kernel_log_collector(host_.context())->collect();
  ASSERT_FALSE(snapshot);
  EXPECT_EQ(snapshot.error().kind, ErrorKind::kNotFound);
  EXPECT_EQ(host_.source(R"(apu_source_unavailable_info{source="kmsg",reason="not_found"})"), 1);
}

TEST_F(KernelLogTest, DeviceThatHoldsNothingIsNotAHealthyLog) {
  host_.kernel_log = "kmsg";
  host_.roots.kmsg = "/dev/null";
  const auto snapshot = make_kernel_log_collector(host_.context())->collect();
  ASSERT_FALSE(snapshot);
  EXPECT_EQ(host_.source(R"(apu_source_unavailable_info{source="kmsg",reason="unsupported"})"), 1);
}

TEST_F(KernelLogTest, RecordedHostHasItsLogInAFile) {
  tree_.write("kernel.log", kRefusal);
  host_.kernel_log = "auto";
  EXPECT_EQ(value_of(collect_once(), kRefusals), 1);
}

TEST_F(KernelLogTest, BannerStartsTheCountsAnew) {
  const auto families = families_of(hog_record(900, 500, 262147) + kRefusal + kBanner +
                                    hog_record(1, 60, 4) + hog_record(2, 70, 5));
  EXPECT_EQ(value_of(families, R"(apu_workqueue_hog_events_total{)"
                               R"(function="svm_range_restore_work",module="amdgpu"})"),
            5);
  EXPECT_EQ(value_of(families, kRefusals), 0);
  EXPECT_EQ(value_of(families, "apu_kernel_log_lines_total"), 3);
}

TEST_F(KernelLogTest, LogOfTwoBootsCountsTheLast) {
  tree_.remove("proc/stat");  // so that the banner alone tells the boots apart
  host_.clock->set(from_unix_seconds(1783800000));
  const auto families =
      families_of(read_file(case_path("10-count-falls-across-reboot/journal-two-boots.log")));
  EXPECT_EQ(value_of(families, kUserptrHogs), 5);
}

TEST_F(KernelLogTest, LogWithoutItsStartDoesNotCoverTheBoot) {
  EXPECT_EQ(value_of(families_of(kRefusal), "apu_kernel_log_covers_boot"), 0);
}

TEST_F(KernelLogTest, LinesThatCannotBeReadAreParseErrors) {
  const auto families = families_of(read_file(case_path("09-hog-line-without-count/lines.log")) +
                                    "4,7,1,-;workqueue: f hogged CPU for >10000us\n");
  EXPECT_EQ(host_.parse_errors("log_file"), 2);
  EXPECT_EQ(value_of(families, kUserptrHogs), 0);
}

// --- the bound that the CPU time of kworkers sets

TEST(LiveHogRate, IsAtMostWhatTheKworkersCanHaveBurnt) {
  KernelLogFacts facts;
  facts.hog_threshold_us = 10000;
  facts.hog_warning_threshold = 4;
  HogSeries series;
  const TimePoint start = from_unix_seconds(1783000000);
  const TimePoint last = start + std::chrono::seconds(100);
  series.add(16387, start);
  EXPECT_EQ(live_hog_rate(facts, series, last), std::nullopt);
  series.add(32771, last);
  EXPECT_DOUBLE_EQ(*live_hog_rate(facts, series, last), 163.84);
  facts.per_cpu_kworker_cores = 0.5;
  EXPECT_DOUBLE_EQ(*live_hog_rate(facts, series, last), 50);
  facts.per_cpu_kworker_cores = 3;
  EXPECT_DOUBLE_EQ(*live_hog_rate(facts, series, last), 163.84);
  facts.per_cpu_kworker_cores = 0;
  EXPECT_EQ(live_hog_rate(facts, series, last), 0);
  facts.hog_threshold_us = std::nullopt;
  EXPECT_DOUBLE_EQ(*live_hog_rate(facts, series, last), 163.84);
}

// --- counters at 0

TEST_F(KernelLogTest, CountersOfTheRestoreWorkersStartAtZero) {
  const auto families = families_of(kBanner);
  for (const char* function : {"amdgpu_amdkfd_restore_userptr_worker", "svm_range_restore_work"}) {
    const std::string labels = std::string("{function=\"") + function + "\",module=\"amdgpu\"}";
    for (const char* name : {"apu_workqueue_hog_events_total", "apu_workqueue_hog_doublings_total",
                             "apu_workqueue_hog_reports_total"}) {
      EXPECT_EQ(value_of(families, name + labels), 0) << name << labels;
    }
  }
  EXPECT_FALSE(has_family(families, "apu_workqueue_hog_events_per_second"));
  EXPECT_EQ(value_of(families, kRefusals), 0);
  EXPECT_FALSE(has_family(families, "apu_kernel_event_last_timestamp_seconds"));
}

TEST_F(KernelLogTest, DriverThatIsBuiltInHasNoModuleName) {
  tree_.remove("sys/module/amdgpu/coresize");
  tree_.write("sys/module/amdgpu/parameters/gttsize", "-1\n");
  EXPECT_EQ(value_of(families_of(kBanner), R"(apu_workqueue_hog_events_total{)"
                                           R"(function="svm_range_restore_work",module=""})"),
            0);
}

TEST_F(KernelLogTest, WithoutTheDriverThereIsNoCounterAtZero) {
  tree_.remove("sys/module/amdgpu");
  EXPECT_FALSE(has_family(families_of(kBanner), "apu_workqueue_hog_events_total"));
}

TEST_F(KernelLogTest, WithoutTheReportThereIsNoCounterAtZero) {
  tree_.remove("sys/module/workqueue/parameters/cpu_intensive_warning_thresh");
  EXPECT_FALSE(has_family(families_of(kBanner), "apu_workqueue_hog_events_total"));
}

TEST_F(KernelLogTest, ReportIsASourceOfItsOwn) {
  struct Parameters {
    const char* threshold_us;
    const char* warning_threshold;
    std::string log;
    double available;
  };

  const Parameters table[] = {{"10000\n", "4\n", kBanner, 1},
                              {"10000\n", "0\n", kBanner, 0},
                              {"0\n", "4\n", kBanner, 0},
                              {"10000\n", nullptr, kBanner, 0},
                              {"10000\n", nullptr, hog_record(1, 60, 8), 1},
                              {"10000\n", "garbage\n", kBanner, 0}};
  for (const Parameters& row : table) {
    tree_.write("sys/module/workqueue/parameters/cpu_intensive_thresh_us", row.threshold_us);
    tree_.remove("sys/module/workqueue/parameters/cpu_intensive_warning_thresh");
    if (row.warning_threshold != nullptr) {
      tree_.write("sys/module/workqueue/parameters/cpu_intensive_warning_thresh",
                  row.warning_threshold);
    }
    const auto families = families_of(row.log);
    EXPECT_EQ(host_.source(R"(apu_source_available{source="workqueue_report"})"), row.available)
        << row.threshold_us;
    EXPECT_EQ(has_family(families, "apu_workqueue_hog_events_total"), row.available == 1);
  }
  EXPECT_EQ(host_.source(R"(apu_source_unavailable_info{)"
                         R"(source="workqueue_report",reason="unsupported"})"),
            1);
  EXPECT_EQ(host_.parse_errors("workqueue_report"), 1);
}

TEST_F(KernelLogTest, ReportOfKernelsWithoutTheParameterIsKnownByTheirConfiguration) {
  struct Built {
    const char* file;
    const char* config;
    double available;
  };

  const Built table[] = {
      {"boot/config-6.6.0-test", "CONFIG_A=m\nCONFIG_WQ_CPU_INTENSIVE_REPORT=y\n", 1},
      {"usr/lib/modules/6.6.0-test/config", "CONFIG_WQ_CPU_INTENSIVE_REPORT=y\n", 1},
      {"boot/config-6.6.0-test", "# CONFIG_WQ_CPU_INTENSIVE_REPORT is not set\n", 0},
      {"boot/config-6.7.0-other", "CONFIG_WQ_CPU_INTENSIVE_REPORT=y\n", 0}};
  tree_.write("proc/sys/kernel/osrelease", "6.6.0-test\n");
  tree_.write("sys/module/workqueue/parameters/cpu_intensive_thresh_us", "10000\n");
  tree_.remove("sys/module/workqueue/parameters/cpu_intensive_warning_thresh");
  for (const Built& row : table) {
    tree_.write(row.file, row.config);
    families_of(kBanner);
    EXPECT_EQ(host_.source(R"(apu_source_available{source="workqueue_report"})"), row.available)
        << row.config;
    tree_.remove(row.file);
  }
}

// --- recorded hosts

/// Checks a value against a cell of a table: "absent", or a number of six digits or more.
void expect_cell(const std::string& what, std::optional<double> value, const std::string& cell) {
  if (cell == "absent") {
    EXPECT_EQ(value, std::nullopt) << what;
  } else {
    const double expected = std::stod(cell);
    EXPECT_NEAR(value.value_or(NAN), expected, 1e-5 * expected) << what;
  }
}

TEST(RecordedKernelLogs, HogsAreThoseThatEachHostHad) {
  // function, module, count, upper bound, doublings, reports, rate between the last two, rate the
  // silence allows, rate, interval, last
  const std::regex row(
      R"re(\| `(\w+)`, "(\w*)" \| (\w+) \| (\w+) \| (\w+) \| (\w+) \| (\S+) \| (\S+) \| \S+ )re"
      R"re(\| (\S+)(?: s)? \| (\S+) \|)re");
  int rows = 0;
  for (const std::string& fixture : fixture_names()) {
    SCOPED_TRACE(fixture);
    const CollectorHost host(fixture_path(fixture));
    const auto snapshot = make_kernel_log_collector(host.context())->collect();
    ASSERT_EQ(snapshot.ok(), fixture != "no_psi");
    const std::string readme = read_file(fixture_path(fixture) / "README.md");
    for (std::sregex_iterator match(readme.begin(), readme.end(), row), end; match != end;
         ++match, ++rows) {
      const auto& cells = *match;
      const std::string labels =
          "{function=\"" + cells[1].str() + "\",module=\"" + cells[2].str() + "\"}";
      const auto value = [&](const char* name) {
        return value_of(snapshot->families, name + labels);
      };
      const auto& facts = std::any_cast<const KernelLogFacts&>(snapshot->facts);
      const HogSeries& series = facts.log.hogs().at({cells[1], cells[2]});
      expect_cell("count", value("apu_workqueue_hog_events_total"), cells[3]);
      expect_cell("upper bound", value("apu_workqueue_hog_events_upper_bound"), cells[4]);
      expect_cell("doublings", value("apu_workqueue_hog_doublings_total"), cells[5]);
      expect_cell("reports", value("apu_workqueue_hog_reports_total"), cells[6]);
      expect_cell("rate between", series.rate(hog_rule(facts), *series.last_time()), cells[7]);
      expect_cell("interval", value("apu_workqueue_hog_doubling_interval_seconds"), cells[9]);
      expect_cell("last", value("apu_workqueue_hog_last_report_timestamp_seconds"), cells[10]);
      const auto rate = value("apu_workqueue_hog_events_per_second");
      EXPECT_EQ(rate.has_value(), cells[7] != "absent");
      if (rate) {
        const double expected = std::min(std::stod(cells[7]), std::stod(cells[8]));
        EXPECT_NEAR(*rate, expected, 1e-5 * expected);
      }
    }
  }
  EXPECT_GE(rows, 13);
}

TEST(RecordedKernelLogs, RefusalsAreThoseThatEachHostHad) {
  const std::pair<const char*, double> refusals[] = {{"strix_halo_healthy", 0},
                                                     {"strix_halo_thrash", 6},
                                                     {"hostile_log", 2},
                                                     {"damaged_files", 0}};
  for (const auto& [fixture, lines] : refusals) {
    const CollectorHost host(fixture_path(fixture));
    const auto snapshot = make_kernel_log_collector(host.context())->collect();
    ASSERT_TRUE(snapshot) << fixture;
    EXPECT_EQ(value_of(snapshot->families, kRefusals), lines) << fixture;
    EXPECT_EQ(value_of(snapshot->families, "apu_kernel_log_covers_boot"), 1) << fixture;
  }
}

TEST(RecordedKernelLogs, HostileLogForgesNothing) {
  const CollectorHost host(fixture_path("hostile_log"));
  const auto snapshot = make_kernel_log_collector(host.context())->collect();
  ASSERT_TRUE(snapshot);
  const auto& log = std::any_cast<const KernelLogFacts&>(snapshot->facts).log;
  EXPECT_EQ(log.lines(), 37U);
  EXPECT_EQ(log.ignored(), 6U);
  EXPECT_EQ(log.hogs().size(), 4U);
  // Hogs without a count 3, lines that are no record 3, the line over the limit 1.
  EXPECT_EQ(host.parse_errors("log_file"), 7);
}

TEST(RecordedKernelLogs, KernelWithoutTheReportIsBlind) {
  const CollectorHost host(fixture_path("kernel_5_10"));
  const auto snapshot = make_kernel_log_collector(host.context())->collect();
  ASSERT_TRUE(snapshot);
  EXPECT_FALSE(has_family(snapshot->families, "apu_workqueue_hog_events_total"));
  EXPECT_EQ(host.source(R"(apu_source_available{source="workqueue_report"})"), 0);
}

}  // namespace
}  // namespace apu
