#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "collectors/seat_tasks/activity.h"
#include "collectors/seat_tasks/sample.h"
#include "collectors/seats/index.h"
#include "exporter/clock.h"
#include "exporter/collector.h"

namespace apu {

/// A process of a seat.
struct SeatProcessFacts {
  ProcessKey key;
  std::string comm;  ///< at most 15 bytes, any bytes
  bool on_gpu = false;
  std::optional<TimePoint> start;  ///< absent where the boot time is not known
  ProcessActivity activity;
};

/// The facts of a pass.
struct SeatTasksFacts {
  std::map<std::string, std::vector<SeatProcessFacts>> seats;  ///< by name; those with a process
  std::chrono::nanoseconds time{};                             ///< Clock::monotonic of the pass
};

std::span<const MetricInfo> seat_tasks_metrics();

/// What the processes of the seats do: CPU time, switches, faults, what they wait for. Reads no
/// file of a process that takes a lock of its memory.
std::unique_ptr<Collector> make_seat_tasks_collector(const CollectorContext& context);

}  // namespace apu
