#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace apu {

enum class CheckResult { kFail, kUnknown, kPass };

/// "fail", "unknown", "pass".
std::string_view to_label(CheckResult result);

/// One assertion on a seat or the host, and whether it holds.
struct Check {
  std::string name;  ///< the `check` label; docs/checks.md has them all
  std::string seat;  ///< empty: of the host
  CheckResult result = CheckResult::kUnknown;
  std::string why;  ///< in words; of one that fails, with what to do
};

using Checks = std::vector<Check>;

/// A check by whether a fault was seen; absent is not known.
Check make_check(std::string_view name, std::string_view seat, const std::optional<bool>& faulty,
                 std::string why_fail, std::string why_unknown);

struct CheckCounts {
  size_t pass = 0;
  size_t fail = 0;
  size_t unknown = 0;
};

CheckCounts count(const Checks& checks);

/// For a person: those that fail, those that are not known, those that pass.
std::string to_check_text(const Checks& checks);

/// For a program: docs/checks.md.
std::string to_check_json(const Checks& checks);

}  // namespace apu
