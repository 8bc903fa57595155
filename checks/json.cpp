#include "checks/check.h"
#include "exporter/health.h"
#include "exporter/text.h"
#include "verdict/judgement_json.h"

namespace apu {

std::string to_check_json(const Checks& checks) {
  constexpr int kFormatVersion = 1;
  constexpr int kIndent = 2;
  Json list = Json::array();
  for (const Check& check : checks) {
    list.push_back({{"check", check.name},
                    {"seat", check.seat.empty() ? Json(nullptr) : Json(to_valid_utf8(check.seat))},
                    {"result", to_label(check.result)},
                    {"why", to_valid_utf8(check.why)}});
  }
  const CheckCounts counts = count(checks);
  const Json json{{"format", "apu_exporter check"},
                  {"version", kFormatVersion},
                  {"exporter", version()},
                  {"pass", counts.pass},
                  {"fail", counts.fail},
                  {"unknown", counts.unknown},
                  {"checks", std::move(list)}};
  return json.dump(kIndent) + "\n";
}

}  // namespace apu
