#pragma once

#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/seat_tasks/activity.h"
#include "verdict/verdict.h"

namespace apu {

/// What a seat does. Of those that apply to a process the first one holds; of a seat's processes
/// the first one in this order is the seat's.
enum class SeatState {
  kDown,       ///< no process
  kThrashing,  ///< the kernel evicts its queues as fast as it restores them, or faster
  kBlocked,    ///< a thread sleeps and cannot be woken
  kStalled,    ///< it was asked for tokens and makes none
  kSpinning,   ///< a load that waits for the GPU in a loop that nothing ends
  kIoStarved,  ///< a load that waits for storage
  kLoading,
  kComputing,
  kIdle,
};

constexpr size_t kSeatStates = 9;

/// Label value of apu_seat_state.
std::string_view to_label(SeatState state);

/// Whether a person has to do something about it.
bool is_fault(SeatState state);

// --- thresholds

/// Queues that are evicted for half of the time do no work to speak of; a healthy load has a few
/// seconds of it in all.
constexpr double kEvictedShare = 0.5;

/// A healthy restore converges at the first or second try.
constexpr double kReschedulesPerSecond = 10;
constexpr std::chrono::seconds kRescheduleDuration{5};

/// Healthy evictions end within a second, and of a large seat within some.
constexpr std::chrono::seconds kOutstandingEviction{30};

/// A load of the record that reached it did not end.
constexpr std::chrono::seconds kStuckLoad{60};

/// Disk sleep of a healthy host ends sooner.
constexpr std::chrono::seconds kBlockedSleep{30};

/// Longer than most prompts take to their first token; newer servers tell how far they are in one.
constexpr std::chrono::seconds kNoToken{120};

/// A server tells of its slots between two batches: ten probes in a row do not all fall into one.
constexpr std::chrono::seconds kNoAnswer{300};

/// Share of the time in which all of the seat's tasks wait for storage.
constexpr double kIoFull = 0.2;
constexpr double kIoWaitShare = 0.8;

/// Storage that gives more does not starve a load: the slowest healthy one had 280 MB/s.
constexpr double kStarvedReadRate = 100e6;  // bytes a second

/// A load grows by more in half a minute, even one that starves: 13 GB in 10 min.
constexpr std::int64_t kLoadGrowth = 8 << 20;  // bytes
constexpr std::uint64_t kGpuGrowth = 1 << 20;  // bytes

/// From so much of a core on a thread computes.
constexpr double kComputing = 0.2;

/// So long a process must do what is less before it leaves a state.
constexpr std::chrono::seconds kLeaveAfter{30};

/// A process that computes or idles so long has loaded; at its start it can be idle for a moment.
constexpr std::chrono::seconds kServedAfter{30};

/// One that has loaded and then sleeps, with all its threads, does nothing of a load.
constexpr std::chrono::seconds kServedAsleep{10};
constexpr double kAsleep = 0.05;  // of a core

/// No load takes so long that sleeps: one that was there before the watch, holds GPU memory and is
/// older is resident, whatever goes on beside it.
constexpr std::chrono::minutes kResident{15};

/// One that was never seen to load: it may wait so long for its model's file.
constexpr std::chrono::seconds kServedWithoutLoad{600};

/// So long a state is kept while what goes on may be the beginning of a spin.
constexpr std::chrono::seconds kLongestDoubt{90};

/// So much GPU memory nobody holds before a load.
constexpr double kLoadedGpuBytes = 64 << 20;

// --- evidence

/// Whether a process has ever served: a load that spins looks like a server that polls.
enum class LoadPhase {
  kCold,     ///< it has been loading since its start, and was never seen to compute or idle
  kServed,   ///< it was
  kUnknown,  ///< it was there before it was watched
};

/// KFD's SMI events of a process.
struct SmiEvidence {
  /// For how long restores have been rescheduled at kReschedulesPerSecond without one success.
  std::chrono::duration<double> rescheduled{0};
  /// For how long the oldest eviction has not been undone.
  std::optional<std::chrono::duration<double>> outstanding;
};

/// What a seat's health probe tells.
struct HealthEvidence {
  bool ready = false;
  std::optional<std::chrono::duration<double>> without_token{};  ///< while a slot was busy
  /// For how long it has not told of its slots, of which one was busy when it last did.
  std::optional<std::chrono::duration<double>> unanswered{};
};

/// Evidence of the host, which tells that there is a storm and not whose.
struct StormEvidence {
  std::optional<double> hogs_per_second;  ///< of KFD's restore workers, live
  std::optional<double> kworker_cores;    ///< over 30 s, of queues that restore workers run on

  [[nodiscard]] bool is_storm() const;
};

/// All that the state of a process follows from.
struct ProcessEvidence {
  ProcessActivity activity;
  LoadPhase phase = LoadPhase::kUnknown;
  std::optional<double> evicted_share;  ///< of the last 60 s, steadily: evicted_ms
  bool resume_failed = false;           ///< since it started: kfd_resume_failed
  bool mmap_lock_held = false;
  bool gpu_memory_grew = false;   ///< in the last 30 s, by kGpuGrowth
  bool holds_gpu_memory = false;  ///< kLoadedGpuBytes at least
  std::optional<double> io_full;  ///< of its cgroup, share of the last 60 s
  std::optional<SmiEvidence> smi;
  std::optional<HealthEvidence> health;
  StormEvidence storm;

  /// Resident memory grew in the last 30 s.
  [[nodiscard]] bool memory_grew() const;

  /// GPU memory, resident memory or reads did.
  [[nodiscard]] bool grew() const;
};

/// The state of a process, and why. nullopt: not yet to be told.
struct StateFinding {
  SeatState state = SeatState::kIdle;
  std::vector<Evidence> evidence;
};

/// What a process does by the evidence of this moment alone. nullopt where it says nothing, or what
/// goes on may be the beginning of a spin: then it is what it was. Pure.
std::optional<StateFinding> classify(const ProcessEvidence& evidence);

/// The state of one process over time.
class ProcessStateTracker {
 public:
  using Time = std::chrono::nanoseconds;  // Clock::monotonic

  /// Sets `evidence.phase`, and takes it. A worse state is entered at once, since its condition has
  /// lasted by then; a state is left for a better one after kLeaveAfter.
  void update(ProcessEvidence evidence, Time now);

  /// nullopt until something is known.
  [[nodiscard]] std::optional<SeatState> state() const { return state_; }

  /// When it was entered.
  [[nodiscard]] Time since() const { return since_; }

  /// Why it was entered, or is kept, by the last evidence for it.
  [[nodiscard]] const std::vector<Evidence>& reasons() const { return reasons_; }

  [[nodiscard]] LoadPhase phase() const;

 private:
  void take(StateFinding finding, Time now);
  void enter(SeatState state, Time now);
  void follow_service(const ProcessEvidence& evidence, Time now);

  std::optional<SeatState> state_;
  Time since_{};
  std::optional<Time> better_since_;
  std::optional<Time> confirmed_;  // when the state was last found to hold
  std::optional<Time> serving_since_;
  std::optional<Time> asleep_since_;
  std::vector<Evidence> reasons_;
  bool loaded_ = false;  // it was seen to load
  bool served_ = false;
  bool watched_from_birth_ = false;
  unsigned program_ = 0;
};

}  // namespace apu
