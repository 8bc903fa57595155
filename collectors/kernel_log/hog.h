#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "exporter/clock.h"

namespace apu {

class KernelLogStateCodec;

/// The kernel's report that a work item held a CPU for too long, as printed.
struct HogReport {
  std::string function;  ///< without a compiler's suffix; "unknown" where it is an address
  std::string module;    ///< "" where it is built in
  std::uint64_t threshold_us = 0;
  std::uint64_t count = 0;  ///< times since boot, cumulative
};

/// Parses a message of the kernel.
///
/// Source: wq_cpu_intensive_report in kernel/workqueue.c, 6.5 and later.
/// Shape:  "workqueue: FUNCTION [MODULE] hogged CPU for >10000us 67 times", then text that varies.
struct ParsedHog {
  enum class Kind {
    kNone,       ///< no hog report
    kMalformed,  ///< one, but without its count: cut off, or of an unknown form
    kReport,
  };
  Kind kind = Kind::kNone;
  HogReport report;
};

ParsedHog parse_hog_report(std::string_view message);

/// At which counts the kernel prints.
struct HogRule {
  /// T: from 6.9 or so on it prints at T-1+2^k. nullopt: the rule before, at powers of two from 4.
  std::optional<std::uint64_t> warning_threshold;

  /// The largest count at which the kernel prints that is not above `printed`. The number is read
  /// again after the decision to print, so it can be a little larger.
  [[nodiscard]] std::uint64_t snap(std::uint64_t printed) const;

  /// What doubles from report to report, as a power of two.
  [[nodiscard]] unsigned doublings(std::uint64_t count) const;

  /// The next count at which it prints: the true count is below it while nothing more is printed.
  [[nodiscard]] std::uint64_t next(std::uint64_t count) const;
};

/// The rule that `printed` counts were made by: with the default T of 4 all are 3+2^k. For where
/// the running kernel does not tell T. `undecided` is the answer where both rules fit.
HogRule guess_hog_rule(const std::vector<std::uint64_t>& printed,
                       const HogRule& undecided = HogRule{4});

/// One report of a function.
struct HogReportTime {
  std::uint64_t printed = 0;
  std::optional<TimePoint> time;
};

/// All reports of one function since its count last fell. A count that falls while time runs
/// forward starts anew: the kernel's counter did.
class HogSeries {
 public:
  /// `time` may be unknown; then no rate is derived from this report.
  void add(std::uint64_t printed, std::optional<TimePoint> time);

  /// Whether a report of `printed` would start the count anew.
  [[nodiscard]] bool would_reset(std::uint64_t printed, std::optional<TimePoint> time) const;

  /// Log records were lost: the last report may not have been the last.
  void note_loss() { lost_since_last_ = true; }

  /// Lines seen, whether or not they carried anything new.
  [[nodiscard]] std::uint64_t lines() const { return lines_; }

  /// Times that the count fell.
  [[nodiscard]] std::uint64_t resets() const { return resets_; }

  /// The reports since the last reset, their counts rising.
  [[nodiscard]] std::span<const HogReportTime> reports() const { return reports_; }

  /// The printed counts since the last reset, rising.
  [[nodiscard]] std::vector<std::uint64_t> printed() const;

  [[nodiscard]] std::optional<TimePoint> last_time() const;

  /// The last reported count, snapped: a lower bound of the true one.
  [[nodiscard]] std::uint64_t count(const HogRule& rule) const;

  /// Exclusive upper bound of the true count; nullopt after a loss of records.
  [[nodiscard]] std::optional<std::uint64_t> upper_bound(const HogRule& rule) const;

  /// Hogs per second, the smaller of the exact rate between the last two reports and the most that
  /// the silence since the last one allows. nullopt before two reports with different stamps.
  [[nodiscard]] std::optional<double> rate(const HogRule& rule, TimePoint now) const;

  /// Seconds in which the count doubles, the larger of the time between the last two reports over
  /// the doublings it spans, and the time since the last. nullopt below kFirstSteadyCount.
  [[nodiscard]] std::optional<double> doubling_interval(const HogRule& rule, TimePoint now) const;

  /// Below it reports come seconds apart by the very schedule of printing.
  static constexpr std::uint64_t kFirstSteadyCount = 35;

 private:
  friend class KernelLogStateCodec;
  /// The newest report whose stamp is of an earlier second than the last one's.
  [[nodiscard]] const HogReportTime* earlier_report() const;

  /// The kernel makes one for each doubling; of more, which can only be forged, the last are kept.
  static constexpr size_t kMaxReports = 128;

  std::vector<HogReportTime> reports_;
  std::uint64_t lines_ = 0;
  std::uint64_t resets_ = 0;
  bool lost_since_last_ = false;
};

}  // namespace apu
