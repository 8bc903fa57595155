#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "collectors/parsers/pid_stat.h"
#include "exporter/clock.h"
#include "exporter/collector.h"

namespace apu {

/// The exporter's own process.
struct ProcessFacts {
  PidStat stat;
  std::uint64_t open_descriptors = 0;  ///< of the main descriptor table; workers have their own
  std::optional<std::uint64_t> max_descriptors;    ///< absent: unlimited
  std::optional<std::uint64_t> max_virtual_bytes;  ///< absent: unlimited
  TimePoint boot_time;
  std::uint64_t page_bytes = 0;
  std::uint64_t ticks_per_second = 0;
};

Families to_families(const ProcessFacts& facts);

std::span<const MetricInfo> process_metrics();

/// The standard process_* metrics, of this process and thus always from the real /proc/self.
std::unique_ptr<Collector> make_process_collector(const CollectorContext& context);

}  // namespace apu
