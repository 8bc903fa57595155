#include "collectors/cgroup/cgroup.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <utility>

#include "collectors/gpu_clients/gpu_clients.h"
#include "collectors/kfd_owners.h"
#include "collectors/parsers/pid_stat.h"
#include "exporter/file_root.h"
#include "exporter/store.h"
#include "exporter/text.h"

namespace apu {
namespace {

using prometheus::MetricType;

constexpr const char* kSource = "cgroup2";

constexpr MetricInfo kCharged{"apu_memcg_charged_bytes", MetricType::Gauge, "",
                              "Memory that the top-level cgroups are charged for; GTT is not in it "
                              "(/sys/fs/cgroup/*/memory.current)"};
constexpr MetricInfo kSeats{"apu_seats", MetricType::Gauge, "",
                            "Seats: units, containers and sessions that serve models on the GPU "
                            "(/sys/fs/cgroup, /sys/class/kfd/kfd/proc)"};
constexpr MetricInfo kBeyond{"apu_seats_omitted", MetricType::Gauge, "",
                             "Seats beyond --seat.max, which have no series (/sys/fs/cgroup)"};
constexpr MetricInfo kCurrent{"apu_seat_memcg_current_bytes", MetricType::Gauge, "seat",
                              "Memory that the seat's cgroup is charged for; GTT is not in it "
                              "(memory.current)"};
constexpr MetricInfo kSwap{"apu_seat_memcg_swap_bytes", MetricType::Gauge, "seat",
                           "Swap that the seat's cgroup uses (memory.swap.current)"};
constexpr MetricInfo kFile{"apu_seat_memcg_file_bytes", MetricType::Gauge, "seat",
                           "Page cache that the seat's cgroup is charged for (memory.stat file)"};
constexpr MetricInfo kLimit{"apu_seat_memcg_limit_bytes", MetricType::Gauge, "seat,limit",
                            "Limits and protections that are set: min, low, high, max, swap_max; "
                            "+Inf where there is no limit (memory.*)"};
constexpr MetricInfo kProtection{
    "apu_seat_memcg_protection_bytes", MetricType::Gauge, "seat,limit",
    "Memory that reclaim leaves alone once the ancestors' settings are taken into account (the "
    "kernel's formula over memory.min, memory.low, memory.current)"};
constexpr MetricInfo kEvents{"apu_seat_memcg_events_total", MetricType::Counter, "seat,event",
                             "Events of the seat's cgroup: low, high, max, oom, oom_kill "
                             "(memory.events)"};
constexpr MetricInfo kStalled{"apu_seat_pressure_stalled_seconds_total", MetricType::Counter,
                              "seat,resource,kind",
                              "Time in which some or all tasks of the seat waited for the resource "
                              "(*.pressure total)"};
constexpr std::array kMetrics{kCharged, kSeats, kBeyond,     kCurrent, kSwap,
                              kFile,    kLimit, kProtection, kEvents,  kStalled};

void add_memory(MetricWriter& metrics, const std::string& seat, const CgroupMemory& memory) {
  metrics.set(kCurrent, {seat}, memory.current);
  metrics.set(kSwap, {seat}, memory.swap_current);
  metrics.set(kFile, {seat}, memory.file);
  for (const auto& [name, limit] : memory.limits) {
    metrics.set(
        kLimit, {seat, name},
        limit.bytes ? static_cast<double>(*limit.bytes) : std::numeric_limits<double>::infinity());
  }
  for (const auto& [name, bytes] : memory.protected_bytes) {
    metrics.set(kProtection, {seat, name}, static_cast<double>(bytes));
  }
  for (const char* event : {"low", "high", "max", "oom", "oom_kill"}) {
    const auto found = memory.events.find(event);
    if (found != memory.events.end()) {
      metrics.set(kEvents, {seat, event}, static_cast<double>(found->second));
    }
  }
}

void add_pressure(MetricWriter& metrics, const std::string& seat, const CgroupMemory& memory) {
  constexpr double kMicroseconds = 1e-6;
  for (const NamedPressure& named : memory.pressure) {
    const auto& [some, full] = std::pair(named.pressure.some, named.pressure.full);
    if (some) {
      metrics.set(kStalled, {seat, named.resource, "some"},
                  static_cast<double>(some->total_us) * kMicroseconds);
    }
    if (full) {
      metrics.set(kStalled, {seat, named.resource, "full"},
                  static_cast<double>(full->total_us) * kMicroseconds);
    }
  }
}

class CgroupCollector : public Collector {
 public:
  explicit CgroupCollector(const CollectorContext& context)
      : procfs_(context.roots.procfs),
        kfd_(procfs_, FileRoot(context.roots.sysfs)),
        store_(context.store),
        fixture_(context.roots.fixture),
        own_pid_(own_pid(procfs_, fixture_)),
        sources_(context.sources),
        rules_(rules_of(context.seats)),
        namer_(rules_),
        tree_(context.roots, context.sources),
        memory_(tree_, context.sources) {}

