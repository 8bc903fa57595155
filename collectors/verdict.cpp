#include "collectors/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "collectors/cgroup/cgroup.h"
#include "collectors/gpu.h"
#include "collectors/gpu_clients/gpu_clients.h"
#include "collectors/kernel_log/kernel_log.h"
#include "collectors/kfd.h"
#include "collectors/kfd_limits.h"
#include "collectors/memory.h"
#include "collectors/pressure.h"
#include "collectors/recent_series.h"
#include "collectors/seats/seats.h"
#include "exporter/store.h"
#include "exporter/text.h"

namespace apu {
namespace {

using prometheus::MetricType;

constexpr MetricInfo kVerdict{
    "apu_verdict", MetricType::Gauge, "verdict",
    "1 for the verdict on the host, 0 for the others: unknown, healthy, memory_pressure, "
    "io_starvation, gpu_memory_exhausted, gpu_fault, kfd_thrash (all collectors)"};
constexpr std::array kMetrics{kVerdict};

constexpr std::array kVerdicts{Verdict::kUnknown,
                               Verdict::kHealthy,
                               Verdict::kMemoryPressure,
                               Verdict::kIoStarvation,
                               Verdict::kGpuMemoryExhausted,
                               Verdict::kGpuFault,
                               Verdict::kKfdThrash};

constexpr double kMebibyte = 1048576;

constexpr std::string_view kGttFile = "mem_info_gtt_used";

/// Pages that were taken from whoever had them, since boot; nullopt if a part is not known.
std::optional<std::uint64_t> pages_taken(const MemoryFacts& memory) {
  const KeyedNumbers& vmstat = memory.vmstat;
  const auto kswapd = vmstat.get("pgsteal_kswapd");
  const auto direct = vmstat.get("pgsteal_direct");
  if (!kswapd || !direct) {
    return std::nullopt;
  }
  // The others are there by the kernel's configuration.
  return *kswapd + *direct + vmstat.get_or_zero("pgsteal_khugepaged") +
         vmstat.get_or_zero("pgmigrate_success") + vmstat.get_or_zero("pswpout");
}

std::optional<double> memory_stalled(const PressureFacts& pressure) {
  constexpr double kPercent = 0.01;
  for (const NamedPressure& named : pressure.resources) {
    if (named.resource == "memory" && named.pressure.some) {
      return named.pressure.some->avg60 * kPercent;
    }
  }
  return std::nullopt;
}

void add_gtt(const GpuFacts& facts, std::vector<GpuLimit>& limits) {
  for (const Gpu& gpu : facts.gpus) {
    if (gpu.gtt.size_bytes && gpu.gtt.used_bytes) {
      limits.push_back({"GTT of " + gpu.device.pci_address, std::string(kGttFile),
                        static_cast<double>(*gpu.gtt.size_bytes),
                        static_cast<double>(*gpu.gtt.used_bytes)});
    }
  }
}

void add_kfd(const KfdLimitsFacts& facts, bool unlimited, std::vector<GpuLimit>& limits) {
  if (!facts.mem_limit) {
    return;
  }
  const auto add = [&](const char* what, const std::optional<KfdMemoryAccount>& account) {
    if (account) {
      limits.push_back({what, "debugfs kfd/mem_limit",
                        static_cast<double>(account->limit_mib) * kMebibyte,
                        static_cast<double>(account->used_mib) * kMebibyte});
    }
  };
  if (!unlimited) {
    add("KFD's system memory limit", facts.mem_limit->system);
  }
  add("KFD's TTM limit", facts.mem_limit->ttm);
}

bool has_gtt(const HostEvidence& evidence) {
  return std::any_of(evidence.limits.begin(), evidence.limits.end(),
                     [](const GpuLimit& limit) { return limit.source == kGttFile; });
}

class VerdictCollector : public Collector {
 public:
  explicit VerdictCollector(const CollectorContext& context)
      : store_(context.store), clock_(context.clock), sources_(context.sources) {}

  Result<Snapshot> collect() override {
    const auto kernel_log = fresh_facts<KernelLogFacts>(*store_, "kernel_log");
    HostEvidence evidence;
    evidence.now = clock_->now();
    evidence.kernel_log = kernel_log.get();
    add_memory(evidence);
    add_gpu(evidence);
    add_seats(evidence);
    evidence.not_known.emplace_back(
        "each eviction and restore of a process: KFD's SMI events are not read");
    VerdictFacts facts{judge_host(evidence), evidence.no_gpu};
    MetricWriter metrics;
    for (const Verdict verdict : kVerdicts) {
      metrics.set(kVerdict, {to_label(verdict)}, verdict == facts.host.judgement.verdict ? 1 : 0);
    }
    return Snapshot{std::move(facts), metrics.take()};
  }

