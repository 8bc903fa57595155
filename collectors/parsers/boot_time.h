#pragma once

#include <string_view>

#include "exporter/clock.h"
#include "exporter/file_root.h"
#include "exporter/result.h"

namespace apu {

/// Parses the "btime" line of /proc/stat: Unix seconds at which the host booted.
///
/// Source: show_stat in fs/proc/stat.c.
/// Errors: kMalformed if there is no such line or it has no number.
Result<TimePoint> parse_boot_time(std::string_view text);

/// The same from a host's procfs.
Result<TimePoint> read_boot_time(const FileRoot& procfs);

}  // namespace apu
