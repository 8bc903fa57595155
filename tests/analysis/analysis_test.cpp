#include "analysis/analysis.h"

#include <gtest/gtest.h>

#include "analysis/report.h"
#include "tests/support/analysis_files.h"
#include "verdict/log_verdict.h"

namespace apu {
namespace {

const TimePoint kNow = from_unix_seconds(1'790'000'000);  // September 2026
const KernelLogState::HogKey kUserptr{"amdgpu_amdkfd_restore_userptr_worker", "amdgpu"};
const KernelLogState::HogKey kSvm{"svm_range_restore_work", "amdgpu"};

std::vector<double> rates_of(const BootAnalysis& boot, const KernelLogState::HogKey& key) {
  std::vector<double> rates;
  for (const HogInterval& interval : hog_intervals(boot.log.hogs().at(key), boot.rule)) {
    rates.push_back(interval.rate());
  }
  return rates;
}

TEST(AnalyzeRecorded, HogWeekIsTheFaultAtOneHogASecond) {
  const Analysis analysis = analyze_case("01-hog-week/journal-short.log", kNow);
  ASSERT_EQ(analysis.boots.size(), 1U);
  const BootAnalysis& boot = analysis.boots[0];
  EXPECT_EQ(boot.judgement.verdict, Verdict::kKfdThrash);
  EXPECT_THAT(
      rates_of(boot, kUserptr),
      testing::ElementsAre(testing::DoubleNear(0.88, 0.005), testing::DoubleNear(1.03, 0.005),
                           testing::DoubleNear(1.07, 0.005), testing::DoubleNear(1.02, 0.005)));
  ASSERT_TRUE(boot.judgement.since && boot.judgement.estimated_since);
  EXPECT_EQ(*boot.judgement.since - *boot.judgement.estimated_since,
            std::chrono::seconds(18615));  // 16387 hogs at 16384 in 18612 s
  const std::string report = to_report_text(analysis);
  EXPECT_TRUE(report.starts_with("Verdict: kfd_thrash, since 2026-07-04 23:05:35 at the latest"));
  EXPECT_NE(report.find("that the printed numbers double is how it"), std::string::npos);
  EXPECT_NE(report.find("262147 hogs or more, below 524291"), std::string::npos);
}

TEST(AnalyzeRecorded, LogAsPublishedIsNotGuessedAt) {
  const Analysis analysis = analyze_case("01-hog-week/as-published.log", kNow);
  EXPECT_TRUE(analysis.boots[0].log.hogs().empty());
  EXPECT_EQ(analysis.boots[0].log.ignored(), 5U);
}

TEST(AnalyzeRecorded, LoadThatNeverEndedIsTheFaultThoughItsCountIsSmall) {
  const Analysis analysis = analyze_case("02-two-workers-interleaved-dmesgT/dmesg-T.log", kNow);
  EXPECT_EQ(analysis.boots[0].judgement.verdict, Verdict::kKfdThrash);
  EXPECT_THAT(analysis.boots[0].judgement.evidence[0].what, testing::StartsWith("svm_range"));
}

TEST(AnalyzeRecorded, ReversedLogIsTurnedRound) {
  const Analysis analysis =
      analyze_case("04-reverse-order-localised-pager-cut/journal-r.log", kNow);
  EXPECT_TRUE(analysis.files[0].newest_first);
  ASSERT_EQ(analysis.boots.size(), 1U);
  const HogSeries& series = analysis.boots[0].log.hogs().at(kSvm);
  EXPECT_EQ(series.printed().back(), 35U);
  EXPECT_EQ(series.printed().size(), 6U);
  EXPECT_EQ(series.resets(), 0U);
  EXPECT_EQ(analysis.boots[0].hogs_without_count, 1U);
  EXPECT_TRUE(analysis.boots[0].ended_series.empty());
}

TEST(AnalyzeRecorded, BootsAreKeptApart) {
  const Analysis analysis =
      analyze_case("10-count-falls-across-reboot/journal-two-boots.log", kNow);
  ASSERT_EQ(analysis.boots.size(), 2U);
  EXPECT_EQ(analysis.boots[0].log.hogs().at(kUserptr).printed().back(), 262147U);
  EXPECT_EQ(analysis.boots[0].end, BootEnd::kShutdown);
  EXPECT_EQ(analysis.boots[1].log.hogs().at(kUserptr).printed().back(), 5U);
  EXPECT_EQ(analysis.boots[1].kernel, "6.17.0");
}

TEST(AnalyzeRecorded, CountThatFallsEndsASeries) {
  const Analysis analysis =
      analyze_case("10-count-falls-across-reboot/journal-no-separator.log", kNow);
  ASSERT_EQ(analysis.boots.size(), 1U);
  const BootAnalysis& boot = analysis.boots[0];
  EXPECT_EQ(boot.log.hogs().at(kUserptr).printed().back(), 5U);
  EXPECT_EQ(boot.log.hogs().at(kUserptr).resets(), 1U);
  ASSERT_EQ(boot.ended_series.size(), 1U);
  EXPECT_EQ(boot.ended_series[0].second.printed().back(), 262147U);
  EXPECT_THAT(boot.judgement.doubts, testing::Contains(testing::HasSubstr("262147 hogs")));
}

TEST(AnalyzeRecorded, BootThatEndsWithoutAShutdownIsSaid) {
  const Analysis analysis =
      analyze_case("22-boot-ends-without-shutdown/journal-two-boots.log", kNow);
  ASSERT_EQ(analysis.boots.size(), 2U);
  EXPECT_EQ(analysis.boots[0].end, BootEnd::kNoShutdownLine);
  EXPECT_EQ(analysis.boots[0].log.hogs().at(kSvm).printed().back(), 64U);
  EXPECT_FALSE(analysis.boots[0].rule.warning_threshold);  // 64 is of the old rule
  EXPECT_TRUE(analysis.boots[1].log.hogs().empty());
}

TEST(AnalyzeRecorded, RunawayIsFastAndFollowedByAFault) {
  const Analysis analysis = analyze_case("24-svm-restore-runaway-1027/dmesg.log", kNow);
  EXPECT_EQ(analysis.boots[0].judgement.verdict, Verdict::kKfdThrash);
  EXPECT_TRUE(analysis.boots[0].times_are_uptime);
  EXPECT_NEAR(rates_of(analysis.boots[0], kSvm).back(), 80, 0.5);
}

TEST(AnalyzeRecorded, HungRestoreWorkerIsTheFaultWithoutAHog) {
  const Analysis analysis = analyze_case("60-hung-task-svm-restore/dmesg.log", kNow);
  EXPECT_EQ(analysis.boots[0].judgement.verdict, Verdict::kKfdThrash);
  EXPECT_EQ(analysis.boots[0].hung_restore_workers, 1U);
}

TEST(AnalyzeRecorded, OomdIsNoKernelKill) {
  const Analysis analysis = analyze_case("54-oomd-without-kernel-line/journal-short.log", kNow);
  std::uint64_t kills = 0;
  std::uint64_t processes = 0;
  for (const BootAnalysis& boot : analysis.boots) {
    kills += boot.oomd_kills;
    processes += boot.oomd_killed_processes;
    EXPECT_TRUE(boot.log.oom().events().empty());
  }
  EXPECT_EQ(kills, 1U);
  EXPECT_EQ(processes, 12U);
}

TEST(AnalyzeRecorded, HealthyLogsShowNoFault) {
  for (const char* name :
       {"07-other-drivers-negative/mixed.log", "12-look-alike-names/dmesg.log",
        "33-vital-buffer-benign/dmesg-a.log", "33-vital-buffer-benign/dmesg-b.log",
        "20-callbacks-suppressed/dmesg.log", "41-dyndbg-flood/dmesg.log",
        "40-phrases-unverified/as-published.log"}) {
    const Analysis analysis = analyze_case(name, kNow);
    EXPECT_FALSE(is_fault(analysis.worst()->judgement.verdict)) << name;
  }
}

// --- boots, order and years

TEST(Analyze, StampThatFallsIsAReboot) {
  const Analysis analysis = analyze_text(
      "[  100.000000] amdgpu: a\n[ 5000.000000] b\n[    1.000000] c\n[    2.000000] amdgpu: d\n",
      kNow);
  ASSERT_EQ(analysis.boots.size(), 2U);
  EXPECT_EQ(analysis.boots[0].log.lines(), 2U);
  EXPECT_EQ(analysis.boots[1].log.lines(), 2U);
}

TEST(Analyze, LinesOfSeveralCpusAreNoReboot) {
  const Analysis analysis = analyze_text(
      "[  100.000000] a\n[  100.000500] b\n[  100.000400] c\n"
      "[  103.000000] d\n[  101.000000] amdgpu: e\n",
      kNow);
  EXPECT_EQ(analysis.boots.size(), 1U);
}

TEST(Analyze, BannerStartsABootButNotWhenUserSpaceWroteIt) {
  const char* text =
      "Jul  4 10:00:00 h kernel: amdgpu: a\n"
      "Jul  4 11:00:00 h app[7]: Linux version 6.12 (user@host) gcc\n"
      "Jul  4 12:00:00 h kernel: Linux version 6.12 (user@host) gcc\n"
      "Jul  4 12:00:01 h kernel: amdgpu: b\n";
  EXPECT_EQ(analyze_text(text, kNow).boots.size(), 2U);
}

TEST(Analyze, YearsGoBackFromTheLastLine) {
  // Read in September, the log is of last November to March.
  const Analysis analysis = analyze_text(
      "Nov 20 10:00:00 h kernel: amdgpu: a\n"
      "Dec 31 23:59:59 h kernel: amdgpu: b\n"
      "Mar  1 00:00:00 h kernel: amdgpu: c\n",
      kNow);
  const BootAnalysis& boot = analysis.boots[0];
  EXPECT_EQ(std::chrono::floor<std::chrono::days>(*boot.last_time - *boot.first_time),
            std::chrono::days(100));
}

TEST(Analyze, YearsGoBackFromTheLastLineAcrossToday) {
  // August to October: the last line cannot be of this year's October, nor then the first of
  // this year's August.
  const Analysis analysis = analyze_text(
      "Aug 20 10:00:00 h kernel: amdgpu: a\n"
      "Oct 31 23:59:59 h kernel: amdgpu: b\n",
      kNow);
  const BootAnalysis& boot = analysis.boots[0];
  EXPECT_LT(*boot.last_time, kNow - std::chrono::days(300));
  EXPECT_EQ(std::chrono::floor<std::chrono::days>(*boot.last_time - *boot.first_time),
            std::chrono::days(72));
}

TEST(Analyze, LineOutOfOrderBeginsNoCountAnew) {
  const Analysis analysis = analyze_text(
      "Jul  4 10:00:00 h kernel: workqueue: svm_range_restore_work [amdgpu] hogged CPU for "
      ">10000us 67 times\n"
      "Jul  4 12:00:00 h kernel: workqueue: svm_range_restore_work [amdgpu] hogged CPU for "
      ">10000us 259 times\n"
      "Jul  4 11:00:00 h kernel: workqueue: svm_range_restore_work [amdgpu] hogged CPU for "
      ">10000us 131 times\n"
      "Jul  4 13:00:00 h kernel: amdgpu: x\n",
      kNow);
  EXPECT_EQ(analysis.files[0].out_of_order, 1U);
  EXPECT_EQ(analysis.boots[0].log.hogs().at(kSvm).printed().back(), 259U);
  EXPECT_EQ(analysis.boots[0].log.hogs().at(kSvm).resets(), 0U);
}

/// The storm of 1 hog/s as journalctl prints it, its clock set by `step` seconds at each report.
std::string storm_with_clock_steps(int step) {
  std::string log;
  int report = 0;
  for (const int count : {4, 5, 7, 11, 19, 35, 67, 131, 259, 515, 1027}) {
    const std::int64_t uptime = 100'000'000LL + count * 1'000'000LL;
    log +=
        fmt::format(R"({{"_TRANSPORT":"kernel","_BOOT_ID":"b1","SYSLOG_FACILITY":"0",)"
                    R"("__REALTIME_TIMESTAMP":"{}","_SOURCE_MONOTONIC_TIMESTAMP":"{}",)"
                    R"("MESSAGE":"workqueue: svm_range_restore_work [amdgpu] hogged CPU for )"
                    R"(>10000us {} times"}})"
                    "\n",
                    1'783'000'000'000'000LL + uptime + report * step * 1'000'000LL, uptime, count);
    ++report;
  }
  return log;
}

