#include "collectors/budgets.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "collectors/gpu.h"
#include "collectors/memory.h"
#include "collectors/seats/accounting.h"
#include "exporter/store.h"

namespace apu {
namespace {

using prometheus::MetricType;
using Bytes = std::optional<std::uint64_t>;

constexpr MetricInfo kProtection{
    "apu_budget_protection_bytes", MetricType::Gauge, "",
    "What all seats ask reclaim to leave alone, each the larger of memory.min and memory.low; max "
    "counts as what is charged (memory.min, memory.low, memory.current)"};
constexpr MetricInfo kOvercommitted{
    "apu_budget_overcommitted", MetricType::Gauge, "",
    "1 while the protections of all seats and the GTT that no memory cgroup is charged for exceed "
    "RAM, else 0 (memory.min, memory.low, mem_info_gtt_used, /proc/meminfo)"};
constexpr MetricInfo kBelowNeed{
    "apu_seat_budget_below_need", MetricType::Gauge, "seat,limit",
    "1 while the limit, high or max, is below what the seat is charged for and has swapped out, "
    "page cache that nothing maps not counted, else 0 (memory.high, memory.max, memory.current, "
    "memory.swap.current, memory.stat)"};
constexpr MetricInfo kVoided{
    "apu_seat_protection_voided", MetricType::Gauge, "seat,limit",
    "1 while the cgroups above leave less than half of what the protection, min or low, should "
    "cover, else 0; only where it is set (memory.min, memory.low, memory.current)"};
constexpr MetricInfo kMissing{
    "apu_seat_budget_missing", MetricType::Gauge, "seat",
    "1 if the seat's cgroup sets neither memory.min nor memory.low, else 0 (memory.min, "
    "memory.low)"};
constexpr std::array kMetrics{kProtection, kOvercommitted, kBelowNeed, kVoided, kMissing};

/// Settings are free numbers up to 2^63.
std::uint64_t saturating_sum(std::uint64_t a, std::uint64_t b) {
  constexpr auto kMost = std::numeric_limits<std::uint64_t>::max();
  return b > kMost - a ? kMost : a + b;
}

/// The setting; nullptr where the kernel has no such file, or it could not be read.
const MemoryLimit* find_limit(const CgroupMemory& memory, const char* name) {
  const auto found = memory.limits.find(name);
  return found == memory.limits.end() ? nullptr : &found->second;
}

bool is_set(const MemoryLimit& protection) {
  return protection.bytes != 0U;  // "max" is set, too
}

/// What a protection asks for.
Bytes asked_by(const CgroupMemory& memory, const char* name) {
  const MemoryLimit* protection = find_limit(memory, name);
  if (protection == nullptr) {
    return std::nullopt;
  }
  return protection->bytes ? protection->bytes : memory.current;
}

/// Without the memory controller a cgroup has none of its files, and asks for nothing.
bool has_controller(const CgroupMemory& memory) {
  return memory.current || !memory.limits.empty();
}

std::optional<bool> is_below(const MemoryLimit* limit, const Bytes& need) {
  if (limit == nullptr) {
    return std::nullopt;
  }
  if (!limit->bytes) {
    return false;
  }
  return need ? std::optional(*limit->bytes < *need) : std::nullopt;
}

std::optional<bool> is_voided(const CgroupMemory& memory, const char* name) {
  const MemoryLimit* protection = find_limit(memory, name);
  const auto effective = memory.protected_bytes.find(name);
  if (protection == nullptr || !is_set(*protection) || !memory.current ||
      effective == memory.protected_bytes.end()) {
    return std::nullopt;
  }
  const std::uint64_t asked =
      std::min(*memory.current, protection->bytes.value_or(*memory.current));
  return effective->second < asked - asked / 2;
}

std::optional<bool> is_missing(const CgroupMemory& memory) {
  const MemoryLimit* min = find_limit(memory, "min");
  const MemoryLimit* low = find_limit(memory, "low");
  if ((min != nullptr && is_set(*min)) || (low != nullptr && is_set(*low))) {
    return false;
  }
  return min != nullptr && low != nullptr ? std::optional(true) : std::nullopt;
}

Bytes memory_size(const MemoryFacts& facts) {
  constexpr std::uint64_t kKiB = 1024;
  const auto total = facts.meminfo.get("MemTotal");
  return total ? Bytes(*total * kKiB) : std::nullopt;
}

class BudgetsCollector : public Collector {
 public:
  explicit BudgetsCollector(const CollectorContext& context) : store_(context.store) {}

