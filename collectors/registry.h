#pragma once

#include <span>

#include "exporter/collector.h"

namespace apu {

/// The table of all collectors, in the order of --help.
std::span<const CollectorSpec> all_collectors();

}  // namespace apu