TEST(Analyze, ClockThatIsSetChangesNoRate) {
  for (const int step : {0, 3600, -3600}) {
    const Analysis analysis = analyze_text(storm_with_clock_steps(step), kNow);
    EXPECT_FALSE(analysis.files[0].newest_first) << step;
    EXPECT_EQ(analysis.boots[0].judgement.verdict, Verdict::kKfdThrash) << step;
    EXPECT_NEAR(rates_of(analysis.boots[0], kSvm).back(), 1, 0.01) << step;
  }
}

TEST(Analyze, HungTaskAndAStackLongAfterItAreTwoThings) {
  std::string log = "[  100.000000] INFO: task nfsd:77 blocked for more than 120 seconds.\n";
  for (int i = 0; i < 100; ++i) {
    log += fmt::format("[  2{:02}.000000] usb 1-1: new device\n", i);
  }
  log += "[  900.000000] Workqueue: events amdgpu_amdkfd_restore_userptr_worker [amdgpu]\n";
  EXPECT_EQ(analyze_text(log, kNow).boots[0].hung_restore_workers, 0U);
}

TEST(Analyze, UnitThatIsKilledAtAShutdownIsNoSignOfAStorm) {
  std::string log;
  for (const int count : {35, 67, 131}) {
    log += fmt::format(
        "[  {:3}.000000] workqueue: svm_range_restore_work [amdgpu] hogged CPU for "
        ">10000us {} times\n",
        100 + count / 2, count);
  }
  log += "[ 2900.000000] systemd[1]: cups.service: State 'stop-sigterm' timed out. Killing.\n";
  EXPECT_EQ(analyze_text(log, kNow).boots[0].judgement.verdict, Verdict::kUnknown);
}

