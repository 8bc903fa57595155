#include "exporter/selection.h"

#include <algorithm>
#include <string_view>

namespace apu {
namespace {

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

Result<Selection> Selection::from_query(const Query& query, const std::vector<std::string>& enabled,
                                        const std::vector<std::string>& known) {
  Selection selection;
  for (const auto& [name, value] : query) {
    if (name == "collect[]") {
      selection.collected_.push_back(value);
    } else if (name == "exclude[]") {
      selection.excluded_.push_back(value);
    }
  }
  if (!selection.collected_.empty() && !selection.excluded_.empty()) {
    return Error{ErrorKind::kMalformed, "combined collect and exclude queries are not allowed"};
  }
  for (const std::string& name : selection.collected_) {
    if (!contains(enabled, name)) {
      const bool exists = contains(known, name);
      return Error{ErrorKind::kMalformed,
                   (exists ? "disabled collector: " : "missing collector: ") + name};
    }
  }
  return selection;
}

bool Selection::includes(std::string_view collector) const {
  return (collected_.empty() || contains(collected_, collector)) && !contains(excluded_, collector);
}

}  // namespace apu
