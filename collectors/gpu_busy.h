#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "exporter/collector.h"

namespace apu {

/// How busy one GPU is.
struct GpuBusy {
  std::string gpu;  ///< PCI address
  /// 0..100. Absent while the GPU is suspended, in a reset, or where its driver does not tell.
  std::optional<std::uint64_t> percent;
};

/// The facts of a pass, by PCI address.
struct GpuBusyFacts {
  std::vector<GpuBusy> gpus;
};

/// Parses gpu_busy_percent.
///
/// Source: amdgpu_get_gpu_busy_percent in drivers/gpu/drm/amd/pm/amdgpu_pm.c.
/// Shape:  "%d\n", 0 to 100.
/// nullopt: no such number.
std::optional<std::uint64_t> parse_busy_percent(std::string_view text);

Families to_families(const GpuBusyFacts& facts);

std::span<const MetricInfo> gpu_busy_metrics();

/// How busy the AMD GPUs are. A collector of its own: the driver asks the GPU's firmware, which
/// can block while that or a reset is stuck. A suspended GPU is not asked, since that would wake
/// it. Source "gpu_busy": not available where no GPU tells, or one refuses, as in a reset.
std::unique_ptr<Collector> make_gpu_busy_collector(const CollectorContext& context);

}  // namespace apu
