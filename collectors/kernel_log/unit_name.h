#pragma once

#include <string>
#include <string_view>

namespace apu {

/// The unit that a cgroup path belongs to, as the `unit` label has it:
///   a unit of the system manager    its name without ".service": "llama-26b"
///   a unit of a user's manager      "UID/name": "1000/llama"
///   a container                     its 12-character id: "c1c1c1c1c1c1"
/// Scopes of login sessions and all else: the last part of the path that names a unit. Empty where
/// the path was cut off (it ends in ">"), or names none. systemd's escapes are resolved.
std::string unit_of_cgroup(std::string_view path);

/// Resolves "\\x2d", by which systemd writes characters that a unit's name may not hold.
std::string unescape_unit(std::string_view text);

/// A unit's name as the `unit` label has it: without ".service".
std::string_view without_service(std::string_view unit);

}  // namespace apu
