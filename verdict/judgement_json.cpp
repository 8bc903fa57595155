#include "verdict/judgement_json.h"

#include <utility>

#include "exporter/text.h"

namespace apu {

Json time_json(const std::optional<TimePoint>& time) {
  return time ? Json(to_unix_seconds(*time)) : Json(nullptr);
}

Json strings_json(const std::vector<std::string>& texts) {
  Json array = Json::array();
  for (const std::string& text : texts) {
    array.push_back(to_valid_utf8(text));
  }
  return array;
}

Json evidence_json(const Evidence& evidence) {
  return {{"what", to_valid_utf8(evidence.what)},
          {"value", to_valid_utf8(evidence.value)},
          {"threshold", evidence.threshold},
          {"since", time_json(evidence.since)},
          {"source", evidence.source},
          {"at", time_json(evidence.at)}};
}

Json judgement_json(const Judgement& judgement) {
  Json evidence = Json::array();
  for (const Evidence& each : judgement.evidence) {
    evidence.push_back(evidence_json(each));
  }
  return {{"verdict", to_label(judgement.verdict)},
          {"since", time_json(judgement.since)},
          {"estimated_since", time_json(judgement.estimated_since)},
          {"evidence", std::move(evidence)},
          {"doubts", strings_json(judgement.doubts)}};
}

}  // namespace apu
