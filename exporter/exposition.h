#pragma once

#include <string>
#include <vector>

#include "exporter/metric.h"

namespace apu {

/// Families of several collectors, merged into what one page may hold.
struct MergedFamilies {
  Families families;                   ///< sorted by name, their samples by labels
  std::vector<std::string> conflicts;  ///< bugs met; what they speak of was left out of the page
};

/// Merges families of the same name, whose type and help must agree, and sorts. Label values are
/// made valid UTF-8. A family that disagrees or a series that is there twice would make Prometheus
/// reject the page, so the later one is dropped and named in `conflicts`.
MergedFamilies merge_families(const std::vector<const Families*>& parts);

/// The Prometheus text format, version 0.0.4.
std::string to_text(const Families& families);

}  // namespace apu
