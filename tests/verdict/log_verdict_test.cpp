#include "verdict/log_verdict.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace apu {
namespace {

const TimePoint kStart = from_unix_seconds(1'780'000'000);

/// A log to which messages are added at seconds after its start.
class LogVerdict : public testing::Test {
 protected:
  void add(double seconds, std::string_view message) {
    LogRecord record;
    record.origin = Origin::kKernel;
    record.message = message;
    const TimePoint time =
        kStart + std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
    log_.fold(record, time);
    if (const auto event = classify(message); event && is_aftermath(event->kind)) {
      aftermath_.emplace_back(event->kind, time);
    }
  }

  /// The reports of a worker that hogs at `rate` from the first second to the last.
  void add_hogs(double rate, double seconds,
                const std::string& function = "amdgpu_amdkfd_restore_userptr_worker") {
    const HogRule rule{4};
    for (std::uint64_t count = 4; static_cast<double>(count) / rate <= seconds;
         count = rule.next(count)) {
      add(static_cast<double>(count) / rate,
          fmt::format("workqueue: {} [amdgpu] hogged CPU for >10000us {} times", function, count));
    }
  }

  Judgement judge(std::optional<TimePoint> boot_time = std::nullopt) {
    return judge_log({log_, HogRule{4}, boot_time, aftermath_, {}, 0, std::nullopt});
  }

  KernelLogState log_;
  std::vector<std::pair<EventKind, TimePoint>> aftermath_;
};

TEST_F(LogVerdict, OfAnEmptyLogIsUnknownAndNeverHealthy) {
  EXPECT_EQ(judge().verdict, Verdict::kUnknown);
}

TEST_F(LogVerdict, StormThatLastsIsThrash) {
  add_hogs(1, 3600);
  const Judgement judgement = judge();
  EXPECT_EQ(judgement.verdict, Verdict::kKfdThrash);
  EXPECT_EQ(judgement.since, kStart + std::chrono::seconds(67));
  EXPECT_FALSE(judgement.estimated_since);  // the log has its beginning
}

TEST_F(LogVerdict, BurstOfAHealthyLoadIsADoubt) {
  for (const auto& [rate, seconds] : {std::pair{2.0, 150.0}, {5.0, 195.0}, {80.0, 13.0}}) {
    log_ = KernelLogState();
    add_hogs(rate, seconds);
    EXPECT_EQ(judge().verdict, Verdict::kUnknown) << rate;
    EXPECT_EQ(judge().doubts.size(), 1U) << rate;
  }
}

TEST_F(LogVerdict, BurstThatLeavesAFailureBehindIsThrash) {
  add_hogs(80, 13);
  add(20, "amdgpu: amdgpu_amdkfd_restore_userptr_worker: Failed to resume KFD");
  EXPECT_EQ(judge().verdict, Verdict::kKfdThrash);
}

TEST_F(LogVerdict, FailureLongAfterABurstDoesNotBelongToIt) {
  add_hogs(80, 13);
  add(2 * 3600, "amdgpu: amdgpu_amdkfd_restore_userptr_worker: Failed to resume KFD");
  EXPECT_EQ(judge().verdict, Verdict::kUnknown);
}

TEST_F(LogVerdict, FailureAtOnceCountsThoughMoreComeLater) {
  add_hogs(80, 13);
  add(20, "amdgpu: amdgpu_amdkfd_restore_userptr_worker: Failed to resume KFD");
  add(20'000, "amdgpu: amdgpu_amdkfd_restore_userptr_worker: Failed to resume KFD");
  EXPECT_EQ(judge().verdict, Verdict::kKfdThrash);
}

TEST_F(LogVerdict, TwoLoadsAndTheSilenceBetweenThemAreNoStorm) {
  add_hogs(2, 150);
  add(1500,
      "workqueue: amdgpu_amdkfd_restore_userptr_worker [amdgpu] hogged CPU for >10000us 515 "
      "times");
  EXPECT_EQ(judge().verdict, Verdict::kUnknown);
}

TEST_F(LogVerdict, StormThatSlowsDownIsOneFromItsNextReportOn) {
  const auto report = [&](double seconds, int count) {
    add(seconds, fmt::format("workqueue: amdgpu_amdkfd_restore_userptr_worker [amdgpu] hogged CPU "
                             "for >10000us {} times",
                             count));
  };
  add_hogs(8, 66);  // to 515
  report(1100, 1027);
  report(2200, 2051);
  EXPECT_EQ(judge().verdict, Verdict::kKfdThrash);
}

TEST_F(LogVerdict, ClockThatIsSetBackGivesNoRate) {
  HogSeries series;
  series.add(67, kStart);
  series.add(131, kStart - std::chrono::hours(1));
  series.add(259, kStart - std::chrono::minutes(58));
  const auto intervals = hog_intervals(series, HogRule{4});
  ASSERT_EQ(intervals.size(), 1U);
  EXPECT_EQ(intervals[0].from_count, 131U);
}

TEST_F(LogVerdict, SlowDoublerIsNoStorm) {
  add_hogs(0.01, 400'000);
  EXPECT_EQ(judge().verdict, Verdict::kUnknown);
}

TEST_F(LogVerdict, OtherWorkersAreNoStorm) {
  add_hogs(5, 3600, "dm_handle_vmin_vmax_update");
  add_hogs(5, 3600, "kfd_process_wq_release");
  EXPECT_EQ(judge().verdict, Verdict::kUnknown);
}

TEST_F(LogVerdict, OneLargeCountIsJudgedByTheTimeSinceBoot) {
  add(100'000, "workqueue: svm_range_restore_work [amdgpu] hogged CPU for >10000us 262147 times");
  EXPECT_EQ(judge(kStart).verdict, Verdict::kKfdThrash);
  EXPECT_EQ(judge(kStart - std::chrono::days(60)).verdict, Verdict::kUnknown);
  EXPECT_EQ(judge().verdict, Verdict::kUnknown);
  EXPECT_EQ(judge().doubts.size(), 1U);
  add(100'009, "amdgpu: amdgpu_amdkfd_restore_userptr_worker: Failed to resume KFD");
  EXPECT_EQ(judge().verdict, Verdict::kKfdThrash);
}

TEST_F(LogVerdict, WorstHolds) {
  add(1, "amdgpu: SVM mapping failed, exceeds resident system memory limit");
  EXPECT_EQ(judge().verdict, Verdict::kGpuMemoryExhausted);
  add(2, "amdgpu 0000:c5:00.0: amdgpu: MES failed to respond to msg=REMOVE_QUEUE");
  EXPECT_EQ(judge().verdict, Verdict::kGpuFault);
  EXPECT_EQ(judge().since, kStart + std::chrono::seconds(2));
  add_hogs(1, 3600);
  EXPECT_EQ(judge().verdict, Verdict::kKfdThrash);
  EXPECT_THAT(judge().evidence.front().what, testing::HasSubstr("thrashes"));
  EXPECT_EQ(judge().evidence.size(), 3U);
}

TEST_F(LogVerdict, HostOutOfMemoryIsPressure) {
  add(5,
      "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,"
      "task_memcg=/a.service,task=a,pid=7,uid=0");
  EXPECT_EQ(judge().verdict, Verdict::kMemoryPressure);
  EXPECT_EQ(judge().since, kStart + std::chrono::seconds(5));
}

TEST_F(LogVerdict, LimitOfAMemcgIsItsOwnBusiness) {
  add(5,
      "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/a,"
      "task_memcg=/a.service,task=a,pid=7,uid=0");
  EXPECT_EQ(judge().verdict, Verdict::kUnknown);
}

TEST(HogIntervals, SpanFromTheLastReportOfAnEarlierSecond) {
  HogSeries series;
  series.add(4, kStart);
  series.add(5, kStart + std::chrono::milliseconds(100));
  series.add(7, kStart + std::chrono::milliseconds(200));
  series.add(11, kStart + std::chrono::milliseconds(2200));
  series.add(19, kStart + std::chrono::milliseconds(2700));
  const auto intervals = hog_intervals(series, HogRule{4});
  ASSERT_EQ(intervals.size(), 1U);
  EXPECT_EQ(intervals[0].from_count, 7U);
  EXPECT_EQ(intervals[0].to_count, 19U);
  EXPECT_DOUBLE_EQ(intervals[0].rate(), 12 / 2.5);
}

TEST(RateText, HasTwoDigitsThatMatter) {
  EXPECT_EQ(rate_text(1.024), "1.02");
  EXPECT_EQ(rate_text(0.2), "0.20");
  EXPECT_EQ(rate_text(80.04), "80.0");
  EXPECT_EQ(rate_text(0.0042), "0.004");
}

}  // namespace
}  // namespace apu
