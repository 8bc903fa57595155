#include "collectors/kernel_log/relevance.h"

#include <gtest/gtest.h>

#include "collectors/kernel_log/record.h"
#include "collectors/kernel_log/state.h"
#include "exporter/text.h"
#include "tests/support/collector_files.h"

namespace apu {
namespace {

const TimePoint kNow = from_unix_seconds(1'790'000'000);

/// Whether a state that takes `record` has counted more than a line.
bool counts(const LogRecord& record) {
  KernelLogState state;
  const bool trouble = state.fold(record, std::nullopt).has_value();
  return trouble || !state.hogs().empty() || !state.events().empty() || !state.lost().empty() ||
         !state.units().empty() || !state.oom().events().empty() || !state.oom().kills().empty() ||
         is_boot_banner(record.message);
}

/// Calls `visit` for every line of every recorded log.
template <typename Visit>
void for_each_recorded_line(Visit visit) {
  size_t lines = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(case_path(""))) {
    const auto extension = entry.path().extension();
    if (extension != ".log" && extension != ".bin") {
      continue;
    }
    for_each_line(read_file(entry.path()), [&](std::string_view line) {
      ++lines;
      visit(line);
    });
  }
  EXPECT_GT(lines, 1000U);
}

TEST(Relevance, NoMessageThatCountsIsDenied) {
  for_each_recorded_line([](std::string_view line) {
    const ParsedLine parsed = parse_log_line(line, kNow);
    if (parsed.record.origin == Origin::kKernel && counts(parsed.record)) {
      EXPECT_TRUE(may_matter(parsed.record.message)) << line;
    }
  });
}

TEST(Relevance, MostLinesOfAKernelAreDenied) {
  for (const char* message :
       {"usb 1-1: new high-speed USB device number 2 using xhci_hcd", "", " continuation",
        "IPv6: ADDRCONF(NETDEV_CHANGE): eth0: link becomes ready", "EXT4-fs (sda1): mounted",
        "a: workqueue: amdgpu_amdkfd_restore_userptr_worker [amdgpu] hogged CPU for >10000us 4 "
        "times"}) {
    EXPECT_FALSE(may_matter(message)) << message;
  }
}

TEST(Triage, AgreesWithTheParser) {
  for_each_recorded_line([](std::string_view line) {
    const TriagedLine triaged = triage_line(line);
    if (triaged.triage == LineTriage::kLook) {
      return;
    }
    const ParsedLine parsed = parse_log_line(line, kNow);
    ASSERT_EQ(parsed.kind, LineKind::kRecord) << line;
    EXPECT_EQ(parsed.record.origin == Origin::kKernel, triaged.triage == LineTriage::kPlainKernel)
        << line;
    EXPECT_EQ(parsed.record.sequence, triaged.sequence) << line;
    if (triaged.since_boot) {
      EXPECT_EQ(parsed.record.since_boot, triaged.since_boot) << line;
    }
    EXPECT_FALSE(counts(parsed.record)) << line;
  });
}

TEST(Triage, KnowsTheFormsThatLogsAreIn) {
  const auto triage = [](std::string_view line) { return triage_line(line).triage; };
  for (const char* line :
       {"[    5.678901] usb 1-1: new device", "4,17,5678901,-;usb 1-1: new device",
        "6,17,5678901,-,caller=T1;usb 1-1: new device", "Jul  4 18:18:52 host kernel: usb 1-1: new",
        "Jul 04 18:18:52 kernel: usb 1-1: new",
        "Jul  4 18:18:52 host kernel: [    5.678901] usb 1-1: new",
        "2026-07-05T13:04:41.123456+02:00 host kernel: usb 1-1: new"}) {
    EXPECT_EQ(triage(line), LineTriage::kPlainKernel) << line;
  }
  for (const char* line : {"Jul  4 18:18:52 host sshd[12]: amdgpu: SVM mapping failed",
                           "12,17,5678901,-;amdgpu: SVM mapping failed",
                           "2026-07-05T13:04:41.123456+02:00 host app: workqueue: x"}) {
    EXPECT_EQ(triage(line), LineTriage::kPlainUser) << line;
  }
  for (const char* line :
       {"", "[", "[ 1", "-- Reboot --", "[    5.678901] amdgpu: x",
        "[    5.678901] host kernel: amdgpu: x", "[    5.678901] host app[7]: x",
        "Jul  4 18:18:52 host kernel: amdgpu: x",
        "Jul  4 18:18:52 host kernel: [    5.678901] amdgpu: x",
        "Jul  4 18:18:52 host kernel: net_ratelimit: 3 callbacks suppressed",
        "Jul  4 18:18:52 host systemd[1]: x: Killing process 3 (a) with signal SIGKILL.",
        "Jul  4 18:18:52 host systemd-oomd[8]: Killed /a", "4,17,5678901,-;amdgpu: x",
        "2026-07-05T13:04:41,123456+02:00 usb 1-1: new"}) {
    EXPECT_EQ(triage(line), LineTriage::kLook) << line;
  }
}

}  // namespace
}  // namespace apu
