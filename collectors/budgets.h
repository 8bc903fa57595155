#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "collectors/cgroup/cgroup.h"
#include "exporter/collector.h"

namespace apu {

/// RAM that a seat cannot do without, in bytes: what is charged and what is swapped out, less page
/// cache that no process maps. docs/memory-accounting.md says why.
std::optional<std::uint64_t> memory_need(const CgroupMemory& memory);

/// What reclaim is asked to leave alone of a seat, in bytes: the larger of memory.min and
/// memory.low. "max" asks for all that the seat is charged for.
std::optional<std::uint64_t> asked_protection(const CgroupMemory& memory);

/// The budget of one seat, judged. What cannot be told is absent.
struct SeatBudget {
  std::map<std::string, bool> below_need;         ///< by limit: high, max
  std::map<std::string, bool> protection_voided;  ///< by protection that is set: min, low
  std::optional<bool> missing;                    ///< neither min nor low is set
};

SeatBudget judge_budget(const CgroupMemory& memory);

/// The facts of a pass.
struct BudgetsFacts {
  std::map<std::string, SeatBudget> seats;     ///< by name; those with a cgroup of their own
  std::optional<std::uint64_t> protection;     ///< bytes: what all seats ask for together
  std::optional<std::uint64_t> uncharged_gtt;  ///< bytes: GTT that no cgroup is charged for
  std::optional<std::uint64_t> memory_size;    ///< bytes: MemTotal
};

/// What all seats ask for together, bytes. Absent if one of them does not tell it.
std::optional<std::uint64_t> sum_of_protections(const CgroupFacts& cgroup);

/// Whether what is promised and what nobody can reclaim do not fit into RAM together.
std::optional<bool> is_overcommitted(const BudgetsFacts& facts);

Families to_families(const BudgetsFacts& facts);

std::span<const MetricInfo> budgets_metrics();

/// Whether the limits and protections of the seats fit what they use, and the host. Derived: reads
/// no file, but the newest facts of the collectors that do.
std::unique_ptr<Collector> make_budgets_collector(const CollectorContext& context);

}  // namespace apu
