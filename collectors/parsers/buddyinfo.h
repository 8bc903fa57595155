#pragma once

#include <cstdint>
#include <string_view>

#include "collectors/parsers/problem.h"

namespace apu {

struct Buddyinfo {
  /// Free blocks of 2 MiB (order 9 with 4 KiB pages); a larger free block counts as those it holds.
  std::uint64_t free_huge_blocks = 0;
  Problems problems;
};

/// Parses /proc/buddyinfo.
///
/// Source: frag_show_print in mm/vmstat.c.
/// Shape:  "Node 0, zone   Normal" and then the number of free blocks of each order from 0.
/// Problem: a row that lacks its zone, ends before order 9, or has a column that is no number; a
///          file without a row.
Buddyinfo parse_buddyinfo(std::string_view text);

}  // namespace apu
