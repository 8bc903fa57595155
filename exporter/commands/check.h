#pragma once

#include "exporter/commands/serve.h"
#include "exporter/options.h"

namespace apu {

/// Prints whether the host and its seats are set up so that the fault does not come, and ends: 0 if
/// no check fails, 1 if one does, 2 if none could be made. Needs no server; serves nothing.
Outcome check(const Options& options, std::span<const CollectorSpec> known);

}  // namespace apu
