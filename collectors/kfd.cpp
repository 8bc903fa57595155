#include "collectors/kfd.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <utility>

#include "collectors/kfd_history.h"
#include "collectors/kfd_owners.h"
#include "collectors/parsers/driver_number.h"
#include "collectors/parsers/kfd_topology.h"
#include "exporter/file_root.h"
#include "exporter/text.h"

namespace apu {
namespace {

using prometheus::MetricType;

constexpr MetricInfo kProcesses{"apu_kfd_processes", MetricType::Gauge, "",
                                "Processes that KFD has an entry for, orphans among them "
                                "(/sys/class/kfd/kfd/proc)"};
constexpr MetricInfo kOrphans{
    "apu_kfd_orphan_processes", MetricType::Gauge, "",
    "KFD entries whose process is gone or a zombie, so that its GPU memory is still held; seconds "
    "of it are normal at the end of a large process (/sys/class/kfd/kfd/proc, /proc/PID/stat)"};
constexpr MetricInfo kOldestOrphan{
    "apu_kfd_oldest_orphan_seconds", MetricType::Gauge, "",
    "How long the oldest KFD orphan has been one, at least: since this exporter first saw it so; "
    "absent without one (/sys/class/kfd/kfd/proc, /proc/PID/stat)"};
constexpr std::array kMetrics{kProcesses, kOrphans, kOldestOrphan};

constexpr const char* kSource = "kfd";
constexpr const char* kProc = "class/kfd/kfd/proc";

/// The number after a prefix in a file's name: the gpu_id in "vram_29772".
template <typename Number>
std::optional<Number> number_after(std::string_view prefix, std::string_view name) {
  return consume(name, prefix) ? parse_number<Number>(name) : std::nullopt;
}

std::uint64_t& count_of(KfdQueueCounts& counts, KfdQueueKind kind) {
  switch (kind) {
    case KfdQueueKind::kCompute:
      return counts.compute;
    case KfdQueueKind::kSdma:
      return counts.sdma;
    case KfdQueueKind::kOther:
      break;
  }
  return counts.other;
}

/// Reads the entry of one process. Below it only files of known names are opened.
class EntryReader {
 public:
  EntryReader(const FileRoot& sysfs, const SourceReporter& sources)
      : sysfs_(sysfs), sources_(sources) {}

  /// The GPUs of an entry, by gpu_id; nullopt if the entry is gone.
  std::optional<std::vector<KfdProcessGpu>> read(const std::string& entry) {
    if (!read_directory(entry)) {
      return std::nullopt;
    }
    std::vector<KfdProcessGpu> gpus;
    for (auto& [gpu_id, gpu] : gpus_) {
      gpu.gpu_id = gpu_id;
      if (vram_unknown_.contains(gpu_id)) {
        gpu.vram_bytes.reset();
      }
      if (queues_known_ && has_queues_) {
        gpu.queues = queues_[gpu_id];
      }
      gpus.push_back(std::move(gpu));
    }
    return gpus;
  }

  /// What each context's evicted_ms said.
  [[nodiscard]] const KfdEvictions::Times& evicted_ms() const { return evicted_ms_; }

  /// Why a file could not be read, other than that it was gone.
  [[nodiscard]] const Status& problem() const { return problem_; }

 private:
  /// An entry, or a context below one, which has the same files.
  bool read_directory(const std::string& directory) {
    const auto names = sysfs_.list(directory);
    if (!names) {
      note(names.error());
      return false;
    }
    for (const std::string& name : *names) {
      read_member(directory, name);
    }
    return true;
  }

  void read_member(const std::string& directory, const std::string& name) {
    const std::string path = fmt::format("{}/{}", directory, name);
    if (const auto vram = number_after<std::uint32_t>("vram_", name)) {
      add_vram(*vram, read_number(path, parse_driver_number), path);
    } else if (const auto stats = number_after<std::uint32_t>("stats_", name)) {
      if (const auto evicted = read_number(path + "/evicted_ms", parse_driver_number)) {
        evicted_ms_[*stats][directory] = *evicted;
      }
      gpus_.try_emplace(*stats);
    } else if (name == "queues") {
      read_queues(path);
    } else if (number_after<std::uint64_t>("context_", name)) {
      read_directory(path);
    }
  }

  /// One context that cannot be read makes the sum unknown, and not smaller.
  void add_vram(std::uint32_t gpu_id, const std::optional<std::uint64_t>& bytes,
                const std::string& path) {
    std::optional<std::uint64_t>& sum = gpus_[gpu_id].vram_bytes;
    if (bytes) {
      sum = sum.value_or(0) + *bytes;
    } else if (sysfs_.exists(path)) {  // else the context went away
      vram_unknown_.insert(gpu_id);
    }
  }

  void read_queues(const std::string& directory) {
    const auto queues = sysfs_.list(directory);
    if (!queues) {
      note(queues.error());
      return;
    }
    has_queues_ = true;
    for (const std::string& queue : *queues) {
      const std::string path = fmt::format("{}/{}", directory, queue);
      if (!parse_number<std::uint64_t>(queue)) {
        continue;
      }
      const auto gpu_id = read_number(path + "/gpuid", parse_bare_number);
      const auto type = read_number(path + "/type", parse_bare_number);
      if (!gpu_id || !type || *gpu_id > std::numeric_limits<std::uint32_t>::max()) {
        queues_known_ = queues_known_ && !sysfs_.exists(path);  // else it was destroyed
        continue;
      }
      const auto id = static_cast<std::uint32_t>(*gpu_id);
      gpus_.try_emplace(id);
      ++count_of(queues_[id], kfd_queue_kind(*type));
    }
  }

