#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "collectors/seats/index.h"
#include "exporter/collector.h"

namespace apu {

/// Who listens on the port of a seat's server.
struct SeatPort {
  std::uint16_t port = 0;
  std::optional<bool> held_by_other;  ///< by a process that is none of the seat's
  std::int64_t holder = 0;            ///< its id
  std::string holder_command;         ///< its comm, any bytes
  std::string holder_cgroup;          ///< its path, any bytes; empty where it is not known
};

/// The facts of a pass.
struct SeatPortsFacts {
  std::map<std::string, SeatPort> seats;  ///< by name; those whose port is known
};

Families to_families(const SeatPortsFacts& facts);

std::span<const MetricInfo> seat_ports_metrics();

/// Whether another process holds the port that a seat's server is told to listen on: by the command
/// line of the one that runs, else by its unit's ExecStart=. Such a server ends at once, and its
/// unit restarts it for ever. Ports of other network namespaces, as of containers, are left out,
/// and so are those on which PID 1 listens for a unit.
std::unique_ptr<Collector> make_seat_ports_collector(const CollectorContext& context);

}  // namespace apu
