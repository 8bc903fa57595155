#include "collectors/seat_ports.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>
#include <vector>

#include "collectors/cgroup/cgroup.h"
#include "collectors/parsers/pid_stat.h"
#include "collectors/seat_config/seat_config.h"
#include "collectors/tcp_sockets.h"
#include "collectors/units/units.h"
#include "exporter/file_root.h"
#include "exporter/store.h"
#include "exporter/text.h"

namespace apu {
namespace {

using prometheus::MetricType;

constexpr MetricInfo kHeldByOther{"apu_seat_port_held_by_other", MetricType::Gauge, "seat",
                                  "1 while a process that is none of the seat's listens on the "
                                  "port of the seat's server, else 0; "
                                  "absent where that cannot be told (/proc/net/tcp, /proc/PID/fd)"};
constexpr std::array kMetrics{kHeldByOther};

constexpr const char* kSource = "seat_ports";
constexpr std::int64_t kInit = 1;

/// A port that a seat wants, and the processes that may have it.
struct Wanted {
  std::uint16_t port = 0;
  bool local = true;  // else it was told an address that is not loopback
  std::vector<std::int64_t> processes;
};

/// Whether a server that wants the port cannot have it because of this socket.
bool is_in_the_way(const TcpListener& listener, const Wanted& wanted) {
  return listener.port == wanted.port &&
         (listener.scope == ListenScope::kAny ||
          (listener.scope == ListenScope::kLoopback && wanted.local));
}

std::optional<Wanted> wanted_by(const ServerConfig& config) {
  if (config.http) {
    return config.http->port && config.http->host != ListenHost::kUnixSocket
               ? std::optional(
                     Wanted{*config.http->port, config.http->host == ListenHost::kLocal, {}})
               : std::nullopt;
  }
  return config.port ? std::optional(Wanted{*config.port, true, {}}) : std::nullopt;
}

std::optional<Wanted> wanted_by(const UnitFacts& unit) {
  if (!unit.server || !unit.server->told.port) {
    return std::nullopt;  // its environment may tell another one than the default
  }
  const auto host = unit.server->told.host.value_or(ListenHost::kLocal);
  return host == ListenHost::kUnixSocket
             ? std::nullopt
             : std::optional(Wanted{*unit.server->told.port, host == ListenHost::kLocal, {}});
}

class SeatPortsCollector : public Collector {
 public:
  explicit SeatPortsCollector(const CollectorContext& context)
      : procfs_(context.roots.procfs), store_(context.store), sources_(context.sources) {}

  Result<Snapshot> collect() override {
    SeatPortsFacts facts;
    const auto wanted = wanted_ports();
    if (!wanted.empty()) {
      listeners_ = read_tcp_listeners(procfs_, sources_, kSource);
    }
    for (const auto& [seat, port] : wanted) {
      facts.seats[seat] = look_at(port);
    }
    Families families = to_families(facts);
    return Snapshot{std::move(facts), std::move(families)};
  }

 private:
  /// By seat: what its process was told, else what its unit tells.
  [[nodiscard]] std::map<std::string, Wanted> wanted_ports() const {
    const auto cgroup = fresh_facts<CgroupFacts>(*store_, "cgroup");
    const auto config = fresh_facts<SeatConfigFacts>(*store_, "seat_config");
    const auto units = fresh_facts<UnitsFacts>(*store_, "units");
    std::map<std::string, Wanted> wanted;
    if (!cgroup) {
      return wanted;
    }
    for (const SeatUnit& unit : units ? units->units : std::vector<SeatUnit>()) {
      if (const auto port = wanted_by(unit.facts); port && is_host_network(kInit)) {
        wanted[unit.seat] = *port;
      }
    }
    for (const Seat& seat : cgroup->index->seats) {
      for (const SeatProcess& process : seat.processes) {
        const auto port = config && config->processes.contains(process.key)
                              ? wanted_by(config->processes.at(process.key))
                              : std::nullopt;
        if (port && is_host_network(process.key.pid)) {
          wanted[seat.name] = *port;
        }
      }
      const auto found = wanted.find(seat.name);
      for (const SeatProcess& process : seat.processes) {
        if (found != wanted.end()) {
          found->second.processes.push_back(process.key.pid);
        }
      }
    }
    return wanted;
  }

  /// Whether the process has the network whose sockets we see.
  [[nodiscard]] bool is_host_network(std::int64_t pid) const {
    const auto own = procfs_.link_name("self/ns/net");
    const auto its = procfs_.link_name(fmt::format("{}/ns/net", pid));
    return own && its && *own == *its;
  }

  [[nodiscard]] SeatPort look_at(const Wanted& wanted) const {
    SeatPort port;
    port.port = wanted.port;
    if (!listeners_.complete) {
      return port;
    }
    std::set<std::uint64_t> inodes;
    for (const TcpListener& listener : listeners_.sockets) {
      if (is_in_the_way(listener, wanted)) {
        inodes.insert(listener.inode);
      }
    }
    for (const std::int64_t pid : wanted.processes) {
      const auto own = read_sockets_of(procfs_, pid);
      if (!own) {
        return port;
      }
      std::erase_if(inodes, [&](std::uint64_t inode) { return own->contains(inode); });
    }
    if (inodes.empty()) {
      port.held_by_other = false;
    } else {
      find_holder(inodes, wanted, port);
    }
    return port;
  }

  /// Reads the descriptors of all processes: seldom, as only a port that is held by another needs
  /// it.
  void find_holder(const std::set<std::uint64_t>& inodes, const Wanted& wanted,
                   SeatPort& port) const {
    const auto names = procfs_.list(".");
    for (const std::string& name : names ? *names : std::vector<std::string>()) {
      const auto pid = parse_number<std::int64_t>(name);
      const bool own = pid && std::find(wanted.processes.begin(), wanted.processes.end(), *pid) !=
                                  wanted.processes.end();
      const auto sockets = pid && !own ? read_sockets_of(procfs_, *pid) : std::nullopt;
      if (!sockets || std::none_of(inodes.begin(), inodes.end(),
                                   [&](std::uint64_t inode) { return sockets->contains(inode); })) {
        continue;
      }
      port.held_by_other = *pid != kInit;  // which listens for a unit, and hands the socket on
      port.holder = *pid;
      if (const auto stat = read_pid_stat(procfs_, name)) {
        port.holder_command = stat->comm;
      }
      if (const auto text = procfs_.read(name + "/cgroup")) {
        const auto path = parse_proc_cgroup(*text);
        port.holder_cgroup = path ? *path : "";
      }
      return;
    }
  }

  FileRoot procfs_;
  std::shared_ptr<const Store> store_;
  SourceReporter sources_;
  TcpListeners listeners_;  // of this pass
};

}  // namespace

Families to_families(const SeatPortsFacts& facts) {
  MetricWriter metrics;
  for (const auto& [seat, port] : facts.seats) {
    metrics.set(kHeldByOther, {seat}, port.held_by_other);
  }
  return metrics.take();
}

std::span<const MetricInfo> seat_ports_metrics() {
  return kMetrics;
}

std::unique_ptr<Collector> make_seat_ports_collector(const CollectorContext& context) {
  return std::make_unique<SeatPortsCollector>(context);
}

}  // namespace apu