 private:
  void add_memory(HostEvidence& evidence) {
    const auto memory = fresh_facts<MemoryFacts>(*store_, "memory");
    const auto pressure = fresh_facts<PressureFacts>(*store_, "pressure");
    evidence.has_procfs = memory != nullptr;
    if (const auto pages = memory ? pages_taken(*memory) : std::nullopt) {
      pages_taken_.add(clock_->monotonic(), static_cast<double>(*pages));
    }
    evidence.pages_taken = pages_taken_.rate(kWindow);
    if (pressure) {
      evidence.memory_stalled = memory_stalled(*pressure);
    }
    note_missing(evidence, memory != nullptr, "memory of the host", "procfs", "memory");
    note_missing(evidence, evidence.memory_stalled.has_value(), "memory pressure", "psi",
                 "pressure");
  }

  void add_gpu(HostEvidence& evidence) {
    const auto gpu = fresh_facts<GpuFacts>(*store_, "gpu");
    const auto limits = fresh_facts<KfdLimitsFacts>(*store_, "kfd_limits");
    evidence.has_kfd = fresh_facts<KfdFacts>(*store_, "kfd") != nullptr;
    evidence.no_gpu = gpu ? gpu->gpus.empty() : sources_.reason("amdgpu") == ErrorKind::kNotFound;
    if (gpu) {
      add_gtt(*gpu, evidence.limits);
    }
    if (limits) {
      add_kfd(*limits, gpu && gpu->parameters.no_system_mem_limit == "Y", evidence.limits);
    }
    if (evidence.kernel_log == nullptr) {
      evidence.not_known.emplace_back("the kernel log: it is not read, or not yet to its end");
    }
    if (evidence.no_gpu) {
      return;
    }
    note_missing(evidence, has_gtt(evidence), "how full the GTT is", "amdgpu", "gpu");
    note_missing(evidence, evidence.has_kfd, "processes on the GPU", "kfd", "kfd");
    note_missing(evidence, limits != nullptr, "KFD's memory limits", "debugfs", "kfd_limits");
    const auto clients = fresh_facts<GpuClientsFacts>(*store_, "gpu_clients");
    if (clients && clients->unread > 0) {
      evidence.not_known.push_back(
          fmt::format("GPU memory of {} clients that could not be read", clients->unread));
    }
  }

  void add_seats(HostEvidence& evidence) const {
    const auto seats = fresh_facts<SeatsFacts>(*store_, "seats");
    const auto cgroup = fresh_facts<CgroupFacts>(*store_, "cgroup");
    if (!cgroup) {
      note_missing(evidence, false, "seats", "cgroup2", "cgroup");
      return;
    }
    evidence.seats_omitted = cgroup->index->beyond;
    std::uint64_t without_state = 0;
    std::uint64_t hidden = 0;
    for (const Seat& seat : cgroup->index->seats) {
      hidden += seat.hidden;
      if (!seats || !seats->states.contains(seat.name)) {
        ++without_state;
        continue;
      }
      const SeatStateFacts& state = seats->states.at(seat.name);
      evidence.seats[seat.name] = {state.state, state.since, state.reasons, state.serves};
    }
    if (hidden > 0) {
      evidence.not_known.push_back(fmt::format(
          "what {} of the seats' processes do, which /proc does not show (hidepid=, or a "
          "process namespace)",
          hidden));
    }
    note_missing(evidence, without_state == 0,
                 fmt::format("what {} does", number_of(without_state, "seat")), "procfs",
                 "seat_tasks");
  }

  /// Says what is not known, and why: its collector waits for an answer, its source cannot be read.
  void note_missing(HostEvidence& evidence, bool there, std::string_view what, const char* source,
                    const char* collector) const {
    if (there) {
      return;
    }
    const auto reason = sources_.reason(source);
    const bool hangs = store_->is_overdue(collector);
    evidence.not_known.push_back(fmt::format("{} ({}: {})", what, hangs ? collector : source,
                                             hangs    ? "does not answer"
                                             : reason ? to_label(*reason)
                                                      : std::string_view("no data")));
  }

  static constexpr RecentSeries::Seconds kWindow{60};

  std::shared_ptr<const Store> store_;
  std::shared_ptr<const Clock> clock_;
  SourceReporter sources_;
  RecentSeries pages_taken_;
};

}  // namespace

std::span<const MetricInfo> verdict_metrics() {
  return kMetrics;
}

std::unique_ptr<Collector> make_verdict_collector(const CollectorContext& context) {
  return std::make_unique<VerdictCollector>(context);
}

}  // namespace apu
