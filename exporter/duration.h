#pragma once

#include <chrono>
#include <string_view>

#include "exporter/result.h"

namespace apu {

/// Parses a duration in Go's notation, as node_exporter's flags take it: "15s", "1m30s", "500ms".
/// Units: h, m, s, ms. Errors: kMalformed for anything else, and for more than 10 years.
Result<std::chrono::milliseconds> parse_duration(std::string_view text);

/// The inverse: "1m30s", "500ms", "0s".
std::string format_duration(std::chrono::milliseconds duration);

}  // namespace apu
