#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "collectors/kernel_log/event.h"
#include "collectors/kernel_log/hog.h"
#include "collectors/kernel_log/oom.h"
#include "collectors/kernel_log/record.h"
#include "collectors/kernel_log/unit_event.h"
#include "exporter/clock.h"

namespace apu {

class KernelLogStateCodec;

/// How often one kind of event was seen.
struct EventCounts {
  std::map<std::string, std::uint64_t, std::less<>> lines;  ///< by GPU, "" where none is named
  std::uint64_t bursts = 0;  ///< groups of lines that are at most kBurstGap apart
  std::optional<TimePoint> first_time;
  std::optional<TimePoint> last_time;
};

/// How often a service manager said one thing of one unit.
struct UnitCounts {
  std::uint64_t events = 0;
  std::optional<TimePoint> last_time;
};

/// What the kernel log of this boot said. Records are folded in one by one; pure, no I/O.
class KernelLogState {
 public:
  /// Lines further apart belong to different episodes.
  static constexpr std::chrono::seconds kBurstGap{5};

  /// The kernel tracks so many functions a boot; more can only be forged.
  static constexpr size_t kMaxHogFunctions = 128;

  using HogKey = std::pair<std::string, std::string>;  // function, module

  /// So many units get counts of their own; those of more are counted as of "other".
  static constexpr size_t kMaxUnits = 64;

  /// A host has fewer GPUs; lines of more are counted as of "other".
  static constexpr size_t kMaxGpus = 32;

  /// A hung task's stack has fewer lines.
  static constexpr unsigned kHungTaskLines = 64;

  /// Lines that say the same of one failed reset are no further apart.
  static constexpr std::chrono::seconds kResetRepeats{5};

  using UnitKey = std::pair<UnitEventKind, std::string>;

  /// What a record could not be read for, nullopt if it could.
  enum class Trouble { kHogWithoutCount };

  /// Folds a record in. Records of user space other than those of the service manager and of
  /// journald are counted and otherwise ignored.
  std::optional<Trouble> fold(const LogRecord& record, std::optional<TimePoint> time);

  /// Folds in lines of the kernel that stand for nothing: see may_matter.
  void fold_plain_lines(std::uint64_t count);

  /// `count` records of user space.
  void count_ignored(std::uint64_t count) { ignored_ += count; }

  /// `count` records of any kind were lost for the reason `by`.
  void lose(std::string_view by, std::uint64_t count);

  /// A record of an earlier boot, which counts nothing.
  void ignore_earlier_boot() { ++of_earlier_boots_; }

  /// The log begins at this boot's start.
  void mark_boot_start() { covers_boot_ = true; }

  /// Records of this boot are missing.
  void mark_incomplete() { covers_boot_ = false; }

  [[nodiscard]] const std::map<HogKey, HogSeries>& hogs() const { return hogs_; }

  [[nodiscard]] const std::map<EventKind, EventCounts>& events() const { return events_; }

  [[nodiscard]] const std::map<std::string, std::uint64_t, std::less<>>& lost() const {
    return lost_;
  }

  [[nodiscard]] const OomState& oom() const { return oom_; }

  [[nodiscard]] const std::map<UnitKey, UnitCounts>& units() const { return units_; }

  [[nodiscard]] std::uint64_t lines() const { return lines_; }

  [[nodiscard]] std::uint64_t ignored() const { return ignored_; }

  [[nodiscard]] std::uint64_t of_earlier_boots() const { return of_earlier_boots_; }

  [[nodiscard]] bool covers_boot() const { return covers_boot_; }

 private:
  friend class KernelLogStateCodec;
  void fold_manager(const LogRecord& record, std::optional<TimePoint> time);
  void fold_journald(std::string_view message);
  std::optional<Trouble> fold_kernel(const LogRecord& record, std::optional<TimePoint> time);
  bool fold_suppression(std::string_view message);
  void fold_hung_task_line(std::string_view message, std::optional<TimePoint> time);
  [[nodiscard]] bool repeats_failed_reset(const KernelEvent& event,
                                          std::optional<TimePoint> time) const;
  void fold_hog(const HogReport& report, std::optional<TimePoint> time);
  void fold_event(const KernelEvent& event, std::optional<TimePoint> time);

  std::map<HogKey, HogSeries> hogs_;
  std::map<EventKind, EventCounts> events_;
  std::map<std::string, std::uint64_t, std::less<>> lost_;
  OomState oom_;
  std::map<UnitKey, UnitCounts> units_;
  unsigned hung_task_lines_left_ = 0;  // of the last hung task's report
  std::uint64_t lines_ = 0;            // of the kernel
  std::uint64_t ignored_ = 0;          // of user space
  std::uint64_t of_earlier_boots_ = 0;
  bool covers_boot_ = false;
};

/// Whether `message` is the first line that a kernel prints.
bool is_boot_banner(std::string_view message);

}  // namespace apu
