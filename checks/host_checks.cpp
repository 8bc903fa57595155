#include "checks/host_checks.h"

#include <fmt/format.h>

#include <algorithm>

namespace apu {
namespace {

constexpr const char* kNobodySays = "no collector says";

Check check_swappiness(const SwapFacts* swap) {
  std::optional<bool> faulty;
  if (swap != nullptr && swap->swappiness) {
    faulty = *swap->swappiness > kMostSwappiness && !swap->devices.empty();
  }
  return make_check("swappiness", "", faulty,
                    fmt::format("vm.swappiness is {}: reclaim takes what the GPU has mapped before "
                                "page cache; set {} or less",
                                faulty ? *swap->swappiness : 0, kMostSwappiness),
                    swap == nullptr ? kNobodySays : "/proc/sys/vm/swappiness cannot be read");
}

Check check_budgets_fit(const BudgetsFacts* budgets) {
  const auto faulty = budgets != nullptr ? is_overcommitted(*budgets) : std::nullopt;
  return make_check("budgets_fit", "", faulty,
                    "the protections of all seats, and the GTT that no memory cgroup is charged "
                    "for, exceed RAM: none of them can be kept",
                    "GPU memory, RAM or a seat's protection is not known");
}

Check check_hog_reports(const KernelLogFacts* log) {
  std::optional<bool> faulty;
  if (log != nullptr && (reports_hogs(*log) || log->hog_threshold_us == 0U ||
                         log->hog_warning_threshold || log->built_with_reports)) {
    faulty = !reports_hogs(*log);
  }
  return make_check("hog_reports", "", faulty,
                    "this kernel does not report workqueue hogs "
                    "(CONFIG_WQ_CPU_INTENSIVE_REPORT): the restore storm's fingerprint is blind",
                    log == nullptr ? "the kernel log is not read"
                                   : "neither a parameter of the kernel nor its configuration "
                                     "tells, and it has reported none");
}

Check check_driver(const DriverFacts* driver) {
  std::optional<bool> faulty;
  if (driver != nullptr && driver->is_on_disk) {
    faulty = !*driver->is_on_disk;
  }
  return make_check("driver_on_disk", "", faulty,
                    "the amdgpu module that runs is not the one on the disk: reboot, and if that "
                    "does not help make the initramfs anew (update-initramfs -u, dracut -f)",
                    driver == nullptr ? kNobodySays : driver->is_on_disk_unknown);
}

Check check_debug(const DriverFacts* driver) {
  std::optional<bool> faulty;
  if (driver != nullptr && driver->kfd_debug_messages) {
    faulty = *driver->kfd_debug_messages > 0;
  }
  return make_check("kfd_debug_off", "", faulty,
                    fmt::format("{} debug messages of KFD are switched on, which in a storm wash "
                                "everything else out of the kernel log: echo 'file *amdkfd* -p' > "
                                "/proc/dynamic_debug/control",
                                faulty ? *driver->kfd_debug_messages : 0),
                    driver == nullptr ? kNobodySays : driver->kfd_debug_unknown);
}

/// A host without seats passes all that is asked of seats.
Check check_seats_found(const HostCheckInputs& inputs) {
  const bool found =
      inputs.cgroup != nullptr && inputs.cgroup->index && !inputs.cgroup->index->seats.empty();
  return make_check("seats_found", "", found ? std::optional(false) : std::nullopt, "",
                    inputs.cgroup != nullptr
                        ? "no process uses the GPU, and no unit is named as --seat.pattern says"
                        : inputs.cgroup_missing);
}

}  // namespace

Checks check_host(const HostCheckInputs& inputs) {
  return {check_seats_found(inputs),         check_swappiness(inputs.swap),
          check_budgets_fit(inputs.budgets), check_hog_reports(inputs.kernel_log),
          check_driver(inputs.driver),       check_debug(inputs.driver)};
}

}  // namespace apu
