#pragma once

#include <string>
#include <string_view>

namespace apu {

/// `text` as a gzip file. Level 1: a host that thrashes has better use for its CPU. Empty if zlib
/// fails, which it does only without memory.
std::string gzip(std::string_view text);

}  // namespace apu
