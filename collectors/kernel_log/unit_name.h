#pragma once

#include <string>
#include <string_view>

namespace apu {

/// The unit that a cgroup path belongs to, as the `unit` label has it:
///   a unit of the system manager    its name without ".service": "llama-26b"
///   a unit of a user's manager      "UID/name": "1000/llama"
///   a container                     its 12-character id: "c1c1c1c1c1c1"
///   all else                        the unit's whole name: "session-3.scope"
/// The first three are the name of the seat, too, so that both can be joined. Empty where the path
/// was cut off (it ends in ">"), or names none.
std::string unit_of_cgroup(std::string_view path);

}  // namespace apu