  Result<Snapshot> collect() override {
    const auto cgroup = fresh_facts<CgroupFacts>(*store_, "cgroup");
    const auto gpu = fresh_facts<GpuFacts>(*store_, "gpu");
    const auto memory = fresh_facts<MemoryFacts>(*store_, "memory");
    BudgetsFacts facts;
    if (cgroup) {
      for (const auto& [seat, of_seat] : cgroup->memory) {
        facts.seats[seat] = judge_budget(of_seat);
      }
      facts.protection = sum_of_protections(*cgroup);
    }
    SeatInputs inputs;
    inputs.cgroup = cgroup.get();
    inputs.gpu = gpu.get();
    facts.uncharged_gtt = host_divergence(inputs);
    facts.memory_size = memory ? memory_size(*memory) : std::nullopt;
    Families families = to_families(facts);
    return Snapshot{std::move(facts), std::move(families)};
  }

 private:
  std::shared_ptr<const Store> store_;
};

}  // namespace

std::optional<std::uint64_t> memory_need(const CgroupMemory& memory) {
  if (!memory.current || !memory.swap_current || !memory.file || !memory.file_mapped ||
      !memory.shmem) {
    return std::nullopt;
  }
  // Shared memory is page cache, too, and can only be swapped out. A page of it that is mapped
  // counts twice here, and one of other page cache is then taken for needed.
  const std::uint64_t dispensable =
      *memory.file - std::min(*memory.file, *memory.file_mapped + *memory.shmem);
  return *memory.current - std::min(*memory.current, dispensable) + *memory.swap_current;
}

std::optional<std::uint64_t> asked_protection(const CgroupMemory& memory) {
  if (!has_controller(memory)) {
    return 0;
  }
  const Bytes min = asked_by(memory, "min");
  const Bytes low = asked_by(memory, "low");
  return min && low ? Bytes(std::max(*min, *low)) : std::nullopt;
}

SeatBudget judge_budget(const CgroupMemory& memory) {
  SeatBudget budget;
  const Bytes need = memory_need(memory);
  for (const char* limit : {"high", "max"}) {
    if (const auto below = is_below(find_limit(memory, limit), need)) {
      budget.below_need[limit] = *below;
    }
  }
  for (const char* protection : {"min", "low"}) {
    if (const auto voided = is_voided(memory, protection)) {
      budget.protection_voided[protection] = *voided;
    }
  }
  budget.missing = is_missing(memory);
  return budget;
}

std::optional<std::uint64_t> sum_of_protections(const CgroupFacts& cgroup) {
  std::uint64_t sum = 0;
  for (const Seat& seat : cgroup.index->seats) {
    if (!seat.place.owns_cgroup()) {
      continue;  // what stands there is not the seat's alone
    }
    const auto memory = cgroup.memory.find(seat.name);
    const Bytes asked =
        memory != cgroup.memory.end() ? asked_protection(memory->second) : std::nullopt;
    if (!asked) {
      return std::nullopt;
    }
    sum = saturating_sum(sum, *asked);
  }
  return sum;
}

std::optional<bool> is_overcommitted(const BudgetsFacts& facts) {
  if (!facts.protection || !facts.uncharged_gtt || !facts.memory_size) {
    return std::nullopt;
  }
  return saturating_sum(*facts.protection, *facts.uncharged_gtt) > *facts.memory_size;
}

Families to_families(const BudgetsFacts& facts) {
  MetricWriter metrics;
  metrics.set(kProtection, facts.protection);
  metrics.set(kOvercommitted, is_overcommitted(facts));
  for (const auto& [seat, budget] : facts.seats) {
    for (const auto& [limit, below] : budget.below_need) {
      metrics.set(kBelowNeed, {seat, limit}, below ? 1 : 0);
    }
    for (const auto& [limit, voided] : budget.protection_voided) {
      metrics.set(kVoided, {seat, limit}, voided ? 1 : 0);
    }
    metrics.set(kMissing, {seat}, budget.missing);
  }
  return metrics.take();
}

std::span<const MetricInfo> budgets_metrics() {
  return kMetrics;
}

std::unique_ptr<Collector> make_budgets_collector(const CollectorContext& context) {
  return std::make_unique<BudgetsCollector>(context);
}

}  // namespace apu
