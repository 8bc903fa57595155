#include "verdict/host_verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace apu {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr double kGiB = 1024.0 * 1024 * 1024;

class HostVerdict : public testing::Test {
 protected:
  HostVerdict() {
    log_.hog_warning_threshold = 4;
    log_.hog_threshold_us = 10'000;
    log_.log.mark_boot_start();
    evidence_.now = now_;
    evidence_.has_procfs = true;
    evidence_.has_kfd = true;
    evidence_.kernel_log = &log_;
    evidence_.memory_stalled = 0;
    evidence_.seats["llama"] = {SeatState::kIdle, now_ - minutes(10), {}, true};
  }

  void say(const std::string& message, seconds ago) {
    LogRecord record;
    record.origin = Origin::kKernel;
    record.message = message;
    log_.log.fold(record, now_ - ago);
  }

  /// Reports of the restore worker at one hog a second up to `count`, the last just now.
  void hog(std::uint64_t count, double per_second = 1) {
    for (std::uint64_t printed = 4, step = 1; printed <= count; printed += step, step *= 2) {
      const double ago = static_cast<double>(count - printed) / per_second;
      say("workqueue: amdgpu_amdkfd_restore_userptr_worker [amdgpu] hogged CPU for >10000us " +
              std::to_string(printed) + " times, consider switching to WQ_UNBOUND",
          seconds(static_cast<long>(ago)));
    }
  }

  Verdict verdict() { return judge_host(evidence_).judgement.verdict; }

