#pragma once

#include "exporter/commands/serve.h"
#include "exporter/options.h"

namespace apu {

/// Looks at the host for a while, prints what is wrong with it, and ends: 0 healthy, 1 a fault, 2
/// too little can be read to tell. Needs no server; serves nothing.
Outcome triage(const Options& options, std::span<const CollectorSpec> known);

}  // namespace apu
