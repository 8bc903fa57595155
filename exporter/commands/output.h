#pragma once

#include <string_view>

namespace apu {

/// Writes all of `text` to stdout. Where that fails, logs that `what` could not be written, and
/// returns false.
bool print_whole(std::string_view text, std::string_view what);

}  // namespace apu
