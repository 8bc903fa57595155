#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>

#include "collectors/seat_tasks/sample.h"

namespace apu {

/// CPU time over time, in cores.
struct CpuShare {
  double user = 0;
  double system = 0;

  [[nodiscard]] double total() const { return user + system; }
};

/// What a process did between two samples.
struct ProcessInterval {
  std::chrono::duration<double> length{};
  CpuShare hottest;  ///< of the thread that took most
  ProcessIdentity hottest_thread;
  CpuShare process;               ///< of all that live
  unsigned spinning_threads = 0;  ///< pegged in user mode
  /// Voluntary switches a second, of the thread that took most and of the others.
  std::optional<double> hottest_switches;
  std::optional<double> other_switches;
  double faults = 0;                      ///< a second
  std::optional<double> read_bytes;       ///< a second
  std::map<ProcessIdentity, double> cpu;  ///< seconds, by thread
  std::set<ProcessIdentity> pegged;       ///< threads; see kPegged

  /// Exactly one thread is pegged in user mode and nothing else goes on.
  [[nodiscard]] bool is_spin() const;

  /// The threads beside the busiest one do no more than answer health checks: no tokens are sent.
  [[nodiscard]] bool others_sleep() const;
};

/// So much of a core pegs a thread: one that spins has all of it, but for interrupts. On a host
/// where it must wait for a CPU, half a core and the wish for all of one do as well.
constexpr double kPegged = 0.95;
constexpr double kPeggedOnBusyHost = 0.5;

/// A spin takes no more than this. The recorded one: user share 0.999, 0.2 switches a second.
constexpr double kSpinSystem = 0.03;            // of a core
constexpr double kSpinVoluntarySwitches = 1;    // a second
constexpr double kSpinOtherSwitches = 5;        // a second: health checks wake the others, too
constexpr double kSpinFaults = 10;              // a second
constexpr double kSpinReadBytes = 64.0 * 1024;  // a second

/// What was done from `before` to `after`, of one process. A thread that is new began at 0.
ProcessInterval interval_between(const ProcessSample& before, const ProcessSample& after);

/// What is known of a process's doings at its last sample.
struct ProcessActivity {
  using Seconds = std::chrono::duration<double>;

  /// Since the sample before; absent with the first.
  std::optional<ProcessInterval> last;

  /// Over the last kSpinWindow; absent until it was watched that long, its birth included.
  std::optional<ProcessInterval> window;

  /// In `window`, the thread that spins is one that loaded. A runtime's thread that polls for
  /// ever, in a server that is done with loading, is another.
  bool loader_spins = false;

  /// Since the sample before, a thread that loaded was pegged.
  bool loader_pegged = false;

  /// For how long a thread that loaded was pegged while the others slept, or one was in disk sleep
  /// for KFD, at every sample.
  Seconds pegged_or_in_kfd{0};

  /// For how long a thread was in disk sleep at every sample; of several the longest, and what it
  /// waits for. One that is woken in between, other than by KFD, goes on and is not blocked.
  Seconds blocked{0};
  TaskWait blocked_on = TaskWait::kOther;

  /// Threads in disk sleep now.
  std::array<unsigned, 4> blocked_threads{};  ///< by TaskWait

  /// Of the samples of the last kSpinWindow the share in which a thread waited for storage.
  double io_wait_share = 0;

  /// By how much it grew over the last kGrowthWindow. Absent where it was not watched that long.
  std::optional<std::int64_t> resident_growth;  ///< bytes
  std::optional<std::int64_t> read_growth;      ///< bytes

  /// It was first seen so soon after its start, or after it came to the GPU, that all it did there
  /// is known.
  bool watched_from_birth = false;

  /// How old the process is; absent where the boot time is not known.
  std::optional<Seconds> age;

  /// All its threads are stopped, by a signal or a debugger.
  bool stopped = false;

  /// Which program of the process it is: exec() makes another one of it.
  unsigned program = 0;
};

/// Samples of one process, and what follows from them. Pure.
class ProcessHistory {
 public:
  using Seconds = std::chrono::duration<double>;

  static constexpr Seconds kSpinWindow{60};
  static constexpr Seconds kGrowthWindow{30};

  /// A process that is no older when it is first seen did nothing that was missed but start.
  static constexpr Seconds kBirth{30};

  /// A process that reads, or becomes larger, by so much between two samples is loading.
  static constexpr std::int64_t kLoadStep = 1 << 20;  // bytes

  /// Threads that took so much of what the busiest one did while it loaded have loaded, too.
  static constexpr double kLoaderShare = 0.2;

  /// Further apart, two samples do not show that a thread slept all the time between them.
  static constexpr Seconds kLongestSleepGap{20};

  /// Takes the next sample. One that is not later than the last is ignored.
  void add(ProcessSample sample);

  [[nodiscard]] const ProcessActivity& activity() const { return activity_; }

  [[nodiscard]] const ProcessSample& last() const { return samples_.back(); }

 private:
  struct Sleep {
    std::chrono::nanoseconds since{};
    std::optional<std::uint64_t> switches;
    TaskWait wait = TaskWait::kOther;
  };

  [[nodiscard]] const ProcessSample* sample_before(Seconds window) const;
  void begin();
  void begin_anew(const ProcessSample& first);
  void follow_load(const ProcessSample& before, const ProcessInterval& interval);
  void follow_runs(const ProcessInterval& interval, bool gap);
  [[nodiscard]] bool has_loaded(const ProcessIdentity& thread) const;
  void follow_sleeps(bool gap);
  void look_back();

  std::deque<ProcessSample> samples_;  // kSpinWindow and one more
  std::map<ProcessIdentity, Sleep> sleeps_;
  std::map<ProcessIdentity, double> load_cpu_;  // seconds, while it loaded
  bool in_kfd_ = false;                         // at the last sample
  ProcessActivity activity_;
};

}  // namespace apu
