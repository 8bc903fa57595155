#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "verdict/verdict.h"

namespace apu {

/// What a verdict means, for a person; empty for those that are no fault.
std::string_view explain(Verdict verdict);

/// What to do about it, one advice a string, the most urgent first. No command in it can hang on a
/// wedged host.
std::vector<std::string> advice_for(Verdict verdict);

}  // namespace apu
