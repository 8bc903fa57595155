#include "collectors/gpu_clients/gpu_clients.h"

#include <algorithm>
#include <array>
#include <utility>

#include "collectors/gpu.h"
#include "collectors/gpu_clients/attribution.h"
#include "collectors/gpu_clients/client_reader.h"
#include "collectors/gpu_clients/holders.h"
#include "collectors/kfd_owners.h"
#include "collectors/parsers/driver_number.h"
#include "exporter/file_root.h"

namespace apu {
namespace {

using Bytes = std::optional<std::uint64_t>;
using Steady = std::chrono::steady_clock;
using prometheus::MetricType;

constexpr MetricInfo kClients{
    "apu_gpu_clients", MetricType::Gauge, "gpu",
    "Open files of the GPU's device nodes, each counted once; absent for a GPU that nobody uses, "
    "and while one may be missing (/proc/PID/fdinfo)"};
constexpr MetricInfo kMemory{"apu_gpu_client_memory_bytes", MetricType::Gauge, "gpu,pool",
                             "Memory of all clients of the GPU, where it lies now; absent while "
                             "one could not be read, or may be missing (/proc/PID/fdinfo)"};
constexpr MetricInfo kUnread{"apu_gpu_unread_clients", MetricType::Gauge, "",
                             "Clients whose memory could not be read, and descriptors of unknown "
                             "clients (/proc/PID/fdinfo)"};
constexpr std::array kMetrics{kClients, kMemory, kUnread};

Bytes read_used(const FileRoot& sysfs, const std::string& pool) {
  const auto number_in = [&](const std::string& file) {
    const auto text = sysfs.read(file);
    return text ? parse_driver_number(*text) : std::nullopt;
  };
  GpuMemoryPool sizes{number_in(pool + "_total"), number_in(pool + "_used")};
  (void)drop_impossible(sizes);  // the gpu collector counts it
  return sizes.used_bytes;
}

/// What is in use on the GPUs. Counters in memory: wakes no device.
GpuPools read_used(const FileRoot& sysfs) {
  GpuPools used;
  const auto devices = read_gpu_devices(sysfs);
  for (const GpuDevice& device : devices ? *devices : std::vector<GpuDevice>()) {
    const std::string prefix = device.directory() + "/mem_info_";
    used[device.pci_address] = {read_used(sysfs, prefix + "vram"),
                                read_used(sysfs, prefix + "gtt")};
  }
  return used;
}

/// The smaller of each; absent unless both are known.
GpuPools smaller(const GpuPools& a, const GpuPools& b) {
  const auto least = [](const Bytes& left, const Bytes& right) {
    return left && right ? std::min(left, right) : std::nullopt;
  };
  GpuPools both;
  for (const auto& [gpu, pools] : a) {
    const auto other = b.find(gpu);
    if (other != b.end()) {
      both[gpu] = {least(pools.vram, other->second.vram), least(pools.gtt, other->second.gtt)};
    }
  }
  return both;
}

/// Whether so much more is in use than at some time since the last sweep that a process may hold it
/// which was not looked at.
bool has_grown(const GpuPools& used, const GpuPools& lowest) {
  constexpr std::uint64_t kSlack = std::uint64_t{16} << 20U;
  const auto grown = [](const Bytes& now, const Bytes& before) {
    return now && before && *now > *before + kSlack;
  };
  return std::any_of(used.begin(), used.end(), [&](const auto& entry) {
    const auto before = lowest.find(entry.first);
    return before == lowest.end() || grown(entry.second.vram, before->second.vram) ||
           grown(entry.second.gtt, before->second.gtt);
  });
}

class GpuClientsCollector : public Collector {
 public:
  GpuClientsCollector(const CollectorContext& context, const GpuClientsSettings& settings)
      : sysfs_(context.roots.sysfs),
        sources_(context.sources),
        sweep_every_(settings.sweep_every),
        kfd_(FileRoot(context.roots.procfs), sysfs_),
        holders_(FileRoot(context.roots.procfs)),
        reader_(FileRoot(context.roots.procfs), context.sources, settings.reader) {}

  Result<Snapshot> collect() override {
    const GpuPools used = read_used(sysfs_);
    const bool sweep = is_sweep_due(used);
    const KfdOwners::Found kfd = kfd_.update();
    const Status error = holders_.update(kfd.living, DrmMinors::read(sysfs_), sweep);
    sources_.note("procfs", error);
    if (error) {
      return *error;
    }
    note_sweep(used, sweep);
    const ClientReadings readings = reader_.read(holders_);
    const bool denied = holders_.denied() || reader_.denied();
    note_source(denied);
    // What was allocated or freed while the files were read is nobody's for no moment.
    GpuClientsFacts facts = attribution_.attribute(
        holders_.all(), readings, smaller(used, read_used(sysfs_)), !denied && kfd.complete);
    facts.swept = sweep;
    Families families = to_families(facts);
    return Snapshot{std::move(facts), std::move(families)};
  }

 private:
  [[nodiscard]] bool is_sweep_due(const GpuPools& used) const {
    return !swept_ || Steady::now() - *swept_ >= sweep_every_ || has_grown(used, lowest_used_);
  }

  void note_sweep(const GpuPools& used, bool sweep) {
    swept_ = sweep ? Steady::now() : *swept_;
    lowest_used_ = sweep ? used : smaller(used, lowest_used_);
  }

  void note_source(bool denied) const {
    if (denied) {
      sources_.unavailable("fdinfo", ErrorKind::kPermissionDenied);
    } else if (reader_.blocked()) {
      sources_.unavailable("fdinfo", ErrorKind::kBlocked);
    } else {
      sources_.available("fdinfo");
    }
  }

  FileRoot sysfs_;
  SourceReporter sources_;
  std::chrono::milliseconds sweep_every_;
  std::optional<Steady::time_point> swept_;
  GpuPools lowest_used_;  // since the last sweep
  KfdOwners kfd_;
  GpuHolders holders_;
  ClientReader reader_;
  Attribution attribution_;
};

}  // namespace

Families to_families(const GpuClientsFacts& facts) {
  MetricWriter metrics;
  for (const auto& [gpu, total] : facts.gpus) {
    metrics.set(kClients, {gpu}, static_cast<double>(total.clients));
    metrics.set(kMemory, {gpu, "vram"}, total.memory.vram);
    metrics.set(kMemory, {gpu, "gtt"}, total.memory.gtt);
  }
  metrics.set(kUnread, static_cast<double>(facts.unread));
  return metrics.take();
}

std::span<const MetricInfo> gpu_clients_metrics() {
  return kMetrics;
}

std::unique_ptr<Collector> make_gpu_clients_collector(const CollectorContext& context) {
  return make_gpu_clients_collector(context, GpuClientsSettings());
}

std::unique_ptr<Collector> make_gpu_clients_collector(const CollectorContext& context,
                                                      const GpuClientsSettings& settings) {
  return std::make_unique<GpuClientsCollector>(context, settings);
}

}  // namespace apu
