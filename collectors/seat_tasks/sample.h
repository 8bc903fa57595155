#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collectors/parsers/pid_stat.h"
#include "collectors/parsers/pid_status.h"
#include "collectors/parsers/task_wait.h"
#include "exporter/guarded_reader.h"

namespace apu {

/// A thread at one moment. From /proc/<pid>/task/<tid>.
struct TaskSample {
  ProcessIdentity key;  ///< the thread's own id and start
  char state = '?';     ///< as in /proc/<pid>/stat
  std::uint64_t user_ticks = 0;
  std::uint64_t system_ticks = 0;
  std::optional<SchedStat> sched;  ///< absent where the kernel does not count
  std::optional<std::uint64_t> voluntary_switches;
  std::optional<std::uint64_t> involuntary_switches;
  std::optional<TaskWait> wait;  ///< of one in disk sleep
};

/// A process at one moment. All counts are since its start.
struct ProcessSample {
  ProcessIdentity key;
  std::string comm;                                  ///< at most 15 bytes, any bytes
  std::chrono::nanoseconds time{};                   ///< Clock::monotonic
  std::optional<std::chrono::duration<double>> age;  ///< absent where the boot time is not known
  bool joined = false;  ///< it was not yet of the seat when that was last looked at
  PidStat stat;         ///< all threads, ended ones too
  PidStatus status;     ///< memory; its switches are one thread's
  std::optional<std::uint64_t> read_bytes;  ///< from storage; absent without permission
  std::vector<TaskSample> tasks;
  bool all_tasks = true;  ///< else there were more than are looked at
};

}  // namespace apu
