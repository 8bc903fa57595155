#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "exporter/file_root.h"
#include "exporter/result.h"

namespace apu {

/// The fields of /proc/<pid>/stat that we use.
struct PidStat {
  std::int64_t pid = 0;
  std::string comm;  ///< at most 15 bytes, any bytes: may hold blanks and parentheses
  char state = '?';
  std::int64_t parent = 0;         ///< process id
  std::uint64_t flags = 0;         ///< PF_* of include/linux/sched.h
  std::uint64_t minor_faults = 0;  ///< of all threads, ended ones too
  std::uint64_t major_faults = 0;  ///< likewise
  std::uint64_t user_ticks = 0;    ///< likewise, in clock ticks
  std::uint64_t system_ticks = 0;  ///< likewise
  std::uint64_t threads = 0;
  std::uint64_t start_ticks = 0;  ///< clock ticks from boot to start; with pid, an identity
  std::uint64_t virtual_bytes = 0;
  std::uint64_t resident_pages = 0;
};

/// Whether it is a thread of the kernel: what a process calls itself proves nothing.
bool is_kernel_thread(const PidStat& stat);

/// Whether the process is a zombie, or gone. A leader that ended leaves its threads their memory.
bool has_ended(const PidStat& stat);

/// Whether its first thread has ended, whatever became of the others: /proc shows no descriptors.
bool leader_has_ended(const PidStat& stat);

/// Parses /proc/<pid>/stat, or /proc/<pid>/task/<tid>/stat.
///
/// Source: do_task_stat in fs/proc/array.c.
/// Shape:  one line; the name in parentheses ends at the last one, whatever it holds.
/// Errors: kMalformed if a field that we use is missing or not a number.
Result<PidStat> parse_pid_stat(std::string_view text);

/// The same from DIRECTORY/stat below procfs: "4242", "self", "4242/task/4243".
/// Errors: as of reading, too.
Result<PidStat> read_pid_stat(const FileRoot& procfs, std::string_view directory);

/// Clock ticks a second, the unit of stat's times.
double ticks_per_second();

}  // namespace apu
