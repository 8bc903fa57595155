#include "checks/check.h"

#include <algorithm>
#include <utility>

namespace apu {

std::string_view to_label(CheckResult result) {
  switch (result) {
    case CheckResult::kPass:
      return "pass";
    case CheckResult::kFail:
      return "fail";
    case CheckResult::kUnknown:
      break;
  }
  return "unknown";
}

Check make_check(std::string_view name, std::string_view seat, const std::optional<bool>& faulty,
                 std::string why_fail, std::string why_unknown) {
  Check check{std::string(name), std::string(seat), CheckResult::kUnknown, ""};
  if (!faulty) {
    check.why = std::move(why_unknown);
  } else if (*faulty) {
    check.result = CheckResult::kFail;
    check.why = std::move(why_fail);
  } else {
    check.result = CheckResult::kPass;
  }
  return check;
}

CheckCounts count(const Checks& checks) {
  const auto number = [&](CheckResult result) {
    return static_cast<size_t>(std::count_if(
        checks.begin(), checks.end(), [&](const Check& check) { return check.result == result; }));
  };
  return {number(CheckResult::kPass), number(CheckResult::kFail), number(CheckResult::kUnknown)};
}

}  // namespace apu
