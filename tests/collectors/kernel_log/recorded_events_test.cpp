// The recorded logs of tests/cases, read by rule: what each must count, and what it must not.

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "collectors/kernel_log/state.h"
#include "exporter/text.h"
#include "tests/support/collector_files.h"
#include "tests/support/collector_log.h"

namespace apu {
namespace {

const TimePoint kNow = from_unix_seconds(1'790'000'000);  // September 2026

using Counts = std::map<std::string, std::uint64_t>;

Counts event_counts(const KernelLogState& log) {
  Counts counts;
  for (const auto& [kind, event] : log.events()) {
    for (const auto& [gpu, lines] : event.lines) {
      counts[std::string(to_label(kind))] += lines;
    }
  }
  return counts;
}

Counts hog_counts(const KernelLogState& log) {
  Counts counts;
  for (const auto& [key, series] : log.hogs()) {
    counts[key.first] = series.printed().back();
  }
  return counts;
}

KernelLogState state_of(const std::string& file) {
  return fold_log(read_file(case_path(file)), kNow);
}

/// A log whose lines have lost their stamps: each is a message of the kernel.
KernelLogState state_of_bare(const std::string& file) {
  KernelLogState state;
  for_each_line(read_file(case_path(file)), [&](std::string_view line) {
    LogRecord record;
    record.origin = Origin::kKernel;
    record.message = line;
    state.fold(record, std::nullopt);
  });
  return state;
}

struct ExpectedEvents {
  const char* file;
  Counts events;
};

class RecordedEvents : public testing::TestWithParam<ExpectedEvents> {};

TEST_P(RecordedEvents, AreTheseAndNoOthers) {
  EXPECT_EQ(event_counts(state_of(GetParam().file)), GetParam().events);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, RecordedEvents,
    testing::Values(
        ExpectedEvents{"02-two-workers-interleaved-dmesgT/dmesg-T.log",
                       {{"queue_buffer_freed", 2}}},
        ExpectedEvents{"06-kfd-teardown-workers/dmesg.log", {{"mes_timeout", 1}}},
        ExpectedEvents{"07-other-drivers-negative/mixed.log", {}},
        ExpectedEvents{"12-look-alike-names/dmesg.log", {}},
        ExpectedEvents{"13-kmsg-raw-records/kmsg.bin",
                       {{"svm_mapping_failed", 1}, {"mes_timeout", 1}}},
        ExpectedEvents{"15-journald-missed-messages/journal-short.log",
                       {{"userptr_get_pages_failed", 2}}},
        ExpectedEvents{"19-bytes-that-are-not-utf8/journal-short.log", {{"svm_mapping_failed", 1}}},
        ExpectedEvents{"20-callbacks-suppressed/dmesg.log", {}},
        ExpectedEvents{"24-svm-restore-runaway-1027/dmesg.log", {{"gpu_page_fault", 1}}},
        ExpectedEvents{
            "26-svm-failure-is-info-level/kmsg.bin",
            {{"svm_mapping_failed", 2}, {"queue_buffer_freed", 1}, {"kfd_quiesce_failed", 1}}},
        ExpectedEvents{"28-failed-to-resume-is-not-a-hog/journal-short-precise.log",
                       {{"kfd_resume_failed", 1},
                        {"mes_timeout", 1},
                        {"queue_evict_failed", 1},
                        {"process_evict_failed", 1},
                        {"gpu_reset", 1}}},
        ExpectedEvents{"29-quiesce-cascade-mes-reset/dmesg.log",
                       {{"mes_timeout", 1},
                        {"queue_evict_failed", 1},
                        {"process_evict_failed", 1},
                        {"kfd_quiesce_failed", 1},
                        {"gpu_reset", 1},
                        {"queue_buffer_freed", 2}}},
        ExpectedEvents{"31-mes-old-wording/journal-a.log",
                       {{"mes_timeout", 1},
                        {"queue_evict_failed", 1},
                        {"process_evict_failed", 1},
                        {"gpu_reset", 1}}},
        ExpectedEvents{"31-mes-old-wording/rsyslog-b.log",
                       {{"mes_timeout", 3},
                        {"gpu_ring_timeout", 1},
                        {"queue_evict_failed", 1},
                        {"process_evict_failed", 1},
                        {"gpu_reset", 1},
                        {"kfd_other", 3}}},
        ExpectedEvents{"33-vital-buffer-benign/dmesg-a.log", {{"queue_buffer_freed", 2}}},
        ExpectedEvents{"33-vital-buffer-benign/dmesg-b.log", {{"queue_buffer_freed", 12}}},
        ExpectedEvents{"34-vital-buffer-with-gpu-reset/journal-short-precise.log",
                       {{"queue_buffer_freed", 10},
                        {"mes_timeout", 3},
                        {"queue_evict_failed", 4},
                        {"gpu_reset", 1}}},
        ExpectedEvents{
            "36-device-lost-from-bus/journal-short.log",
            {{"gpu_ring_timeout", 1}, {"gpu_reset", 1}, {"gpu_lost", 1}, {"gpu_reset_failed", 1}}},
        ExpectedEvents{"38-init-user-pages-errnos-and-flood/texts.log",
                       {{"userptr_get_pages_failed", 3}}},
        ExpectedEvents{"38-init-user-pages-errnos-and-flood/flood.log",
                       {{"userptr_get_pages_failed", 740}}},
        ExpectedEvents{"40-phrases-unverified/as-published.log", {}},
        ExpectedEvents{"40-phrases-unverified/likely-original.log", {{"kfd_resume_failed", 1}}},
        ExpectedEvents{"41-dyndbg-flood/dmesg.log", {{"svm_restore_rescheduled", 300}}},
        ExpectedEvents{"43-single-prefix-on-newer-kernels/journal-short-precise.log",
                       {{"gpu_ring_timeout", 1}, {"gpu_reset", 1}}},
        ExpectedEvents{"44-global-oom-gtt-not-in-rss/dmesg.log", {{"kfd_other", 1}}}));

TEST(RecordedHogs, OfSeveralWorkersAreKeptApart) {
  EXPECT_EQ(hog_counts(state_of("02-two-workers-interleaved-dmesgT/dmesg-T.log")),
            (Counts{{"svm_range_restore_work", 131},
                    {"amdgpu_amdkfd_restore_userptr_worker", 11},
                    {"dm_handle_vmin_vmax_update", 11}}));
}

TEST(RecordedHogs, OfAReversedLogAreNoResets) {
  const KernelLogState log = state_of("04-reverse-order-localised-pager-cut/journal-r.log");
  EXPECT_EQ(hog_counts(log), (Counts{{"svm_range_restore_work", 35}}));
  EXPECT_EQ(log.hogs().begin()->second.resets(), 0U);
}

TEST(RecordedHogs, OfTeardownAreNoRestoreHogs) {
  EXPECT_EQ(hog_counts(state_of("06-kfd-teardown-workers/dmesg.log")),
            (Counts{{"kfd_process_wq_release", 5}, {"svm_range_deferred_list_work", 5}}));
}

TEST(RecordedHogs, AreFoundBehindFourteenKindsOfStamps) {
  const KernelLogState log = state_of("17-one-line-in-fourteen-formats/formats.log");
  EXPECT_EQ(hog_counts(log), (Counts{{"amdgpu_amdkfd_restore_userptr_worker", 65539}}));
  EXPECT_EQ(log.hogs().begin()->second.lines(), 14U);
}

TEST(RecordedLosses, AreThoseThatJournaldAndTheKernelAdmit) {
  EXPECT_EQ(state_of("15-journald-missed-messages/journal-short.log").lost().at("journald_missed"),
            82U);  // 81, and one of unknown size
  EXPECT_EQ(state_of("20-callbacks-suppressed/dmesg.log").lost().at("ratelimit"),
            27U + 1616 + 156 + 66);
}

TEST(RecordedBursts, AreFiveSecondsApart) {
  const auto bursts = [](const char* file, EventKind kind) {
    return state_of(file).events().at(kind).bursts;
  };
  EXPECT_EQ(bursts("33-vital-buffer-benign/dmesg-b.log", EventKind::kQueueBufferFreed), 1U);
  EXPECT_EQ(
      bursts("38-init-user-pages-errnos-and-flood/flood.log", EventKind::kUserptrGetPagesFailed),
      1U);
}

TEST(RecordedGpus, AreNamedWhereTheLineNamesThem) {
  const auto& newer = state_of("43-single-prefix-on-newer-kernels/journal-short-precise.log");
  EXPECT_TRUE(newer.events().at(EventKind::kGpuRingTimeout).lines.contains("0000:0c:00.0"));
  const auto& quiesce = state_of("29-quiesce-cascade-mes-reset/dmesg.log");
  EXPECT_TRUE(quiesce.events().at(EventKind::kKfdQuiesceFailed).lines.contains(""));
}

TEST(RecordedHungTask, IsTheGpusByItsStack) {
  EXPECT_EQ(event_counts(state_of_bare("60-hung-task-svm-restore/dmesg.log")),
            (Counts{
                {"hung_task", 1},
                {"hung_task_gpu", 1},
            }));
}

// --- the OOM killer

Counts oom_events(const KernelLogState& log) {
  Counts counts;
  for (const auto& [scope, events] : log.oom().events()) {
    counts[std::string(to_label(scope))] = events;
  }
  return counts;
}

Counts oom_kills(const KernelLogState& log) {
  Counts counts;
  for (const auto& [key, kills] : log.oom().kills()) {
    counts[std::string(to_label(key.first)) + " " + key.second] = kills.kills;
  }
  return counts;
}

TEST(RecordedOom, OfTheHostIsNotOfTheUnitThatDies) {
  const KernelLogState log = state_of("44-global-oom-gtt-not-in-rss/dmesg.log");
  EXPECT_EQ(oom_events(log), (Counts{{"host", 1}}));
  EXPECT_EQ(oom_kills(log),
            (Counts{{"host 1000/app-org.wezfurlong.wezterm@00000000000000000000000000000000", 1}}));
}

TEST(RecordedOom, OfALimitIsOneKillOfFiveLines) {
  const KernelLogState log = state_of("45-memcg-oom-systemd-unit/journal-short.log");
  EXPECT_EQ(oom_events(log), (Counts{{"memcg", 1}}));
  EXPECT_EQ(oom_kills(log), (Counts{{"memcg ollama", 1}}));
  EXPECT_TRUE(log.units().empty());
}

TEST(RecordedOom, OfPodsIsOfTheMemcg) {
  EXPECT_EQ(oom_events(state_of("47-k8s-kmsg-two-cgroup-styles/kmsg.bin")), (Counts{{"memcg", 2}}));
}

TEST(RecordedOom, OfAGroupCountsEachProcessOnce) {
  const KernelLogState memcg = state_of("49-oom-group-duplicates/memcg-group.log");
  EXPECT_EQ(oom_events(memcg), (Counts{{"memcg", 1}}));
  EXPECT_EQ(oom_kills(memcg), (Counts{{"memcg c1c1c1c1c1c1", 10}}));
  const KernelLogState global = state_of("49-oom-group-duplicates/global-group.log");
  EXPECT_EQ(oom_events(global), (Counts{{"host", 2}}));
  EXPECT_EQ(oom_kills(global), (Counts{{"host ", 2}}));  // a pager cut the names of the cgroups
}

TEST(RecordedOom, OfTheHostAndOfALimitAreTwoCauses) {
  EXPECT_EQ(oom_events(state_of("51-docker-global-dmesgT/dmesg.log")),
            (Counts{{"host", 3}, {"memcg", 1}}));
}

TEST(RecordedOom, BySystemdOomdIsNotTheKernels) {
  const KernelLogState log = state_of("54-oomd-without-kernel-line/journal-short.log");
  EXPECT_TRUE(oom_events(log).empty());
  EXPECT_TRUE(oom_kills(log).empty());
}

TEST(RecordedOom, NameThatIsNoUtf8IsOneKill) {
  EXPECT_EQ(oom_events(state_of("19-bytes-that-are-not-utf8/kmsg.bin")), (Counts{{"host", 1}}));
  EXPECT_EQ(oom_kills(state_of("19-bytes-that-are-not-utf8/journal-short.log")),
            (Counts{{"host ", 1}}));
}

// --- the service manager

std::uint64_t unit_count(const KernelLogState& log, UnitEventKind kind, const char* unit) {
  const auto found = log.units().find({kind, unit});
  return found == log.units().end() ? 0 : found->second.events;
}

TEST(RecordedUnits, AreKilledWhenTheyDoNotStop) {
  EXPECT_EQ(unit_count(state_of("58-sigkill-llama-server-ro/journal-short.log"),
                       UnitEventKind::kSigkill, "llama-26b"),
            2U);
  EXPECT_EQ(unit_count(state_of("58-sigkill-llama-server-ro/as-published.log"),
                       UnitEventKind::kSigkill, ""),
            2U);
  const KernelLogState lost = state_of("36-device-lost-from-bus/journal-short.log");
  EXPECT_EQ(unit_count(lost, UnitEventKind::kSigkill, "llama.cpp"), 1U);
  EXPECT_EQ(unit_count(lost, UnitEventKind::kStopTimeout, "llama.cpp"), 1U);
}

}  // namespace
}  // namespace apu