TEST(Analyze, DmesgAndJournalOfOneBootAreOneBoot) {
  std::string dmesg;
  std::string journal;
  for (int i = 1; i < 10; ++i) {
    const char* message = "amdgpu: SVM mapping failed, exceeds resident system memory limit";
    dmesg += fmt::format("[  {:3}.000000] {}\n", 100 + i, message);
    journal +=
        fmt::format(R"({{"_TRANSPORT":"kernel","_BOOT_ID":"b1","SYSLOG_FACILITY":"0",)"
                    R"("__REALTIME_TIMESTAMP":"{}","_SOURCE_MONOTONIC_TIMESTAMP":"{}",)"
                    R"("MESSAGE":"{}"}})"
                    "\n",
                    1'783'000'000'000'000LL + i * 1'000'000LL, (100 + i) * 1'000'000LL, message);
  }
  std::vector<LogFile> files;
  files.push_back(read_log_text(dmesg, kNow, 4096, "dmesg"));
  files.push_back(read_log_text(journal, kNow, 4096, "journal"));
  const Analysis analysis = analyze(std::move(files));
  ASSERT_EQ(analysis.boots.size(), 1U);
  EXPECT_EQ(analysis.boots[0].log.events().at(EventKind::kSvmMappingFailed).lines.at(""), 9U);
}

TEST(Analyze, RotatedFilesInAnyOrderAreOneLog) {
  const std::string older =
      "Jul  4 10:00:00 h kernel: amdgpu: SVM mapping failed, exceeds resident "
      "system memory limit\nJul  4 10:30:00 h kernel: usb\n";
  const std::string newer =
      "Jul  4 11:00:00 h kernel: amdgpu: SVM mapping failed, exceeds resident "
      "system memory limit\n";
  std::vector<LogFile> files;
  files.push_back(read_log_text(newer, kNow, 4096, "kern.log"));
  files.push_back(read_log_text(older, kNow, 4096, "kern.log.1"));
  const Analysis analysis = analyze(std::move(files));
  ASSERT_EQ(analysis.boots.size(), 1U);
  EXPECT_EQ(analysis.boots[0].log.events().at(EventKind::kSvmMappingFailed).lines.at(""), 2U);
  EXPECT_EQ(analysis.boots[0].log.lines(), 3U);
  EXPECT_EQ(analysis.boots[0].timeline[0].file, 1U);
}

TEST(Analyze, LineOfTwoFilesCountsOnce) {
  const std::string line =
      "Jul  4 10:00:00 h kernel: amdgpu: SVM mapping failed, exceeds resident "
      "system memory limit\n";
  std::vector<LogFile> files;
  files.push_back(read_log_text(line + line, kNow, 4096, "kern.log"));
  files.push_back(read_log_text(line + line, kNow, 4096, "syslog"));
  const Analysis analysis = analyze(std::move(files));
  ASSERT_EQ(analysis.boots.size(), 1U);
  EXPECT_EQ(analysis.boots[0].log.events().at(EventKind::kSvmMappingFailed).lines.at(""), 2U);
  EXPECT_EQ(analysis.boots[0].duplicates, 2U);
}

TEST(Analyze, HostIsToldByItsFirstLinesAndSecretsStayOut) {
  const Analysis analysis = analyze_text(
      "[    0.000000] Linux version 6.12.1 (user@host) gcc\n"
      "[    0.000000] Command line: root=/dev/sda rd.luks.key=SECRET amdgpu.gttsize=98304 "
      "ttm.pages_limit=25165824 quiet\n"
      "[    0.000000] DMI: Framework Desktop, BIOS 1\n"
      "[    3.000000] amdgpu 0000:c5:00.0: amdgpu: amdgpu: 98304M of GTT memory ready.\n",
      kNow);
  const std::string text = to_report_text(analysis);
  EXPECT_NE(text.find("kernel 6.12.1, Framework Desktop, BIOS 1"), std::string::npos);
  EXPECT_NE(text.find("amdgpu.gttsize=98304 ttm.pages_limit=25165824"), std::string::npos);
  EXPECT_NE(text.find("98304M of GTT memory ready"), std::string::npos);
  EXPECT_EQ(text.find("SECRET"), std::string::npos);
  EXPECT_EQ(to_report_json(analysis).find("SECRET"), std::string::npos);
  EXPECT_TRUE(analysis.boots[0].begins_here);
}

TEST(Analyze, EscapesWhatALogMayHold) {
  const Analysis analysis = analyze_text(
      "[    1.000000] amdgpu: SVM mapping failed, exceeds resident system memory "
      "limit\x1b[2J\xff\n",
      kNow);
  const std::string text = to_report_text(analysis);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(text.find('\xff'), std::string::npos);
}

TEST(Analyze, LongTimelineIsCutInTheMiddle) {
  std::string log;
  for (int i = 0; i < 200; ++i) {
    log += fmt::format(
        "[{:5}.000000] amdgpu 0000:c5:00.0: amdgpu: {}\n", 100 + i,
        i % 2 == 0 ? "MES failed to respond to msg=REMOVE_QUEUE" : "MES ring buffer is full");
  }
  const std::string text = to_report_text(analyze_text(log, kNow));
  EXPECT_NE(text.find("... 140 left out"), std::string::npos);
}

// --- the metrics

TEST(AnalysisMetrics, AreThoseOfTheLastBoot) {
  const std::string text =
      to_report_metrics(analyze_case("10-count-falls-across-reboot/journal-two-boots.log", kNow));
  EXPECT_NE(text.find("apu_workqueue_hog_events_total{function=\"amdgpu_amdkfd_restore_userptr_"
                      "worker\",module=\"amdgpu\"} 5\n"),
            std::string::npos);
  EXPECT_NE(text.find("apu_kernel_events_total{event=\"svm_mapping_failed\",gpu=\"\"} 0\n"),
            std::string::npos);
  EXPECT_EQ(text.find("262147"), std::string::npos);
}

TEST(AnalysisMetrics, HaveNoTimeOfDayWhereTheLogHasNone) {
  const std::string text =
      to_report_metrics(analyze_case("24-svm-restore-runaway-1027/dmesg.log", kNow));
  EXPECT_EQ(text.find("_timestamp_seconds"), std::string::npos);
  EXPECT_NE(text.find("apu_workqueue_hog_events_per_second"), std::string::npos);
}

TEST(AnalysisMetrics, AreAbsentWithoutALog) {
  const std::string text =
      to_report_metrics(analyze_case("92-log-source-unreadable/dmesg.stderr", kNow));
  EXPECT_EQ(text.find("apu_kernel_events_total"), std::string::npos);
  EXPECT_NE(text.find("apu_source_available{source=\"log_file\"} 0\n"), std::string::npos);
}

}  // namespace
}  // namespace apu
