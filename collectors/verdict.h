#pragma once

#include <memory>
#include <span>

#include "exporter/collector.h"
#include "verdict/host_verdict.h"

namespace apu {

/// The facts of a pass.
struct VerdictFacts {
  HostJudgement host;
  bool no_gpu = false;  ///< no card is the amdgpu driver's
};

std::span<const MetricInfo> verdict_metrics();

/// What is wrong with the host. Derived: reads no file, but the newest facts of the collectors that
/// do. A fact that is too old is missing evidence.
std::unique_ptr<Collector> make_verdict_collector(const CollectorContext& context);

}  // namespace apu
