#include "collectors/gpu_busy.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "collectors/parsers/driver_number.h"
#include "collectors/parsers/gpu_devices.h"
#include "exporter/file_root.h"

namespace apu {
namespace {

using prometheus::MetricType;

constexpr MetricInfo kBusy{
    "apu_gpu_busy_ratio", MetricType::Gauge, "gpu",
    "How busy the GPU is by its firmware, 0 to 1; absent while it is suspended or in a reset "
    "(/sys/class/drm/card*/device/gpu_busy_percent)"};
constexpr std::array kMetrics{kBusy};

constexpr std::uint64_t kAllPercent = 100;

class GpuBusyCollector : public Collector {
 public:
  explicit GpuBusyCollector(const CollectorContext& context)
      : sysfs_(context.roots.sysfs), sources_(context.sources) {}

  Result<Snapshot> collect() override {
    const auto devices = read_gpu_devices(sysfs_);
    if (!devices) {
      sources_.unavailable(kSource, devices.error().kind);
      return devices.error();
    }
    Status problem;
    GpuBusyFacts facts;
    for (const GpuDevice& device : *devices) {
      facts.gpus.push_back({device.pci_address, read_percent(device, problem)});
    }
    // A pass without a value is a good one: the last value must not be shown during a reset.
    sources_.note(kSource, problem);
    Families families = to_families(facts);
    return Snapshot{std::move(facts), std::move(families)};
  }

 private:
  std::optional<std::uint64_t> read_percent(const GpuDevice& device, Status& problem) const {
    if (read_runtime_suspended(sysfs_, device).value_or(false)) {
      return std::nullopt;
    }
    const std::string file = device.directory() + "/gpu_busy_percent";
    const auto text = sysfs_.read(file);
    if (!text) {
      problem = text.error();
      return std::nullopt;
    }
    const auto percent = parse_busy_percent(*text);
    if (!percent) {
      sources_.parse_error(kSource, fmt::format("{}:1: no percentage in '{}'", file, *text));
    }
    return percent;
  }

  static constexpr const char* kSource = "gpu_busy";

  FileRoot sysfs_;
  SourceReporter sources_;
};

}  // namespace

std::optional<std::uint64_t> parse_busy_percent(std::string_view text) {
  const auto percent = parse_driver_number(text);
  return percent && *percent <= kAllPercent ? percent : std::nullopt;
}

Families to_families(const GpuBusyFacts& facts) {
  MetricWriter metrics;
  for (const GpuBusy& gpu : facts.gpus) {
    if (gpu.percent) {
      metrics.set(kBusy, {gpu.gpu},
                  static_cast<double>(*gpu.percent) / static_cast<double>(kAllPercent));
    }
  }
  return metrics.take();
}

std::span<const MetricInfo> gpu_busy_metrics() {
  return kMetrics;
}

std::unique_ptr<Collector> make_gpu_busy_collector(const CollectorContext& context) {
  return std::make_unique<GpuBusyCollector>(context);
}

}  // namespace apu
