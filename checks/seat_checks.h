#pragma once

#include "checks/check.h"
#include "collectors/budgets.h"
#include "collectors/cgroup/cgroup.h"
#include "collectors/kfd.h"
#include "collectors/seat_config/seat_config.h"
#include "collectors/seat_ports.h"
#include "collectors/service_users/service_users.h"
#include "collectors/units/units.h"

namespace apu {

/// What the checks on seats follow from; null for facts that are missing.
struct SeatCheckInputs {
  const CgroupFacts* cgroup = nullptr;
  const KfdFacts* kfd = nullptr;
  const UnitsFacts* units = nullptr;
  std::string units_missing;  ///< why `units` is null
  const BudgetsFacts* budgets = nullptr;
  const SeatConfigFacts* config = nullptr;
  const ServiceUsersFacts* users = nullptr;
  const SeatPortsFacts* ports = nullptr;
  SeatRules servers;       ///< --seat.pattern
  SeatRules mmap_allowed;  ///< --check.allow-mmap
};

/// All checks on all seats that serve models, running or not: those that are named so, that KFD
/// knows, or that run a server whose options are known. A desktop is a seat, too, and no model
/// server. A check that does not apply to a seat is left out. Pure.
Checks check_seats(const SeatCheckInputs& inputs);

}  // namespace apu
