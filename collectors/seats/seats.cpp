#include "collectors/seats/seats.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "collectors/seat_config/seat_config.h"
#include "exporter/store.h"

namespace apu {
namespace {

using prometheus::MetricType;

constexpr MetricInfo kInfo{
    "apu_seat_info", MetricType::Gauge, "seat,unit,cgroup,command,pod_uid,container_id",
    "1, with what the seat is; the command of the process that holds most GPU memory "
    "(/proc/PID/cgroup, /proc/PID/stat)"};
constexpr MetricInfo kProcesses{"apu_seat_processes", MetricType::Gauge, "seat",
                                "Processes in the seat (cgroup.procs)"};
constexpr MetricInfo kGpuMemory{
    "apu_seat_gpu_memory_bytes", MetricType::Gauge, "seat,gpu,pool",
    "Memory that the seat's clients hold on the GPU: vram or gtt; absent in a pass in which one "
    "could not be read (/proc/PID/fdinfo)"};
constexpr MetricInfo kClientsUnread{
    "apu_seat_gpu_clients_unread", MetricType::Gauge, "seat",
    "GPU clients of the seat, and descriptors of unknown ones, that could not be read; its GPU "
    "memory is absent then (/proc/PID/fdinfo)"};
constexpr MetricInfo kAllocated{
    "apu_seat_kfd_allocated_bytes", MetricType::Gauge, "seat,gpu",
    "What the seat allocated by hipMalloc, wherever it was placed (/sys/class/kfd/kfd/proc/PID/"
    "vram_*)"};
constexpr MetricInfo kEvicted{
    "apu_seat_queue_evicted_seconds_total", MetricType::Counter, "seat,gpu",
    "Time in which the seat's queues were evicted; an eviction is added when it ends, so it "
    "stands still while one lasts (/sys/class/kfd/kfd/proc/PID/stats_*/evicted_ms)"};
constexpr MetricInfo kQueues{"apu_seat_queues", MetricType::Gauge, "seat,gpu,kind",
                             "User queues that exist, evicted ones too: compute or sdma "
                             "(/sys/class/kfd/kfd/proc/PID/queues)"};
constexpr MetricInfo kDivergence{
    "apu_seat_memcg_gtt_divergence_bytes", MetricType::Gauge, "seat",
    "GTT that the seat's processes hold and that its memory cgroup is not charged for "
    "(/proc/PID/fdinfo, memory.stat)"};
constexpr MetricInfo kHostDivergence{
    "apu_memcg_gtt_divergence_bytes", MetricType::Gauge, "",
    "GTT in use on all GPUs that no memory cgroup is charged for (mem_info_gtt_used, memory.stat)"};
constexpr MetricInfo kUnowned{
    "apu_gpu_memory_unowned_bytes", MetricType::Gauge, "gpu,pool",
    "GPU memory in use that no client of a living process accounts for; absent where that cannot "
    "be told: a process is hidden, a client could not be read, or the kernel may have left out "
    "some "
    "of it (mem_info_*_used, /proc/PID/fdinfo)"};
constexpr MetricInfo kState{
    "apu_seat_state", MetricType::Gauge, "seat,state",
    "1 for what the seat does, 0 for the other states: down, thrashing, blocked, stalled, "
    "spinning, io_starved, loading, computing, idle (/proc/PID/task, kernel log, evicted_ms)"};
constexpr MetricInfo kStateSeconds{
    "apu_seat_state_seconds_total", MetricType::Counter, "seat,state",
    "Time that the seat spent in each state since it was first seen (/proc/PID/task, kernel log, "
    "evicted_ms)"};
constexpr std::array kMetrics{kState,     kStateSeconds,  kInfo,       kSeatConfigInfo,
                              kProcesses, kClientsUnread, kGpuMemory,  kAllocated,
                              kEvicted,   kQueues,        kDivergence, kHostDivergence,
                              kUnowned};

/// By which processes are ranked: as much of their memory as is known.
std::uint64_t gpu_bytes(const ClientMemory* clients, const ProcessKey& process) {
  std::uint64_t sum = 0;
  if (clients == nullptr) {
    return sum;
  }
  const auto found = clients->by_process.find(process);
  if (found != clients->by_process.end()) {
    for (const auto& [gpu, pools] : found->second) {
      for (const auto& [pool, bytes] : pools) {
        sum += bytes;
      }
    }
  }
  return sum;
}

class SeatsCollector : public Collector {
 public:
  explicit SeatsCollector(const CollectorContext& context)
      : store_(context.store), clock_(context.clock) {}

