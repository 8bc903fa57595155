#pragma once

#include <cstdint>

namespace apu {

/// Memory of this process that is resident, mapped files included; 0 where it cannot be told.
/// Source: /proc/self/statm.
std::uint64_t resident_bytes();

}  // namespace apu
