#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/parsers/problem.h"
#include "collectors/parsers/zram.h"
#include "exporter/collector.h"

namespace apu {

enum class SwapKind { kPartition, kFile, kZram };

/// One row of /proc/swaps.
struct SwapDevice {
  std::string name;  ///< path, unescaped; any bytes
  SwapKind kind = SwapKind::kPartition;
  std::uint64_t size_kib = 0;
  std::uint64_t used_kib = 0;
};

struct Swaps {
  std::vector<SwapDevice> devices;
  Problems problems;
};

/// Parses /proc/swaps.
///
/// Source: swap_show in mm/swapfile.c.
/// Shape:  a header line, then "name type size used priority" rows; blanks in the name are \040.
/// Units:  KiB.
/// Problem: a row with fewer than five fields, an unknown type, or a size that is no number.
Swaps parse_swaps(std::string_view text);

/// The facts of a pass.
struct SwapFacts {
  std::vector<SwapDevice> devices;
  std::vector<ZramUsage> zram;
  std::optional<std::uint64_t> swapped_in_pages;   ///< since boot (vmstat pswpin)
  std::optional<std::uint64_t> swapped_out_pages;  ///< since boot (vmstat pswpout)
  std::optional<std::uint64_t> swappiness;         ///< 0..200
  std::uint64_t page_bytes = 0;
};

Families to_families(const SwapFacts& facts);

std::span<const MetricInfo> swap_metrics();

/// Swap devices, zram and swap traffic. Source "procfs". A kernel without swap has no
/// /proc/swaps: no devices, and no failure.
std::unique_ptr<Collector> make_swap_collector(const CollectorContext& context);

}  // namespace apu
