#include "collectors/gpu_clients/gpu_clients.h"

#include <array>
#include <set>
#include <utility>

#include "collectors/gpu_clients/attribution.h"
#include "collectors/gpu_clients/client_reader.h"
#include "collectors/gpu_clients/holders.h"
#include "exporter/file_root.h"
#include "exporter/text.h"

namespace apu {
namespace {

using Steady = std::chrono::steady_clock;
using prometheus::MetricType;

constexpr MetricInfo kClients{
    "apu_gpu_clients", MetricType::Gauge, "gpu",
    "Open files of the GPU's device nodes, each counted once; absent for a GPU that nobody uses, "
    "and while one may be missing (/proc/PID/fdinfo)"};
constexpr MetricInfo kMemory{
    "apu_gpu_client_memory_bytes", MetricType::Gauge, "gpu,pool",
    "Memory of all clients of the GPU, where it lies now; what is in use beyond it belongs to no "
    "living process; absent while one could not be read (/proc/PID/fdinfo)"};
constexpr MetricInfo kUnread{"apu_gpu_unread_clients", MetricType::Gauge, "",
                             "Clients whose memory could not be read, and descriptors of unknown "
                             "clients (/proc/PID/fdinfo)"};
constexpr std::array kMetrics{kClients, kMemory, kUnread};

/// The processes that KFD knows; none where there is no KFD.
std::set<std::int64_t> list_kfd_processes(const FileRoot& sysfs) {
  std::set<std::int64_t> pids;
  const auto names = sysfs.list("class/kfd/kfd/proc");
  if (names) {
    for (const std::string& name : *names) {
      if (const auto pid = parse_number<std::int64_t>(name)) {
        pids.insert(*pid);
      }
    }
  }
  return pids;
}

class GpuClientsCollector : public Collector {
 public:
  GpuClientsCollector(const CollectorContext& context, const GpuClientsSettings& settings)
      : sysfs_(context.roots.sysfs),
        sources_(context.sources),
        sweep_every_(settings.sweep_every),
        holders_(FileRoot(context.roots.procfs)),
        reader_(FileRoot(context.roots.procfs), context.sources, settings.reader) {}

  Result<Snapshot> collect() override {
    const auto now = Steady::now();
    const bool sweep = !swept_ || now - *swept_ >= sweep_every_;
    const Status error = holders_.update(list_kfd_processes(sysfs_), sweep);
    sources_.note("procfs", error);
    if (error) {
      return *error;
    }
    swept_ = sweep ? now : *swept_;
    const ClientReadings readings = reader_.read(holders_, sweep);
    const bool denied = holders_.denied() || reader_.denied();
    note_source(denied);
    GpuClientsFacts facts = attribution_.attribute(holders_.all(), readings, denied);
    facts.swept = sweep;
    Families families = to_families(facts);
    return Snapshot{std::move(facts), std::move(families)};
  }

 private:
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
