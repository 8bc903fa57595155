#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/log_entry.h"
#include "analysis/meaning.h"
#include "analysis/ordering.h"
#include "collectors/kernel_log/hog.h"
#include "collectors/kernel_log/state.h"
#include "verdict/verdict.h"

namespace apu {

/// A line that tells something, with those of the same label that follow it at once.
struct TimelineLine {
  size_t file = 0;
  std::uint64_t line = 0;
  std::optional<TimePoint> time;
  LineMeaning meaning;
  std::string text;
  std::uint64_t more = 0;              ///< lines of the same label right after it
  std::optional<TimePoint> last_time;  ///< of the last of those
};

/// How a boot ended, as far as its log tells.
enum class BootEnd {
  kNotTold,         ///< it is the last one of the log
  kShutdown,        ///< the service manager took it down
  kNoShutdown,      ///< another boot follows, and the service manager tells of no shutdown
  kNoShutdownLine,  ///< the same, but the log has no lines of the service manager
};

/// What the log says of one boot.
struct BootAnalysis {
  std::string id;
  std::string kernel;                   ///< version, where the log has the boot's first line
  std::string machine;                  ///< the kernel's DMI line
  std::vector<std::string> parameters;  ///< of the kernel's command line, those of GPU and TTM
  std::vector<std::string> gpu_notes;   ///< what the driver said of its memory when it came up
  bool begins_here = false;             ///< the log reaches back to its start
  /// Times are those since boot, from the epoch: no line has any other.
  bool times_are_uptime = false;
  std::optional<TimePoint> first_time;
  std::optional<TimePoint> last_time;
  BootEnd end = BootEnd::kNotTold;
  bool has_manager_lines = false;  ///< else unit kills and shutdowns cannot be seen

  KernelLogState log;
  HogRule rule;
  std::vector<std::pair<KernelLogState::HogKey, HogSeries>> ended_series;
  std::uint64_t hogs_without_count = 0;
  std::uint64_t hung_restore_workers = 0;
  std::optional<TimePoint> first_hung_restore_worker;
  std::uint64_t oomd_kills = 0;
  std::uint64_t oomd_killed_processes = 0;
  std::uint64_t duplicates = 0;

  std::vector<TimelineLine> timeline;
  Judgement judgement;
};

/// All that the files say.
struct Analysis {
  std::vector<LogFile> files;
  std::vector<BootAnalysis> boots;  ///< the oldest first

  /// The boot whose verdict is the worst, of several the latest; nullptr if there is no boot.
  [[nodiscard]] const BootAnalysis* worst() const;

  [[nodiscard]] bool any_unreadable() const;

  [[nodiscard]] bool any_kernel_line() const;
};

/// Pure. `files` as LogReader left them.
Analysis analyze(std::vector<LogFile> files);

}  // namespace apu
