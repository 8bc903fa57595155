#include "exporter/health.h"

#include <array>
#include <chrono>

#include "build_info.h"

namespace apu {
namespace {

using prometheus::MetricType;

constexpr MetricInfo kBuild{"apu_exporter_build_info", MetricType::Gauge,
                            "version,revision,compiler",
                            "1, with what this exporter was built from (exporter)"};
constexpr MetricInfo kSuccess{
    "apu_collector_success", MetricType::Gauge, "collector",
    "1 if the last pass of the collector ended well, else 0; 0 before the first (exporter)"};
constexpr MetricInfo kAge{"apu_collector_age_seconds", MetricType::Gauge, "collector",
                          "Age of the collector's newest snapshot, absent before the first; past "
                          "5 minutes, or 10 periods, its metrics are no longer shown (exporter)"};
constexpr MetricInfo kOverdue{
    "apu_collector_overdue", MetricType::Gauge, "collector",
    "1 while a pass of the collector runs past its deadline, else 0 (exporter)"};
constexpr MetricInfo kDuration{"apu_collector_duration_seconds", MetricType::Gauge, "collector",
                               "How long the last ended pass of the collector took (exporter)"};
constexpr MetricInfo kPasses{"apu_collector_passes_total", MetricType::Counter, "collector,outcome",
                             "Passes of the collector that ended (exporter)"};
constexpr std::array kMetrics{kBuild, kSuccess, kAge, kOverdue, kDuration, kPasses};

double to_seconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

std::optional<double> to_seconds(std::optional<std::chrono::steady_clock::duration> duration) {
  return duration ? std::optional(to_seconds(*duration)) : std::nullopt;
}

}  // namespace

Families collector_families(const std::vector<CollectorView>& views) {
  MetricWriter metrics;
  for (const CollectorView& view : views) {
    const WorkerStatus& status = view.status;
    metrics.set(kSuccess, {view.name}, status.last_pass_ok ? 1 : 0);
    metrics.set(kAge, {view.name}, to_seconds(view.age));
    metrics.set(kOverdue, {view.name}, status.overdue ? 1 : 0);
    metrics.set(kDuration, {view.name}, to_seconds(status.last_duration));
    metrics.set(kPasses, {view.name, "ok"}, static_cast<double>(status.passes_ok));
    metrics.set(kPasses, {view.name, "failed"}, static_cast<double>(status.passes_failed));
  }
  return metrics.take();
}

Families build_families() {
  MetricWriter metrics;
  metrics.set(kBuild, {version(), revision(), compiler()}, 1);
  return metrics.take();
}

std::span<const MetricInfo> health_metrics() {
  return kMetrics;
}

std::string_view version() {
  return kBuildVersion;
}

std::string_view revision() {
  return kBuildRevision;
}

std::string_view compiler() {
  return kBuildCompiler;
}

}  // namespace apu