  const TimePoint now_ = from_unix_seconds(1'790'000'000);
  KernelLogFacts log_;
  HostEvidence evidence_;
};

TEST_F(HostVerdict, HealthWantsItsEvidence) {
  EXPECT_EQ(verdict(), Verdict::kHealthy);
  evidence_.has_kfd = false;
  EXPECT_EQ(verdict(), Verdict::kUnknown);
  evidence_.has_kfd = true;
  evidence_.kernel_log = nullptr;
  EXPECT_EQ(verdict(), Verdict::kUnknown);
  evidence_.no_gpu = true;  // nothing to be wrong with
  EXPECT_EQ(verdict(), Verdict::kHealthy);
  evidence_.has_procfs = false;
  EXPECT_EQ(verdict(), Verdict::kUnknown);
}

TEST_F(HostVerdict, MemoryPressureIsOneWithSeatsResident) {
  evidence_.memory_stalled = 0.0555;  // of the record, with 87 GiB available
  EXPECT_EQ(verdict(), Verdict::kMemoryPressure);
  evidence_.memory_stalled = 0.0199;
  EXPECT_EQ(verdict(), Verdict::kHealthy);
  evidence_.pages_taken = 1000;
  EXPECT_EQ(verdict(), Verdict::kMemoryPressure);
  evidence_.seats.clear();
  EXPECT_EQ(verdict(), Verdict::kHealthy);
}

TEST_F(HostVerdict, HeadroomIsTheLargerOfTwoGibibytesAndTwoPercent) {
  evidence_.limits = {{"GTT", "mem_info_gtt_used", 112 * kGiB, 109 * kGiB}};
  EXPECT_EQ(verdict(), Verdict::kHealthy);
  evidence_.limits[0].used = 109.9 * kGiB;
  EXPECT_EQ(verdict(), Verdict::kGpuMemoryExhausted);
  evidence_.limits[0] = {"GTT", "mem_info_gtt_used", 8 * kGiB, 6.5 * kGiB};
  EXPECT_EQ(verdict(), Verdict::kGpuMemoryExhausted);
}

TEST_F(HostVerdict, RefusalIsNewsForAQuarterOfAnHour) {
  say("amdgpu: SVM mapping failed, exceeds resident system memory limit", seconds(899));
  EXPECT_EQ(verdict(), Verdict::kGpuMemoryExhausted);
  evidence_.now += seconds(2);
  EXPECT_EQ(verdict(), Verdict::kHealthy);
}

TEST_F(HostVerdict, FaultOfTheGpuIsWorseThanExhaustion) {
  say("amdgpu: SVM mapping failed, exceeds resident system memory limit", seconds(60));
  say("amdgpu 0000:c5:00.0: amdgpu: MES failed to respond to msg=REMOVE_QUEUE", seconds(30));
  const HostJudgement host = judge_host(evidence_);
  EXPECT_EQ(host.judgement.verdict, Verdict::kGpuFault);
  EXPECT_EQ(host.judgement.since, now_ - seconds(30));
  ASSERT_EQ(host.judgement.evidence.size(), 2U);
  EXPECT_EQ(host.judgement.evidence[0].what, "mes_timeout");  // the strongest first
}

TEST_F(HostVerdict, HogsAreThrashFromSixtySevenOn) {
  hog(35);
  EXPECT_EQ(verdict(), Verdict::kHealthy);
  hog(131);
  const HostJudgement host = judge_host(evidence_);
  EXPECT_EQ(host.judgement.verdict, Verdict::kKfdThrash);
  ASSERT_FALSE(host.judgement.evidence.empty());
  EXPECT_THAT(host.judgement.evidence[0].value, HasSubstr("131 hogs"));
  EXPECT_TRUE(host.judgement.since);
}

TEST_F(HostVerdict, HogsThatEndedAreNone) {
  hog(131);
  log_.per_cpu_kworker_cores = 0.0001;  // one hog burns 10 ms at least
  EXPECT_EQ(verdict(), Verdict::kHealthy);
}

TEST_F(HostVerdict, HogsOfAnotherDriverAreNone) {
  for (const int count : {4, 5, 7, 11, 19, 35, 67, 131, 259, 515}) {
    say("workqueue: output_poll_execute [drm_kms_helper] hogged CPU for >10000us " +
            std::to_string(count) + " times, consider switching to WQ_UNBOUND",
        seconds(515 - count));
  }
  EXPECT_EQ(verdict(), Verdict::kHealthy);
}

TEST_F(HostVerdict, SeatThatThrashesIsEnough) {
  Evidence reason;
  reason.what = "mmap_lock held";
  evidence_.seats["wedged"] = {SeatState::kThrashing, now_ - minutes(52), {reason}, false};
  evidence_.seats["busy"] = {SeatState::kComputing, now_ - minutes(1), {}, true};
  evidence_.seats["older"] = {SeatState::kComputing, now_ - minutes(1), {}, false};
  evidence_.seats["loads"] = {SeatState::kLoading, now_ - minutes(1), {}, false};
  const HostJudgement host = judge_host(evidence_);
  EXPECT_EQ(host.judgement.verdict, Verdict::kKfdThrash);
  EXPECT_EQ(host.judgement.since, now_ - minutes(52));
  EXPECT_THAT(host.concerned, ElementsAre("wedged"));
  EXPECT_THAT(host.safe, ElementsAre("busy", "llama"));
  EXPECT_THAT(host.unproven, ElementsAre("older"));
}

TEST_F(HostVerdict, EvidenceForTheWorstComesFirst) {
  Evidence first;
  first.what = "mmap_lock held";
  Evidence second;
  second.what = "queues evicted";
  evidence_.seats["a"] = {SeatState::kThrashing, now_, {first, second}, false};
  Evidence reads;
  reads.what = "reads";
  evidence_.seats["z"] = {SeatState::kIoStarved, now_, {reads}, false};
  evidence_.memory_stalled = 0.5;
  const auto evidence = judge_host(evidence_).judgement.evidence;
  ASSERT_EQ(evidence.size(), 4U);
  EXPECT_EQ(evidence[0].what, "seat a: mmap_lock held");
  EXPECT_EQ(evidence[1].what, "seat a: queues evicted");
  EXPECT_EQ(evidence[2].what, "seat z: reads");
}

TEST_F(HostVerdict, EventOfTheFutureIsNotRecent) {
  say("amdgpu 0000:c5:00.0: amdgpu: GPU reset begin!", seconds(10));
  EXPECT_EQ(verdict(), Verdict::kGpuFault);
  evidence_.now -= std::chrono::hours(3);  // the clock was set back
  EXPECT_EQ(verdict(), Verdict::kHealthy);
}

TEST_F(HostVerdict, StarvedSeatIsStarvation) {
  Evidence reason;
  reason.what = "reads";
  evidence_.seats["loads"] = {SeatState::kIoStarved, now_ - minutes(3), {reason}, false};
  EXPECT_EQ(verdict(), Verdict::kIoStarvation);
  evidence_.memory_stalled = 0.5;
  EXPECT_EQ(verdict(), Verdict::kIoStarvation);
}

TEST_F(HostVerdict, SpinAloneIsADoubt) {
  Evidence reason;
  reason.what = "one thread of a load in a loop without system calls";
  evidence_.seats["wedged"] = {SeatState::kSpinning, now_ - minutes(3), {reason}, false};
  const HostJudgement host = judge_host(evidence_);
  EXPECT_EQ(host.judgement.verdict, Verdict::kHealthy);
  EXPECT_THAT(host.concerned, ElementsAre("wedged"));
  EXPECT_THAT(host.judgement.doubts, ElementsAre(HasSubstr("seat wedged is spinning for 3m: one")));
}

TEST_F(HostVerdict, SaysWhatIsNotKnown) {
  EXPECT_THAT(judge_host(evidence_).not_known, IsEmpty());
  log_.log.lose("kmsg_overrun", 7);
  log_.log.mark_incomplete();
  log_.hog_warning_threshold = 0;
  evidence_.seats_omitted = 2;
  EXPECT_EQ(judge_host(evidence_).not_known.size(), 4U);
}

}  // namespace
}  // namespace apu
