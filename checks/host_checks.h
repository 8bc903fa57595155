#pragma once

#include "checks/check.h"
#include "collectors/budgets.h"
#include "collectors/cgroup/cgroup.h"
#include "collectors/driver/driver.h"
#include "collectors/kernel_log/kernel_log.h"
#include "collectors/swap.h"

namespace apu {

/// What the checks on the host follow from; null for facts that are missing.
struct HostCheckInputs {
  const SwapFacts* swap = nullptr;
  const BudgetsFacts* budgets = nullptr;
  const DriverFacts* driver = nullptr;
  const KernelLogFacts* kernel_log = nullptr;
  const CgroupFacts* cgroup = nullptr;
  std::string cgroup_missing;  ///< why `cgroup` is null
};

/// All checks on the host. Pure.
Checks check_host(const HostCheckInputs& inputs);

/// With more, reclaim takes anonymous memory, which is what the GPU has mapped, before page cache.
constexpr std::uint64_t kMostSwappiness = 100;

}  // namespace apu
