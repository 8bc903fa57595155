#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "collectors/parsers/problem.h"

namespace apu {

/// What /proc/<pid>/status tells that we use. A thread of the kernel and a zombie have no memory;
/// older kernels lack some keys.
struct PidStatus {
  std::optional<std::uint64_t> anon_bytes;            ///< RssAnon
  std::optional<std::uint64_t> file_bytes;            ///< RssFile: a mapped model is here
  std::optional<std::uint64_t> shmem_bytes;           ///< RssShmem
  std::optional<std::uint64_t> swap_bytes;            ///< VmSwap
  std::optional<std::uint64_t> locked_bytes;          ///< VmLck
  std::optional<std::uint64_t> voluntary_switches;    ///< of this thread alone
  std::optional<std::uint64_t> involuntary_switches;  ///< of this thread alone
  Problems problems;

  /// Resident memory of all kinds; nullopt if it has none.
  [[nodiscard]] std::optional<std::uint64_t> resident_bytes() const;
};

/// Parses /proc/<pid>/status, or /proc/<pid>/task/<tid>/status.
///
/// Source: proc_pid_status in fs/proc/array.c.
/// Shape:  "Key:\tvalue" lines; memory is "%8lu kB". The name on the first line is escaped, so that
///         it has no newline.
/// Units:  kB are 1024 bytes.
/// Problem: a line of a key that we use without a number, or cut before its unit.
PidStatus parse_pid_status(std::string_view text);

/// Bytes that a process had storage read for, its mapped files' too: read_bytes of /proc/<pid>/io.
///
/// Source: do_io_accounting in fs/proc/base.c.
/// Shape:  "read_bytes: %llu" among other such lines.
/// Errors: nullopt if there is no such line, or it has no number.
std::optional<std::uint64_t> parse_read_bytes(std::string_view text);

/// How long a thread ran, and waited to run.
struct SchedStat {
  std::uint64_t run_ns = 0;
  std::uint64_t wait_ns = 0;
};

/// Parses /proc/<pid>/task/<tid>/schedstat.
///
/// Source: proc_pid_schedstat in fs/proc/base.c.
/// Shape:  "%llu %llu %lu": nanoseconds on a CPU, nanoseconds waiting for one, time slices; zeros
///         where the kernel does not count.
/// Errors: nullopt if it is anything else.
std::optional<SchedStat> parse_schedstat(std::string_view text);

}  // namespace apu
