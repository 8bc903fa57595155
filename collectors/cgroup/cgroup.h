#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "collectors/cgroup/cgroup_memory.h"
#include "collectors/seats/index.h"
#include "exporter/collector.h"

namespace apu {

/// The facts of a pass. Other collectors take the seat index from here.
struct CgroupFacts {
  std::shared_ptr<const SeatIndex> index;
  std::map<std::string, CgroupMemory> memory;  ///< by seat; absent where the cgroup is not its own
  std::optional<std::uint64_t> charged;        ///< bytes, all top-level cgroups
  std::optional<std::uint64_t> gpu_charged;    ///< bytes of them for GPU pages
  std::optional<bool> charges_gpu;             ///< this kernel charges cgroups for GPU pages
};

Families to_families(const CgroupFacts& facts);

std::span<const MetricInfo> cgroup_metrics();

/// Seats and what the memory controller says of them. Source "cgroup2". A seat is a cgroup that
/// holds a process that KFD or a DRM client knows, or a unit by --seat.pattern. Files of processes:
/// /proc/PID/stat and /proc/PID/cgroup, which take no lock of the process's memory.
std::unique_ptr<Collector> make_cgroup_collector(const CollectorContext& context);

}  // namespace apu
