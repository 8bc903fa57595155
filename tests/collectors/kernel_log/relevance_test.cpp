#include "collectors/kernel_log/relevance.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "collectors/kernel_log/kernel_log.h"
#include "collectors/kernel_log/state.h"
#include "exporter/text.h"
#include "tests/support/collector_log.h"

namespace apu {
namespace {

namespace fs = std::filesystem;

const TimePoint kNow = from_unix_seconds(1'783'300'000);

std::string content_of(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

/// The logs of all cases and fixtures.
std::vector<fs::path> recorded_logs() {
  std::vector<fs::path> logs;
  for (const char* directory : {"/tests/cases", "/tests/fixtures"}) {
    for (const auto& entry :
         fs::recursive_directory_iterator(std::string(APU_SOURCE_DIR) + directory)) {
      const std::string name = entry.path().filename().string();
      if (entry.is_regular_file() && (name.ends_with(".log") || name.ends_with(".txt"))) {
        logs.push_back(entry.path());
      }
    }
  }
  return logs;
}

/// Folds a log as a reader of the journal sends it: lines that stand for nothing are only counted.
KernelLogState fold_what_matters(std::string_view text, std::uint64_t& plain) {
  KernelLogState state;
  for_each_line(text, [&](std::string_view line) {
    const ParsedLine parsed = parse_log_line(line, kNow);
    const LogRecord& record = parsed.record;
    if (parsed.kind != LineKind::kRecord) {
      return;
    }
    if (record.origin == Origin::kKernel && !may_matter(record.message)) {
      ++plain;
      state.fold_plain_lines(1);
    } else if (record.origin == Origin::kKernel || record.origin == Origin::kUserspace ||
               may_matter_of_others(record.message)) {
      state.fold(record, resolve_time(record, std::nullopt));
    }
  });
  return state;
}

std::string counters_of(const KernelLogState& state) {
  KernelLogFacts facts;
  facts.log = state;
  std::string text;
  for (const auto& family : to_families(facts, kNow)) {
    for (const auto& metric : family.metric) {
      text += family.name;
      for (const auto& label : metric.label) {
        text += " " + label.name + "=" + label.value;
      }
      text += fmt::format(" {} {}\n", metric.counter.value, metric.gauge.value);
    }
  }
  return text;
}

TEST(Relevance, NothingThatCountsIsTakenForPlain) {
  std::uint64_t plain = 0;
  const auto logs = recorded_logs();
  EXPECT_GT(logs.size(), 30U);
  for (const fs::path& log : logs) {
    const std::string text = content_of(log);
    EXPECT_EQ(counters_of(fold_what_matters(text, plain)), counters_of(fold_log(text, kNow)))
        << log;
  }
  EXPECT_GT(plain, 50U);  // else nothing was tried
}

TEST(Relevance, KnowsWhatCounts) {
  for (const char* message : {"workqueue: a hogged CPU for >10000us 4 times",
                              "amdgpu: SVM mapping failed",
                              "amdgpu 0000:c5:00.0: amdgpu: anything at error level",
                              "kfd kfd: amdgpu: x",
                              "kfd2kgd: x",
                              "[drm:f [amdgpu]] *ERROR* x",
                              "[drm] VRAM is lost due to GPU reset",
                              "[TTM] Buffer eviction failed",
                              "INFO: task a:1 blocked for more than 120 seconds.",
                              "oom-kill:constraint=CONSTRAINT_NONE",
                              "Out of memory: Killed process 1 (a)",
                              "Memory cgroup out of memory: Killed process 1 (a)",
                              "oom_reaper: unable to reap pid:1",
                              "Tasks in /a are going to be killed due to memory.oom.group set",
                              "Linux version 6.14 (a@b)",
                              "site: 12 callbacks suppressed",
                              "site: 12 callbacks suppressed ",
                              "Future hung task reports are suppressed",
                              " svm_range_restore_work+0x1/0x2 [amdgpu]",
                              "Workqueue: events svm_range_restore_work"}) {
    EXPECT_TRUE(may_matter(message)) << message;
  }
}

TEST(Relevance, KnowsWhatDoesNot) {
  for (const char* message :
       {"", " ", "usb 1-1: new device", "audit: type=1400", "RIP: 0010:x+0x1/0x2",
        " ? schedule+0x1", "say workqueue: a hogged CPU", "x callbacks suppressed by hand"}) {
    EXPECT_FALSE(may_matter(message)) << message;
  }
}

TEST(Relevance, OfOthersKnowsUnitsAndLosses) {
  EXPECT_TRUE(may_matter_of_others("Missed 8 kernel messages"));
  EXPECT_TRUE(may_matter_of_others("/dev/kmsg buffer overrun, some messages lost."));
  EXPECT_TRUE(may_matter_of_others("a.service: Killing process 1 (a) with signal SIGKILL."));
  EXPECT_TRUE(may_matter_of_others("a.service: State 'stop-sigterm' timed out. Killing."));
  EXPECT_FALSE(may_matter_of_others("Started a.service."));
}

// --- triage

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
  for (const auto& entry : std::filesystem::recursive_directory_iterator(
           std::string(APU_SOURCE_DIR) + "/tests/cases")) {
    const auto extension = entry.path().extension();
    if (extension != ".log" && extension != ".bin") {
      continue;
    }
    for_each_line(content_of(entry.path()), [&](std::string_view line) {
      ++lines;
      visit(line);
    });
  }
  EXPECT_GT(lines, 1000U);
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

TEST(PlainLines, UseUpTheReportOfAHungTask) {
  const auto after = [](std::uint64_t plain) {
    KernelLogState state;
    LogRecord record;
    record.origin = Origin::kKernel;
    record.message = "INFO: task a:1 blocked for more than 120 seconds.";
    state.fold(record, std::nullopt);
    state.fold_plain_lines(plain);
    record.message = " svm_range_restore_work+0x1/0x2 [amdgpu]";
    state.fold(record, std::nullopt);
    return state.events().contains(EventKind::kHungTaskGpu);
  };
  EXPECT_TRUE(after(KernelLogState::kHungTaskLines - 1));
  EXPECT_FALSE(after(KernelLogState::kHungTaskLines));
  EXPECT_FALSE(after(KernelLogState::kHungTaskLines + 9));
}

}  // namespace
}  // namespace apu
