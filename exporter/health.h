#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "exporter/metric.h"
#include "exporter/runner.h"

namespace apu {

/// The apu_collector_* families of `views`: present from the first scrape on, before any pass has
/// ended (the age and the duration alone wait for one).
Families collector_families(const std::vector<CollectorView>& views);

/// apu_exporter_build_info.
Families build_families();

/// All metrics that the two functions above make.
std::span<const MetricInfo> health_metrics();

/// The version, "0.1.0".
std::string_view version();

/// The commit it was built from, "unknown" outside a checkout.
std::string_view revision();

/// The compiler, "g++ 12.2.0".
std::string_view compiler();

}  // namespace apu
