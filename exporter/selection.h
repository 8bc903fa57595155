#pragma once

#include <string>
#include <utility>
#include <vector>

#include "exporter/result.h"

namespace apu {

/// Which collectors a scrape asks for by the URL parameters collect[] and exclude[]. Semantics of
/// node_exporter: collect[] names those to show, exclude[] those to leave out; both together, or a
/// collector that is unknown or not enabled in collect[], are errors.
class Selection {
 public:
  using Query = std::vector<std::pair<std::string, std::string>>;

  static Result<Selection> from_query(const Query& query, const std::vector<std::string>& enabled,
                                      const std::vector<std::string>& known);

  [[nodiscard]] bool includes(std::string_view collector) const;

 private:
  std::vector<std::string> collected_;  // empty: all
  std::vector<std::string> excluded_;
};

}  // namespace apu
