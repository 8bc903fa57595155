#pragma once

#include <memory>
#include <span>
#include <string>

#include "exporter/clock.h"
#include "exporter/collector.h"

namespace apu {

/// What a host is. A version that is not there is empty.
struct HostFacts {
  TimePoint boot_time;
  std::string kernel;   ///< release, /proc/sys/kernel/osrelease
  std::string amdgpu;   ///< /sys/module/amdgpu/version, which the in-tree driver lacks
  std::string rocm;     ///< /opt/rocm/.info/version
  std::string machine;  ///< /sys/class/dmi/id/product_name
};

Families to_families(const HostFacts& facts);

std::span<const MetricInfo> host_metrics();

/// Boot time and versions. Source "procfs".
std::unique_ptr<Collector> make_host_collector(const CollectorContext& context);

}  // namespace apu
