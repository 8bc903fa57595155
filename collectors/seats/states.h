#pragma once

#include <array>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collectors/cgroup/cgroup.h"
#include "collectors/kernel_log/kernel_log.h"
#include "collectors/kfd.h"
#include "collectors/kworkers.h"
#include "collectors/mmap_lock.h"
#include "collectors/recent_series.h"
#include "collectors/seat_health/prober.h"
#include "collectors/seat_tasks/seat_tasks.h"
#include "collectors/seats/accounting.h"
#include "exporter/clock.h"
#include "verdict/seat_state.h"

namespace apu {

/// What the states follow from: the newest facts of the collectors that read; nullptr where there
/// are none.
struct StateInputs {
  const CgroupFacts* cgroup = nullptr;
  const SeatTasksFacts* tasks = nullptr;
  const KfdFacts* kfd = nullptr;
  const ClientMemory* clients = nullptr;
  const KernelLogFacts* kernel_log = nullptr;
  const KworkersFacts* kworkers = nullptr;
  const MmapLockFacts* mmap_lock = nullptr;
  const SeatHealthFacts* health = nullptr;
};

/// The state of a seat: of its processes the one that is worst off.
struct SeatStateFacts {
  SeatState state = SeatState::kDown;
  TimePoint since;
  std::vector<Evidence> reasons;
  std::optional<ProcessKey> process;    ///< absent for a seat that is down
  std::string command;                  ///< its comm, any bytes
  bool serves = false;                  ///< the process was seen to have loaded, and to serve
  std::map<SeatState, double> seconds;  ///< spent in each state since the seat was first seen
};

/// CPU time of kworkers on the queues that the restore workers run on: events_freezable (userptr,
/// SVM), events where no kworker was seen on that one, as on older kernels, and kfd_restore_wq
/// (TTM).
double restore_kworker_seconds(const KworkersFacts& kworkers);

/// Hogs per second of KFD's restore workers together; absent where none has a rate.
std::optional<double> restore_hog_rate(const KernelLogFacts& log, TimePoint now);

/// The states of all seats over time.
class SeatStates {
 public:
  /// Those of a pass, by seat. A seat of whose processes nothing is known yet is not in it. Where a
  /// seat has a process on the GPU, its others do not count.
  std::map<std::string, SeatStateFacts> update(const StateInputs& inputs, TimePoint now,
                                               std::chrono::nanoseconds monotonic);

 private:
  using Time = std::chrono::nanoseconds;

  struct Process {
    ProcessStateTracker tracker;
    RecentSeries client_bytes;
    RecentSeries kfd_bytes;
    std::map<std::string, RecentSeries> evicted_ms;  // by GPU
  };

  struct SeatHistory {
    RecentSeries io_full_us;
    std::optional<SeatState> state;
    Time since{};
    Time counted{};  // up to when `seconds` are
    std::map<SeatState, double> seconds;
  };

  void follow_process(const StateInputs& inputs, const std::string& seat,
                      const SeatProcessFacts& facts, const StormEvidence& storm, Time now);
  void follow_gpu(const StateInputs& inputs, const ProcessKey& key, Process& process, Time now);
  StormEvidence storm_evidence(const StateInputs& inputs, TimePoint now, Time monotonic);
  [[nodiscard]] const SeatProcessFacts* worst(const std::vector<SeatProcessFacts>& processes) const;
  SeatStateFacts take_state(SeatHistory& history, SeatState state, TimePoint now, Time monotonic);
  void forget_all_but(const StateInputs& inputs);

  std::map<ProcessKey, Process> processes_;
  std::map<std::string, SeatHistory> seats_;
  RecentSeries kworker_seconds_;
};

}  // namespace apu
