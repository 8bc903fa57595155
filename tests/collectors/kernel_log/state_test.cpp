#include "collectors/kernel_log/state.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/collector_files.h"
#include "tests/support/collector_log.h"

namespace apu {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const TimePoint kStart = from_unix_seconds(1783000000);
const HogRule kRule{4};

constexpr const char* kRefusal = "amdgpu: SVM mapping failed, exceeds resident system memory limit";
const std::string kGpuRefusal =
    "amdgpu 0000:c5:00.0: amdgpu: SVM mapping failed, exceeds resident system memory limit";

LogRecord record(std::string_view message, Origin origin = Origin::kKernel) {
  LogRecord made;
  made.origin = origin;
  made.message = message;
  return made;
}

std::string hog(const std::string& function, std::uint64_t count) {
  return "workqueue: " + function + " [amdgpu] hogged CPU for >10000us " + std::to_string(count) +
         " times";
}

/// The refusals that `state` counted, over all GPUs.
const EventCounts& refusals(const KernelLogState& state) {
  return state.events().at(EventKind::kSvmMappingFailed);
}

KernelLogState fold_case(const std::string& file) {
  return fold_log(read_file(case_path(file)), kStart, kStart);
}

TEST(KernelLogStateTest, RecordsOfUserSpaceCountNothing) {
  KernelLogState state;
  for (const std::string& message : {hog("f", 999999), std::string(kRefusal),
                                     std::string("workqueue: f hogged CPU for >10000us")}) {
    EXPECT_EQ(state.fold(record(message, Origin::kUserspace), kStart), std::nullopt);
  }
  EXPECT_EQ(state.ignored(), 3U);
  EXPECT_EQ(state.lines(), 0U);
  EXPECT_TRUE(state.hogs().empty());
  EXPECT_TRUE(state.events().empty());
}

TEST(KernelLogStateTest, HogWithoutACountIsTroubleAndChangesNothing) {
  KernelLogState state;
  state.fold(record(hog("f", 67)), kStart);
  EXPECT_EQ(state.fold(record("workqueue: f [amdgpu] hogged CPU for >10000us"), kStart),
            KernelLogState::Trouble::kHogWithoutCount);
  EXPECT_EQ(state.hogs().at({"f", "amdgpu"}).count(kRule), 67U);
  EXPECT_EQ(state.hogs().at({"f", "amdgpu"}).lines(), 1U);
  EXPECT_EQ(state.lines(), 2U);
}

TEST(KernelLogStateTest, FunctionsBeyondTheKernelsLimitAreDropped) {
  KernelLogState state;
  for (size_t i = 0; i < KernelLogState::kMaxHogFunctions + 10; ++i) {
    state.fold(record(hog("f" + std::to_string(i), 4)), kStart);
  }
  EXPECT_EQ(state.hogs().size(), 128U);
  state.fold(record(hog("f0", 5)), kStart + seconds(9));
  EXPECT_EQ(state.hogs().at({"f0", "amdgpu"}).count(kRule), 5U);
}

TEST(KernelLogStateTest, LossTakesTheUpperBoundFromEverySeries) {
  KernelLogState state;
  state.fold(record(hog("f", 67)), kStart);
  state.fold(record(hog("g", 67)), kStart);
  state.lose("kmsg_overrun", 7);
  state.lose("kmsg_overrun", 3);
  EXPECT_EQ(state.lost().at("kmsg_overrun"), 10U);
  state.fold(record(hog("f", 131)), kStart + seconds(9));
  EXPECT_EQ(state.hogs().at({"f", "amdgpu"}).upper_bound(kRule), 259U);
  EXPECT_EQ(state.hogs().at({"g", "amdgpu"}).upper_bound(kRule), std::nullopt);
}

// --- events

TEST(KernelLogStateTest, EventsCountByGpu) {
  KernelLogState state;
  state.fold(record(kRefusal), kStart);
  state.fold(record(kGpuRefusal), kStart + seconds(1));
  state.fold(record(kGpuRefusal), kStart + seconds(2));
  EXPECT_EQ(refusals(state).lines.at(""), 1U);
  EXPECT_EQ(refusals(state).lines.at("0000:c5:00.0"), 2U);
  EXPECT_EQ(refusals(state).bursts, 1U);
  EXPECT_EQ(refusals(state).last_time, kStart + seconds(2));
}

TEST(KernelLogStateTest, LinesFiveSecondsApartAreOneBurstAndFurtherApartTwo) {
  KernelLogState state;
  state.fold(record(kRefusal), kStart);
  state.fold(record(kRefusal), kStart + seconds(5));
  state.fold(record(kRefusal), kStart + seconds(10));
  EXPECT_EQ(refusals(state).bursts, 1U);
  state.fold(record(kRefusal), kStart + seconds(15) + milliseconds(1));
  EXPECT_EQ(refusals(state).bursts, 2U);
  EXPECT_EQ(refusals(state).lines.at(""), 4U);
}

TEST(KernelLogStateTest, LateLineIsNoNewBurstAndNotTheLast) {
  KernelLogState state;
  state.fold(record(kRefusal), kStart + seconds(60));
  state.fold(record(kRefusal), kStart);
  EXPECT_EQ(refusals(state).bursts, 1U);
  EXPECT_EQ(refusals(state).last_time, kStart + seconds(60));
}

TEST(KernelLogStateTest, LinesWithoutATimeAreOneBurst) {
  KernelLogState state;
  state.fold(record(kRefusal), std::nullopt);
  state.fold(record(kRefusal), std::nullopt);
  EXPECT_EQ(refusals(state).bursts, 1U);
  EXPECT_EQ(refusals(state).last_time, std::nullopt);
}

// --- the banner

TEST(IsBootBanner, IsTheFirstLineThatAKernelPrints) {
  EXPECT_TRUE(is_boot_banner("Linux version 6.14.0-36-generic (buildd@lcy02-amd64-067) (gcc 13)"));
  EXPECT_TRUE(is_boot_banner("Linux version 6.17.0 (build@host)"));
}

TEST(IsBootBanner, NameOfAProcessIsNone) {
  for (const char* message :
       {"Linux version 9[4711]: segfault at 0 ip 0000000000401136 sp 00007ffd2a1b3c40 error 4",
        "Linux version 9 (4711): drop_caches: 3",
        "Linux version 9 (pid 4711) is setting deprecated v1 encryption policy; a@b",
        "Linux version 9 invoked oom-killer: gfp_mask=0x1 (a@b)", "Linux version ",
        "Linux version  (a@b)", "Linux  version 6 (a@b)", "x Linux version 6 (a@b)"}) {
    EXPECT_FALSE(is_boot_banner(message)) << message;
  }
}

// --- recorded logs

TEST(RecordedLogs, HogWithoutCount) {
  KernelLogState state;
  EXPECT_EQ(state.fold(record("workqueue: amdgpu_amdkfd_restore_userptr_worker [amdgpu] hogged CPU "
                              "for >10000us>"),
                       kStart),
            KernelLogState::Trouble::kHogWithoutCount);
  EXPECT_TRUE(fold_case("09-hog-line-without-count/lines.log").hogs().empty());
}

TEST(RecordedLogs, CountFallsAcrossAReboot) {
  const auto state = fold_case("10-count-falls-across-reboot/journal-no-separator.log");
  const auto& series = state.hogs().at({"amdgpu_amdkfd_restore_userptr_worker", "amdgpu"});
  EXPECT_EQ(series.count(kRule), 5U);
  EXPECT_EQ(series.resets(), 1U);
}

TEST(RecordedLogs, LookAlikeNames) {
  const auto state = fold_case("12-look-alike-names/dmesg.log");
  const auto count = [&](const char* function, const char* module) {
    return state.hogs().at({function, module}).count(kRule);
  };
  EXPECT_EQ(count("amdgpu_amdkfd_restore_userptr_worker", "amdgpu"), 7U);
  EXPECT_EQ(count("restore_userptr_worker", "foodrv"), 35U);
  EXPECT_EQ(count("svm_range_restore_work", "amdkcl"), 19U);
  EXPECT_EQ(count("xe_svm_range_restore_work", "xe"), 67U);
  EXPECT_EQ(count("unknown", ""), 4U);
  EXPECT_EQ(state.hogs().size(), 5U);
}

TEST(RecordedLogs, RawRecords) {
  const auto state = fold_case("13-kmsg-raw-records/kmsg.bin");
  EXPECT_EQ(state.hogs().at({"svm_range_restore_work", "amdgpu"}).count(kRule), 4U);
  EXPECT_EQ(state.hogs().at({"amdgpu_amdkfd_restore_userptr_worker", "amdgpu"}).count(kRule),
            32771U);
  EXPECT_EQ(refusals(state).lines.at(""), 1U);
  EXPECT_EQ(state.ignored(), 1U);
  EXPECT_EQ(state.lines(), 6U);
}

TEST(RecordedLogs, SuppressedCallbacksAreNoEvents) {
  const auto state = fold_case("20-callbacks-suppressed/dmesg.log");
  EXPECT_EQ(state.lines(), 6U);
  EXPECT_TRUE(state.events().empty());
  EXPECT_TRUE(state.hogs().empty());
}

TEST(RecordedLogs, RefusalsAreInfoLevel) {
  const auto state = fold_case("26-svm-failure-is-info-level/kmsg.bin");
  EXPECT_EQ(refusals(state).lines.at(""), 2U);
  EXPECT_EQ(state.hogs().at({"amdgpu_amdkfd_restore_userptr_worker", "amdgpu"}).count(kRule), 4U);
  const auto filtered = fold_case("26-svm-failure-is-info-level/journal-p-warning.log");
  EXPECT_FALSE(filtered.events().contains(EventKind::kSvmMappingFailed));
}

TEST(RecordedLogs, LinesCutByThePublisherAreNotGuessed) {
  const auto state = fold_case("01-hog-week/as-published.log");
  for (const auto& [key, series] : state.hogs()) {
    EXPECT_LE(series.lines(), 1U);
  }
  EXPECT_LE(state.hogs().size(), 1U);
}

}  // namespace
}  // namespace apu
