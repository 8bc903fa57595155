#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "exporter/file_root.h"
#include "exporter/result.h"

namespace apu {

/// What a zram device costs.
struct ZramUsage {
  std::string device;                   ///< "zram0"
  std::uint64_t memory_used_bytes = 0;  ///< mem_used_total: RAM held, with fragmentation
};

/// Parses /sys/block/zram<N>/mm_stat and returns mem_used_total, its third number.
///
/// Source: mm_stat_show in drivers/block/zram/zram_drv.c.
/// Shape:  one line of 8 or 9 numbers; zeros while the device is not set up.
/// Errors: kMalformed if there are fewer than three numbers.
Result<std::uint64_t> parse_zram_memory_used(std::string_view text);

/// All zram devices of a host, by name. /sys/block alone is listed: reading
/// /sys/class/zram-control/hot_add would create a device.
/// Errors: what /sys/block or a device's mm_stat gave; a device that vanishes is skipped.
Result<std::vector<ZramUsage>> read_zram_usage(const FileRoot& sysfs);

}  // namespace apu