  using Parse = std::optional<std::uint64_t> (*)(std::string_view);

  std::optional<std::uint64_t> read_number(const std::string& file, Parse parse) {
    const auto text = sysfs_.read(file);
    if (!text) {
      note(text.error());
      return std::nullopt;
    }
    const auto number = parse(*text);
    if (!number) {
      sources_.parse_error(kSource, fmt::format("{}:1: no number in '{}'", file, *text));
    }
    return number;
  }

  void note(const Error& error) {
    if (error.kind != ErrorKind::kNotFound) {  // else the process ended
      problem_ = error;
    }
  }

  const FileRoot& sysfs_;
  const SourceReporter& sources_;
  std::map<std::uint32_t, KfdProcessGpu> gpus_;
  std::set<std::uint32_t> vram_unknown_;  // by gpu_id
  KfdEvictions::Times evicted_ms_;
  std::map<std::uint32_t, KfdQueueCounts> queues_;
  bool has_queues_ = false;
  bool queues_known_ = true;
  Status problem_;
};

class KfdCollector : public Collector {
 public:
  explicit KfdCollector(const CollectorContext& context)
      : procfs_(context.roots.procfs),
        sysfs_(context.roots.sysfs),
        clock_(context.clock),
        sources_(context.sources),
        topology_(sysfs_, context.sources) {}

  Result<Snapshot> collect() override {
    const auto names = sysfs_.list(kProc);
    if (!sources_.note(kSource, names)) {
      return names.error();
    }
    KfdFacts facts;
    const Status hidden = check_host_processes(procfs_);
    sources_.note("host_processes", hidden);
    facts.host_processes_visible = !hidden;
    const auto& nodes = topology_.refresh();
    Status problem;
    for (const std::string& name : *names) {
      if (const auto pid = parse_number<std::int64_t>(name)) {
        read_process(*pid, nodes, facts, problem);
      }
    }
    std::sort(facts.processes.begin(), facts.processes.end(),
              [](const auto& a, const auto& b) { return a.pid < b.pid; });
    orphans_.update(clock_->now(), facts.processes);
    evictions_.keep_only(facts.processes);
    sources_.note(kSource, problem);
    Families families = to_families(facts);
    return Snapshot{std::move(facts), std::move(families)};
  }

 private:
  void read_process(std::int64_t pid, const std::vector<KfdGpuNode>& nodes, KfdFacts& facts,
                    Status& problem) {
    const std::string entry = fmt::format("{}/{}", kProc, pid);
    EntryReader reader(sysfs_, sources_);
    auto gpus = reader.read(entry);
    problem = reader.problem() ? reader.problem() : problem;
    if (!gpus) {
      return;
    }
    KfdProcess process;
    process.pid = pid;
    process.gpus = *std::move(gpus);
    evictions_.update(pid, reader.evicted_ms());
    for (KfdProcessGpu& gpu : process.gpus) {
      gpu.evicted_ms = evictions_.total(pid, gpu.gpu_id);
      const KfdGpuNode* node = find_node(nodes, gpu.gpu_id);
      gpu.gpu = node == nullptr ? std::string() : node->pci_address;
    }
    if (const Status error =
            facts.host_processes_visible ? read_kfd_process_state(procfs_, process) : Status()) {
      sources_.parse_error("procfs", fmt::format("{}/{}", pid, error->message));
    }
    if (process.state == KfdProcessState::kOrphan && !sysfs_.exists(entry)) {
      return;  // the entry went with its process
    }
    facts.processes.push_back(std::move(process));
  }

  FileRoot procfs_;
  FileRoot sysfs_;
  std::shared_ptr<const Clock> clock_;
  SourceReporter sources_;
  KfdTopology topology_;
  KfdOrphans orphans_;
  KfdEvictions evictions_;
};

}  // namespace

KfdQueueKind kfd_queue_kind(std::uint64_t type) {
  constexpr std::uint64_t kDriversOwn = 2;
  constexpr std::uint64_t kLastKnown = 5;
  if (type == 0) {
    return KfdQueueKind::kCompute;
  }
  return type == kDriversOwn || type > kLastKnown ? KfdQueueKind::kOther : KfdQueueKind::kSdma;
}

Families to_families(const KfdFacts& facts) {
  MetricWriter metrics;
  std::optional<double> oldest;
  int orphans = 0;
  for (const KfdProcess& process : facts.processes) {
    orphans += process.state == KfdProcessState::kOrphan ? 1 : 0;
    if (process.orphan_for) {
      oldest = std::max(oldest.value_or(0), process.orphan_for->count());
    }
  }
  metrics.set(kProcesses, static_cast<double>(facts.processes.size()));
  if (facts.host_processes_visible) {
    metrics.set(kOrphans, orphans);
    metrics.set(kOldestOrphan, oldest);
  }
  return metrics.take();
}

std::span<const MetricInfo> kfd_metrics() {
  return kMetrics;
}

std::unique_ptr<Collector> make_kfd_collector(const CollectorContext& context) {
  return std::make_unique<KfdCollector>(context);
}

}  // namespace apu
