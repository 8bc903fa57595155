#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "collectors/kernel_log/state.h"
#include "exporter/collector.h"

namespace apu {

/// The facts of a pass.
struct KernelLogFacts {
  KernelLogState log;
  /// /sys/module/workqueue/parameters; absent where the kernel has no such parameter.
  std::optional<std::uint64_t> hog_threshold_us;       ///< 0: hogs are not counted
  std::optional<std::uint64_t> hog_warning_threshold;  ///< T of HogRule; 0: reports are off
  /// What the module of the amdgpu driver is called in a hog report: "amdgpu", or "" where it is
  /// built in. Absent where there is no such driver.
  std::optional<std::string> driver_module;
};

/// Whether this kernel prints hog reports, as far as can be told: it has the parameter, or a
/// report was seen (6.5 to about 6.8 print without having the parameter).
bool reports_hogs(const KernelLogFacts& facts);

/// The rule by which this kernel prints: by its parameter, else guessed from all that it printed.
HogRule hog_rule(const KernelLogFacts& facts);

Families to_families(const KernelLogFacts& facts, TimePoint now);

std::span<const MetricInfo> kernel_log_metrics();

/// Hog reports and GPU messages of this boot's kernel log. Sources "kmsg" or "log_file", and
/// "workqueue_report". Nothing is published before the whole log has been read once: a count on
/// its way up looks like a storm.
std::unique_ptr<Collector> make_kernel_log_collector(const CollectorContext& context);

}  // namespace apu
