#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>

#include "collectors/seat_config/server_config.h"
#include "collectors/seats/index.h"
#include "exporter/collector.h"

namespace apu {

/// The facts of a pass.
struct SeatConfigFacts {
  /// Of the processes of seats that were asked; what did not answer is unknown in it.
  std::map<ProcessKey, ServerConfig> processes;
};

/// Printed for the process that stands for a seat, by the collector that chooses it.
inline constexpr MetricInfo kSeatConfigInfo{
    "apu_seat_config_info", prometheus::MetricType::Gauge,
    "seat,mmap,mlock,cpu_offload,hsa_userptr_for_paged_mem,hsa_xnack,model",
    "1, with what the process of apu_seat_info was told: true, false, default where it was told "
    "nothing, empty where that is not known (/proc/PID/cmdline and environ, read by a helper)"};

/// Adds the series of a seat, if `process` has been asked.
void add_config_info(MetricWriter& metrics, const std::string& seat, const SeatConfigFacts& facts,
                     const ProcessKey& process);

std::span<const MetricInfo> seat_config_metrics();

/// What the processes of the seats were told: each file is read once in a process's life, and once
/// more when it becomes another program. Source "process_config": not available where the
/// environment of one may not be read, or does not answer.
std::unique_ptr<Collector> make_seat_config_collector(const CollectorContext& context);

}  // namespace apu
