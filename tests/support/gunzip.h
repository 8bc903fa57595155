#pragma once

#include <string>
#include <string_view>

namespace apu {

/// What a gzip file holds. Throws std::runtime_error if `packed` is none, is cut off or is followed
/// by more.
std::string gunzip(std::string_view packed);

}  // namespace apu
