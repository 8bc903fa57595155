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
  /// Whether the kernel was built to report hogs (CONFIG_WQ_CPU_INTENSIVE_REPORT); absent where its
  /// configuration is not on the disk. Kernels 6.5 to about 6.8 report without having the
  /// parameter.
  std::optional<bool> built_with_reports;
  /// CPU time a second of all per-CPU kworkers: what hogs burn at most. Absent where the kworkers
  /// collector does not run or has no minute behind it.
  std::optional<double> per_cpu_kworker_cores;
  /// What the module of the amdgpu driver is called in a hog report: "amdgpu", or "" where it is
  /// built in. Absent where there is no such driver.
  std::optional<std::string> driver_module;
};

/// Whether this kernel prints hog reports, as far as can be told: by the parameter, by a report
/// that was seen, by the configuration it was built with.
bool reports_hogs(const KernelLogFacts& facts);

/// The rule by which this kernel prints: by its parameter, else guessed from all that it printed.
HogRule hog_rule(const KernelLogFacts& facts);

/// Hogs per second of `series`: the smallest of what HogSeries::rate says and of what the CPU time
/// of kworkers leaves room for, since one hog burns at least the threshold.
std::optional<double> live_hog_rate(const KernelLogFacts& facts, const HogSeries& series,
                                    TimePoint now);

/// Whether the text of a kernel's configuration has CONFIG_WQ_CPU_INTENSIVE_REPORT.
///
/// Shape: "CONFIG_X=y" or "# CONFIG_X is not set"; older kernels do not know the option.
bool config_has_hog_reports(std::string_view config);

Families to_families(const KernelLogFacts& facts, TimePoint now);

std::span<const MetricInfo> kernel_log_metrics();

/// Hog reports and GPU messages of this boot's kernel log. Sources "kmsg", "journal" or "log_file",
/// and "workqueue_report". Nothing is published before the whole log has been read once: a count on
/// its way up looks like a storm.
std::unique_ptr<Collector> make_kernel_log_collector(const CollectorContext& context);

}  // namespace apu
