#include "collectors/registry.h"

#include <array>

#include "collectors/budgets.h"
#include "collectors/cgroup/cgroup.h"
#include "collectors/checks.h"
#include "collectors/driver/driver.h"
#include "collectors/gpu.h"
#include "collectors/gpu_busy.h"
#include "collectors/gpu_clients/gpu_clients.h"
#include "collectors/gpu_gem.h"
#include "collectors/host.h"
#include "collectors/kernel_log/kernel_log.h"
#include "collectors/kfd.h"
#include "collectors/kfd_limits.h"
#include "collectors/kworkers.h"
#include "collectors/memory.h"
#include "collectors/mmap_lock.h"
#include "collectors/pressure.h"
#include "collectors/process.h"
#include "collectors/seat_config/seat_config.h"
#include "collectors/seat_health/seat_health.h"
#include "collectors/seat_ports.h"
#include "collectors/seat_tasks/seat_tasks.h"
#include "collectors/seats/seats.h"
#include "collectors/service_users/service_users.h"
#include "collectors/swap.h"
#include "collectors/units/units.h"
#include "collectors/verdict.h"

namespace apu {

using std::chrono::seconds;

// The table is explicit because a linker drops self-registering objects from a static library, and
// because defaults are best read in one place.
std::span<const CollectorSpec> all_collectors() {
  static const std::array kCollectors{
      // name, on by default, period, deadline, on scrape, summary, metrics, make
      CollectorSpec{"budgets", true, seconds(15), seconds(2), OnScrape::kUseNewest,
                    "Whether the limits and protections of the seats fit their use, and the host",
                    budgets_metrics(), make_budgets_collector, 2},
      CollectorSpec{"cgroup", true, seconds(15), seconds(2), OnScrape::kRefresh,
                    "Seats, and what memory cgroups are charged for", cgroup_metrics(),
                    make_cgroup_collector, 1},
      CollectorSpec{"checks", true, seconds(30), seconds(2), OnScrape::kUseNewest,
                    "Whether the host and its seats are set up so that the fault does not come",
                    checks_metrics(), make_checks_collector, 4},
      CollectorSpec{"driver", true, seconds(300), seconds(30), OnScrape::kUseNewest,
                    "Whether the amdgpu module is the one on the disk, and debugs",
                    driver_metrics(), make_driver_collector},
      CollectorSpec{"gpu", true, seconds(15), seconds(2), OnScrape::kRefresh,
                    "Memory pools, identity and parameters of the AMD GPUs", gpu_metrics(),
                    make_gpu_collector},
      CollectorSpec{"gpu_busy", true, seconds(15), seconds(5), OnScrape::kUseNewest,
                    "How busy the AMD GPUs are, which the kernel can take long to say",
                    gpu_busy_metrics(), make_gpu_busy_collector},
      CollectorSpec{"gpu_clients", true, seconds(15), seconds(10), OnScrape::kUseNewest,
                    "Memory of the GPU's clients, by DRM fdinfo", gpu_clients_metrics(),
                    make_gpu_clients_collector},
      CollectorSpec{"gpu_gem", false, seconds(60), seconds(10), OnScrape::kUseNewest,
                    "What graphics clients hold on the AMD GPUs, by debugfs", gpu_gem_metrics(),
                    make_gpu_gem_collector},
      CollectorSpec{"host", true, seconds(60), seconds(5), OnScrape::kUseNewest,
                    "Boot time, kernel and driver versions", host_metrics(), make_host_collector},
      CollectorSpec{"kernel_log", true, seconds(1), seconds(10), OnScrape::kUseNewest,
                    "Hog reports and GPU messages of the kernel log", kernel_log_metrics(),
                    make_kernel_log_collector},
      CollectorSpec{"kfd", true, seconds(15), seconds(2), OnScrape::kRefresh,
                    "Processes that use a GPU through KFD, and those that ended without letting go",
                    kfd_metrics(), make_kfd_collector},
      CollectorSpec{"kfd_limits", true, seconds(15), seconds(2), OnScrape::kRefresh,
                    "KFD's memory limits and TTM's pool of free pages", kfd_limits_metrics(),
                    make_kfd_limits_collector},
      CollectorSpec{"kworkers", true, seconds(15), seconds(5), OnScrape::kUseNewest,
                    "CPU time of kworkers, which bounds the rate of hogs", kworkers_metrics(),
                    make_kworkers_collector},
      CollectorSpec{"memory", true, seconds(15), seconds(2), OnScrape::kRefresh,
                    "Where the RAM is, reclaim, migration, compaction", memory_metrics(),
                    make_memory_collector},
      CollectorSpec{"mmap_lock", true, seconds(30), seconds(20), OnScrape::kUseNewest,
                    "Whether the mmap_lock of a seat that spins or hangs is held",
                    mmap_lock_metrics(), make_mmap_lock_collector, 2},
      CollectorSpec{"pressure", true, seconds(15), seconds(2), OnScrape::kRefresh,
                    "Pressure stall information (PSI)", pressure_metrics(),
                    make_pressure_collector},
      CollectorSpec{"process", true, seconds(15), seconds(2), OnScrape::kRefresh,
                    "The exporter's own process", process_metrics(), make_process_collector},
      CollectorSpec{"seat_config", true, seconds(30), seconds(20), OnScrape::kUseNewest,
                    "What the processes of the seats were told: mmap, mlock, offload to the CPU",
                    seat_config_metrics(), make_seat_config_collector, 2},
      CollectorSpec{"seat_health", false, seconds(30), seconds(10), OnScrape::kUseNewest,
                    "Whether the llama-servers of the seats are ready, their slots and tokens, "
                    "asked over HTTP on loopback",
                    seat_health_metrics(), make_seat_health_collector, 3},
      CollectorSpec{"seat_ports", true, seconds(30), seconds(10), OnScrape::kUseNewest,
                    "Whether another process holds the port of a seat's server",
                    seat_ports_metrics(), make_seat_ports_collector, 3},
      CollectorSpec{"seat_tasks", true, seconds(5), seconds(4), OnScrape::kUseNewest,
                    "What the processes of the seats do: CPU time, faults, waits",
                    seat_tasks_metrics(), make_seat_tasks_collector, 2},
      CollectorSpec{
          "seats", true, seconds(5), seconds(2), OnScrape::kUseNewest,
          "What each seat does, what it holds on the GPUs, and what of it its cgroup does not see",
          seats_metrics(), make_seats_collector, 4},
      CollectorSpec{"service_users", true, seconds(300), seconds(30), OnScrape::kUseNewest,
                    "Whether the users of seats' units reach their homes, and linger",
                    service_users_metrics(), make_service_users_collector, 3},
      CollectorSpec{"swap", true, seconds(15), seconds(2), OnScrape::kRefresh,
                    "Swap devices, zram, swap traffic, swappiness", swap_metrics(),
                    make_swap_collector},
      CollectorSpec{"units", true, seconds(30), seconds(10), OnScrape::kUseNewest,
                    "What the service manager says of the units of seats", units_metrics(),
                    make_units_collector, 2},
      CollectorSpec{"verdict", true, seconds(5), seconds(2), OnScrape::kUseNewest,
                    "What is wrong with the host, by the facts of all others", verdict_metrics(),
                    make_verdict_collector, 5},
  };
  return kCollectors;
}

}  // namespace apu
