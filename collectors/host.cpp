#include "collectors/host.h"

#include <array>
#include <utility>

#include "collectors/parsers/boot_time.h"
#include "exporter/file_root.h"
#include "exporter/text.h"

namespace apu {
namespace {

using prometheus::MetricType;

constexpr MetricInfo kInfo{
    "apu_host_info", MetricType::Gauge, "kernel,amdgpu,rocm,machine",
    "1, with the kernel release, the versions of the amdgpu module and of ROCm where they have "
    "one, and the DMI product name (/proc/sys/kernel/osrelease, /sys/module/amdgpu/version, "
    "/opt/rocm/.info/version, /sys/class/dmi/id/product_name)"};
constexpr MetricInfo kBootTime{"apu_boot_time_seconds", MetricType::Gauge, "",
                               "Unix time at which the host booted (/proc/stat btime)"};
constexpr std::array kMetrics{kInfo, kBootTime};

/// The first line of a file, empty if it cannot be read: none of these files must exist.
std::string line_in(const FileRoot& root, std::string_view file) {
  const auto text = root.read(file);
  constexpr size_t kMaxLabel = 256;
  return text ? std::string(trim(first_line(*text)).substr(0, kMaxLabel)) : std::string();
}

class HostCollector : public Collector {
 public:
  explicit HostCollector(const CollectorContext& context)
      : rootfs_(context.roots.rootfs),
        procfs_(context.roots.procfs),
        sysfs_(context.roots.sysfs),
        sources_(context.sources) {}

  Result<Snapshot> collect() override {
    const auto boot_time = read_boot_time(procfs_);
    if (!sources_.note("procfs", boot_time)) {
      return boot_time.error();
    }
    HostFacts facts{*boot_time, line_in(procfs_, "sys/kernel/osrelease"),
                    line_in(sysfs_, "module/amdgpu/version"),
                    line_in(rootfs_, "opt/rocm/.info/version"),
                    line_in(sysfs_, "class/dmi/id/product_name")};
    Families families = to_families(facts);
    return Snapshot{std::move(facts), std::move(families)};
  }

 private:
  FileRoot rootfs_;
  FileRoot procfs_;
  FileRoot sysfs_;
  SourceReporter sources_;
};

}  // namespace

Families to_families(const HostFacts& facts) {
  MetricWriter metrics;
  metrics.set(kInfo, {facts.kernel, facts.amdgpu, facts.rocm, facts.machine}, 1);
  metrics.set(kBootTime, to_unix_seconds(facts.boot_time));
  return metrics.take();
}

std::span<const MetricInfo> host_metrics() {
  return kMetrics;
}

std::unique_ptr<Collector> make_host_collector(const CollectorContext& context) {
  return std::make_unique<HostCollector>(context);
}

}  // namespace apu
