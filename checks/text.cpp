#include "exporter/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "checks/check.h"

namespace apu {
namespace {

constexpr size_t kWidth = 80;
constexpr size_t kNameWidth = 40;

/// What a check is on: its seat's name, which a stranger may have chosen, or the host.
std::string subject(const Check& check) {
  return check.seat.empty() ? "host" : cut_text(check.seat, kNameWidth);
}

/// Checks of one subject that came out the same way, for the same reason.
struct Group {
  std::string subject;
  std::string why;
  std::vector<std::string> names;
};

std::vector<Group> groups_of(CheckResult result, const Checks& checks) {
  std::vector<Group> groups;
  for (const Check& check : checks) {
    if (check.result != result) {
      continue;
    }
    const std::string seat = subject(check);
    auto group = std::find_if(groups.begin(), groups.end(), [&](const Group& each) {
      return each.subject == seat && each.why == check.why;
    });
    if (group == groups.end()) {
      group = groups.insert(groups.end(), {seat, check.why, {}});
    }
    group->names.push_back(check.name);
  }
  return groups;
}

void add_those_with(CheckResult result, std::string_view word, const Checks& checks,
                    std::string& text) {
  for (const Group& group : groups_of(result, checks)) {
    append_wrapped(text, kWidth, fmt::format("{:<9}", word),
                   fmt::format("{}: {}", group.subject, fmt::join(group.names, ", ")));
    if (!group.why.empty()) {
      append_wrapped(text, kWidth, "         ", to_valid_utf8(group.why));
    }
  }
}

}  // namespace

std::string to_check_text(const Checks& checks) {
  const CheckCounts counts = count(checks);
  std::string text = fmt::format("{} of {} failed, {} not known\n", counts.fail,
                                 number_of(checks.size(), "check"), counts.unknown);
  add_those_with(CheckResult::kFail, "FAIL", checks, text);
  add_those_with(CheckResult::kUnknown, "unknown", checks, text);
  add_those_with(CheckResult::kPass, "pass", checks, text);
  return text;
}

}  // namespace apu
