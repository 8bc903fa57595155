#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "collectors/parsers/problem.h"

namespace apu {

/// What a file of "key number" lines holds, in the kernel's own units. Keys differ by kernel
/// version and configuration: one that is not there is absent, never 0.
struct KeyedNumbers {
  std::map<std::string, std::uint64_t, std::less<>> values;
  Problems problems;

  [[nodiscard]] std::optional<std::uint64_t> get(std::string_view key) const;

  /// The number, or 0 where a missing key means that the kernel has no such memory.
  [[nodiscard]] std::uint64_t get_or_zero(std::string_view key) const;
};

/// Parses /proc/vmstat.
///
/// Source: vmstat_show in mm/vmstat.c. Iterated: the kernel returns it in pieces of 4 KiB.
/// Shape:  "key number" lines.
/// Units:  events since boot; nr_* are pages now.
KeyedNumbers parse_vmstat(std::string_view text);

/// Parses /proc/meminfo.
///
/// Source: meminfo_proc_show in fs/proc/meminfo.c.
/// Shape:  "Key:   number kB" lines; HugePages_* have no unit.
/// Units:  kB (1024 bytes); HugePages_* are counts.
KeyedNumbers parse_meminfo(std::string_view text);

/// Parses a named kstat of OpenZFS, /proc/spl/kstat/zfs/{arcstats,abdstats}.
///
/// Source: kstat_seq_show_named in module/os/linux/spl/spl-kstat.c.
/// Shape:  a line of raw kstat header, a line of column names, then "name type data" lines.
/// Units:  as the name says, bytes for sizes. Types other than the unsigned ones are skipped.
KeyedNumbers parse_kstat(std::string_view text);

}  // namespace apu
