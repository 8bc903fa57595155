#pragma once

#include <optional>
#include <string_view>

#include "exporter/result.h"

namespace apu {

/// Whether a line of dynamic_debug/control switches a message of KFD on; false for those of others
/// and for the header.
///
/// Source: ddebug_proc_show in lib/dynamic_debug.c.
/// Shape:  FILE:LINE [MODULE]FUNCTION =FLAGS "FORMAT"; p among the flags: it is printed.
/// Errors: kMalformed for a line of KFD without flags.
Result<bool> prints_kfd_debug(std::string_view line);

}  // namespace apu
