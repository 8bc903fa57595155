#pragma once

#include "exporter/commands/serve.h"

namespace apu {

/// Prints one complete exposition to stdout, after 5 s at most. Exit code 1 if no collector found
/// anything.
Outcome once(const Options& options, std::span<const CollectorSpec> known);

}  // namespace apu
