#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "verdict/verdict.h"

namespace apu {

/// Keys stand in the order in which they were set.
using Json = nlohmann::ordered_json;

/// Unix seconds, or null.
Json time_json(const std::optional<TimePoint>& time);

/// Made valid UTF-8.
Json strings_json(const std::vector<std::string>& texts);

Json evidence_json(const Evidence& evidence);

Json judgement_json(const Judgement& judgement);

}  // namespace apu
