#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "collectors/kernel_log/event.h"
#include "collectors/kernel_log/hog.h"
#include "collectors/kernel_log/record.h"
#include "exporter/clock.h"

namespace apu {

/// How often one kind of event was seen.
struct EventCounts {
  std::map<std::string, std::uint64_t, std::less<>> lines;  ///< by GPU, "" where none is named
  std::uint64_t bursts = 0;  ///< groups of lines that are at most kBurstGap apart
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

  /// What a record could not be read for, nullopt if it could.
  enum class Trouble { kHogWithoutCount };

  /// Folds a record in. Records of user space are counted and otherwise ignored.
  std::optional<Trouble> fold(const LogRecord& record, std::optional<TimePoint> time);

  /// `count` records were lost for the reason `by`.
  void lose(std::string_view by, std::uint64_t count);

  /// The log begins at this boot's start.
  void mark_boot_start() { covers_boot_ = true; }

  [[nodiscard]] const std::map<HogKey, HogSeries>& hogs() const { return hogs_; }

  [[nodiscard]] const std::map<EventKind, EventCounts>& events() const { return events_; }

  [[nodiscard]] const std::map<std::string, std::uint64_t, std::less<>>& lost() const {
    return lost_;
  }

  [[nodiscard]] std::uint64_t lines() const { return lines_; }

  [[nodiscard]] std::uint64_t ignored() const { return ignored_; }

  [[nodiscard]] bool covers_boot() const { return covers_boot_; }

 private:
  void fold_hog(const HogReport& report, std::optional<TimePoint> time);
  void fold_event(const KernelEvent& event, std::optional<TimePoint> time);

  std::map<HogKey, HogSeries> hogs_;
  std::map<EventKind, EventCounts> events_;
  std::map<std::string, std::uint64_t, std::less<>> lost_;
  std::uint64_t lines_ = 0;    // of the kernel
  std::uint64_t ignored_ = 0;  // of user space
  bool covers_boot_ = false;
};

/// Whether `message` is the first line that a kernel prints.
bool is_boot_banner(std::string_view message);

}  // namespace apu
