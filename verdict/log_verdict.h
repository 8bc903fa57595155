#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "collectors/kernel_log/hog.h"
#include "collectors/kernel_log/state.h"
#include "verdict/verdict.h"

namespace apu {

/// Hogs per second from which a restore worker thrashes: the healthy hosts of the record stay
/// below a tenth of it but for bursts, the incident ran at five times it.
constexpr double kStormRate = 0.2;

/// Doublings from which a rate counts: 67 hogs by the kernel's rule of today. Every load of a large
/// model makes a few.
constexpr unsigned kStormDoublings = 6;

/// Doublings from which a count speaks by itself, though only one report tells it: 1027 hogs.
constexpr unsigned kLargeDoublings = 10;

/// A healthy load hogs for up to two and a half minutes.
constexpr std::chrono::minutes kStormDuration{3};

/// An interval between two reports that is longer, and much slower than the one before it, may
/// hold two bursts and the silence between them.
constexpr std::chrono::minutes kLongInterval{10};
constexpr double kSlowedDown = 4;

/// What came so soon after the first hogs of a burst belongs to it.
constexpr std::chrono::hours kAftermath{1};

/// The hogs between two reports of one function, by the kernel's own count.
struct HogInterval {
  std::uint64_t from_count = 0;
  std::uint64_t to_count = 0;
  TimePoint from;
  TimePoint to;

  /// Hogs per second.
  [[nodiscard]] double rate() const;
};

/// The intervals between the reports of `series` that have different stamps.
std::vector<HogInterval> hog_intervals(const HogSeries& series, const HogRule& rule);

/// A time in which a restore worker hogged at more than kStormRate with kStormDoublings behind it.
struct Storm {
  KernelLogState::HogKey function;
  TimePoint from;
  TimePoint to;  ///< of the last report in it: it may have gone on
  std::uint64_t from_count = 0;
  std::uint64_t to_count = 0;

  [[nodiscard]] bool is_sustained() const { return to - from >= kStormDuration; }

  /// Hogs per second.
  [[nodiscard]] double rate() const;

  /// When it began if it had the rate of its first interval from the first hog on; nullopt where
  /// the log shows how it began.
  std::optional<TimePoint> estimated_start;
};

/// Hogs per second for a person: "1.02", "80.0", "0.004".
std::string rate_text(double rate);

/// Whether an event soon after a burst of hogs says that it was no healthy load.
bool is_aftermath(EventKind kind);

/// Events that mean a fault of the GPU or its firmware.
std::span<const EventKind> fault_events();

/// Events that mean that memory for the GPU was refused.
std::span<const EventKind> refusal_events();

/// Lines of all GPUs.
std::uint64_t lines_of(const EventCounts& counts);

/// Whether hogs of this function are those of the fault: KFD's two restore workers.
bool is_restore_worker(const KernelLogState::HogKey& key);

/// The storms of all restore workers, by their start.
std::vector<Storm> find_storms(const KernelLogState& log, const HogRule& rule);

/// What the log of one boot says, beyond the state that the exporter keeps.
struct LogFacts {
  const KernelLogState& log;
  HogRule rule;
  std::optional<TimePoint> boot_time;  ///< on the clock of the log, where that tells it
  /// All events for which is_aftermath holds, and when they were.
  std::vector<std::pair<EventKind, TimePoint>> aftermath;
  /// Series of functions that a fall of the count ended: a driver was loaded anew, or a reboot was
  /// not told.
  std::vector<std::pair<KernelLogState::HogKey, HogSeries>> ended_series;
  /// Hung tasks in whose report a restore worker runs.
  std::uint64_t hung_restore_workers = 0;
  std::optional<TimePoint> first_hung_restore_worker;
};

/// The verdict on a boot by its log alone. Never healthy: a log cannot show that.
Judgement judge_log(const LogFacts& facts);

}  // namespace apu
