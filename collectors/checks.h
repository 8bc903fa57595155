#pragma once

#include <memory>
#include <span>

#include "checks/check.h"
#include "exporter/collector.h"

namespace apu {

/// The facts of a pass.
struct ChecksFacts {
  Checks checks;
};

Families to_families(const ChecksFacts& facts);

std::span<const MetricInfo> checks_metrics();

/// Whether the host and its seats are set up so that the fault does not come. Derived: reads no
/// file, but the newest facts of the collectors that do.
std::unique_ptr<Collector> make_checks_collector(const CollectorContext& context);

}  // namespace apu