  Result<Snapshot> collect() override {
    if (Status error = tree_.check()) {
      sources_.unavailable(kSource, error->kind);
      return *error;
    }
    memory_.begin_pass();
    CgroupFacts facts;
    facts.index = find_seats();
    for (const Seat& seat : facts.index->seats) {
      if (!seat.place.owns_cgroup()) {
        continue;
      }
      if (auto memory = memory_.read(seat.place.cgroup)) {
        facts.memory[seat.name] = *std::move(memory);
      }
    }
    facts.charged = memory_.charged();
    const CgroupMemory root = memory_.read_root();
    facts.gpu_charged = root.gpu_charged;
    facts.charges_gpu = root.charges_gpu;
    sources_.note(kSource, memory_.problem());
    Families families = to_families(facts);
    return Snapshot{std::move(facts), std::move(families)};
  }

 private:
  std::shared_ptr<const SeatIndex> find_seats() {
    std::vector<std::string> units = tree_.units();
    std::erase(units, own_cgroup());
    std::map<std::int64_t, SeatProcess> processes;
    for (const ProcessIdentity& holder : gpu_processes()) {
      add_process(holder.pid, true, processes);
      const auto found = processes.find(holder.pid);
      if (found != processes.end() && found->second.key != holder) {
        processes.erase(found);  // another process has that id by now
      }
    }
    std::map<std::string, std::uint64_t> hidden;
    for (const std::string& cgroup : seat_cgroups(units, processes)) {
      for (const std::int64_t pid : tree_.processes(cgroup)) {
        hidden[cgroup] += add_process(pid, false, processes) ? 0 : 1;
      }
    }
    std::vector<SeatProcess> all;
    all.reserve(processes.size());
    for (auto& [pid, process] : processes) {
      all.push_back(std::move(process));
    }
    return namer_.update(all, units, hidden);
  }

  /// Cgroups whose other processes belong to a seat, too.
  [[nodiscard]] std::set<std::string> seat_cgroups(
      const std::vector<std::string>& units,
      const std::map<std::int64_t, SeatProcess>& gpu_processes) const {
    std::set<std::string> cgroups;
    for (const std::string& unit : units) {
      const SeatPlace place = parse_seat_place(unit);
      if (!place.unit.empty() && rules_.matches(place.unit)) {
        cgroups.insert(place.cgroup);
      }
    }
    for (const auto& [pid, process] : gpu_processes) {
      const SeatPlace place = parse_seat_place(process.cgroup);
      if (place.owns_cgroup()) {
        cgroups.insert(place.cgroup);
      }
    }
    return cgroups;
  }