  Result<Snapshot> collect() override {
    const auto cgroup = fresh_facts<CgroupFacts>(*store_, "cgroup");
    const auto gpu = fresh_facts<GpuFacts>(*store_, "gpu");
    const auto kfd = fresh_facts<KfdFacts>(*store_, "kfd");
    const auto found = fresh_facts<GpuClientsFacts>(*store_, "gpu_clients");
    const std::optional<ClientMemory> clients =
        found ? std::optional(to_client_memory(*found)) : std::nullopt;
    const SeatInputs inputs{cgroup.get(), gpu.get(), kfd.get(), clients ? &*clients : nullptr};
    const auto tasks = present_facts<SeatTasksFacts>(*store_, "seat_tasks");
    const auto log = fresh_facts<KernelLogFacts>(*store_, "kernel_log");
    const auto kworkers = fresh_facts<KworkersFacts>(*store_, "kworkers");
    const auto mmap_lock = fresh_facts<MmapLockFacts>(*store_, "mmap_lock");
    const auto health = fresh_facts<SeatHealthFacts>(*store_, "seat_health");
    const StateInputs state_inputs{cgroup.get(), tasks.get(),    kfd.get(),       inputs.clients,
                                   log.get(),    kworkers.get(), mmap_lock.get(), health.get()};
    SeatsFacts facts{account_seats(inputs), host_divergence(inputs), unowned_memory(inputs),
                     states_.update(state_inputs, clock_->now(), clock_->monotonic())};
    MetricWriter metrics;
    if (inputs.cgroup != nullptr) {
      add_seats(metrics, inputs, facts);
    }
    for (const auto& [seat, state] : facts.states) {
      add_state(metrics, seat, state);
    }
    metrics.set(kHostDivergence, facts.host_divergence);
    for (const auto& [key, bytes] : facts.unowned) {
      metrics.set(kUnowned, {key.first, key.second}, static_cast<double>(bytes));
    }
    return Snapshot{std::move(facts), metrics.take()};
  }

 private:
  void add_seats(MetricWriter& metrics, const SeatInputs& inputs, const SeatsFacts& facts) {
    const SeatIndex& index = *inputs.cgroup->index;
    const auto config = fresh_facts<SeatConfigFacts>(*store_, "seat_config");
    for (const Seat& seat : index.seats) {
      const SeatPlace& place = seat.place;
      const SeatProcess* process = representatives_.choose(seat, inputs.clients);
      metrics.set(kInfo,
                  {seat.name, place.unit, place.cgroup, process != nullptr ? process->command : "",
                   place.pod_uid, place.container_id},
                  1);
      if (process != nullptr && config) {
        add_config_info(metrics, seat.name, *config, process->key);
      }
      metrics.set(kProcesses, {seat.name}, static_cast<double>(seat.processes.size()));
      add_account(metrics, seat, facts.accounts.at(seat.name));
    }
    representatives_.keep_only(index);
    evicted_.keep_only(index);
  }

  static void add_state(MetricWriter& metrics, const std::string& seat,
                        const SeatStateFacts& facts) {
    for (size_t i = 0; i < kSeatStates; ++i) {
      const auto state = static_cast<SeatState>(i);
      metrics.set(kState, {seat, to_label(state)}, state == facts.state ? 1 : 0);
      const auto spent = facts.seconds.find(state);
      metrics.set(kStateSeconds, {seat, to_label(state)},
                  spent == facts.seconds.end() ? 0 : spent->second);
    }
  }

  void add_account(MetricWriter& metrics, const Seat& seat, const SeatAccount& account) {
    constexpr double kMilliseconds = 1e-3;
    for (const auto& [gpu, sums] : account.gpus) {
      metrics.set(kGpuMemory, {seat.name, gpu, "vram"}, sums.vram);
      metrics.set(kGpuMemory, {seat.name, gpu, "gtt"}, sums.gtt);
      metrics.set(kAllocated, {seat.name, gpu}, sums.kfd_allocated);
      if (sums.kfd_allocated || !sums.evicted_ms.empty()) {
        metrics.set(
            kEvicted, {seat.name, gpu},
            static_cast<double>(evicted_.total(seat, gpu, sums.evicted_ms)) * kMilliseconds);
      }
      if (sums.queues) {
        metrics.set(kQueues, {seat.name, gpu, "compute"},
                    static_cast<double>(sums.queues->compute));
        metrics.set(kQueues, {seat.name, gpu, "sdma"}, static_cast<double>(sums.queues->sdma));
      }
    }
    metrics.set(kClientsUnread, {seat.name}, account.unread);
    metrics.set(kDivergence, {seat.name}, account.divergence);
  }

  std::shared_ptr<const Store> store_;
  std::shared_ptr<const Clock> clock_;
  SeatStates states_;
  SeatRepresentatives representatives_;
  SeatCounters evicted_;
};

}  // namespace

const SeatProcess* SeatRepresentatives::choose(const Seat& seat, const ClientMemory* clients) {
  if (seat.processes.empty()) {
    chosen_.erase(seat.name);
    return nullptr;
  }
  const auto known = chosen_.find(seat.name);
  if (known != chosen_.end()) {
    const auto same =
        std::find_if(seat.processes.begin(), seat.processes.end(),
                     [&](const SeatProcess& process) { return process.key == known->second; });
    if (same != seat.processes.end()) {
      return &*same;
    }
  }
  // They stand oldest first, and of equals the first is found.
  const auto most = std::max_element(seat.processes.begin(), seat.processes.end(),
                                     [&](const SeatProcess& a, const SeatProcess& b) {
                                       return std::pair(gpu_bytes(clients, a.key), a.on_gpu) <
                                              std::pair(gpu_bytes(clients, b.key), b.on_gpu);
                                     });
  chosen_[seat.name] = most->key;
  return &*most;
}

void SeatRepresentatives::keep_only(const SeatIndex& index) {
  apu::keep_only(index, chosen_);
}

std::span<const MetricInfo> seats_metrics() {
  return kMetrics;
}

std::unique_ptr<Collector> make_seats_collector(const CollectorContext& context) {
  return std::make_unique<SeatsCollector>(context);
}

}  // namespace apu
