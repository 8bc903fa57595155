#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "exporter/result.h"

namespace apu {

using TakeBytes = std::function<void(std::string_view)>;

/// Reads `path`, or stdin if that is "-", to its end and hands on its bytes; decompressed where the
/// first bytes are those of gzip, xz or zstd. Of a device like /dev/kmsg what it holds now is read.
/// Errors: why it could not be read to its end; what was read before was handed on.
Status read_input(const std::string& path, const TakeBytes& take);

}  // namespace apu