  /// Processes that KFD knows, and those that hold a DRM client of an AMD card, read or not, by the
  /// newest facts.
  std::vector<ProcessIdentity> gpu_processes() {
    std::vector<ProcessIdentity> holders;
    for (const auto& [pid, process] : kfd_.update().living) {
      holders.push_back(process);
    }
    const auto facts = fresh_facts<GpuClientsFacts>(*store_, "gpu_clients");
    if (!facts) {
      return holders;
    }
    for (const GpuProcess& process : facts->processes) {
      if (!process.clients.empty() || process.unread > 0) {
        holders.push_back(process.process);
      }
    }
    return holders;
  }

  /// False if procfs does not show it.
  bool add_process(std::int64_t pid, bool on_gpu, std::map<std::int64_t, SeatProcess>& processes) {
    if (processes.contains(pid) || pid == own_pid_) {
      return true;
    }
    const std::string directory = std::to_string(pid);
    const auto stat_text = procfs_.read(directory + "/stat");
    const auto cgroup_text = procfs_.read(directory + "/cgroup");
    if (!stat_text || !cgroup_text) {
      return false;
    }
    const auto stat = parse_pid_stat(*stat_text);
    const auto path = parse_proc_cgroup(*cgroup_text);
    if (!stat || !path) {
      sources_.parse_error(kSource, directory + (stat ? "/cgroup:1: " + path.error().message
                                                      : "/stat:1: " + stat.error().message));
      return false;
    }
    if (has_ended(*stat) || (own_pid_ && stat->parent == own_pid_)) {
      return true;  // its GPU memory is an orphan's; or it is a helper of ours
    }
    const auto resolved = tree_.resolve(*path, init_path(), pid);
    if (resolved) {
      processes[pid] = {{pid, stat->start_ticks}, stat->comm, *resolved, on_gpu};
    }
    return true;
  }

  /// The exporter's own, which no pattern makes a seat; empty in a fixture.
  std::string own_cgroup() {
    if (!own_cgroup_) {
      const auto text = fixture_ ? Result<std::string>(Error{}) : procfs_.read("self/cgroup");
      const auto path = text ? parse_proc_cgroup(*text) : Result<std::string>(Error{});
      own_cgroup_ = path && *path != "/" ? *path : "";
    }
    return *own_cgroup_;
  }

  /// The path of PID 1, which shows how deep our own cgroup namespace is. It stays the same.
  std::string init_path() {
    if (init_path_.empty()) {
      const auto text = procfs_.read("1/cgroup");
      const auto path = text ? parse_proc_cgroup(*text) : Result<std::string>(Error{});
      init_path_ = path ? *path : "";
    }
    return init_path_.empty() ? "/" : init_path_;
  }

  /// Our id as procfs has it, which may be another namespace's; nullopt in a fixture.
  static std::optional<std::int64_t> own_pid(const FileRoot& procfs, bool fixture) {
    const auto self = procfs.link_name("self");
    const auto pid = self ? parse_number<std::int64_t>(*self) : std::nullopt;
    return fixture ? std::nullopt : std::optional(pid.value_or(::getpid()));
  }

  FileRoot procfs_;
  KfdOwners kfd_;
  std::shared_ptr<const Store> store_;
  bool fixture_;
  std::optional<std::int64_t> own_pid_;
  SourceReporter sources_;
  SeatRules rules_;
  SeatNamer namer_;
  CgroupTree tree_;
  CgroupMemoryReader memory_;
  std::string init_path_;
  std::optional<std::string> own_cgroup_;
};

}  // namespace

Families to_families(const CgroupFacts& facts) {
  MetricWriter metrics;
  metrics.set(kCharged, facts.charged);
  metrics.set(kSeats, static_cast<double>(facts.index->seats.size()));
  metrics.set(kBeyond, static_cast<double>(facts.index->beyond));
  for (const auto& [seat, memory] : facts.memory) {
    add_memory(metrics, seat, memory);
    add_pressure(metrics, seat, memory);
  }
  return metrics.take();
}

std::span<const MetricInfo> cgroup_metrics() {
  return kMetrics;
}

std::unique_ptr<Collector> make_cgroup_collector(const CollectorContext& context) {
  return std::make_unique<CgroupCollector>(context);
}

}  // namespace apu
