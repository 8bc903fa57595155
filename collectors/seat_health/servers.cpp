#include "collectors/seat_health/servers.h"

#include <fmt/format.h>

#include <algorithm>

#include "collectors/parsers/pid_stat.h"
#include "collectors/tcp_sockets.h"

namespace apu {
namespace {

constexpr const char* kSource = "seat_health";
constexpr size_t kMaxTargets = 256;

/// What the configuration alone rules out.
std::optional<NotAsked> unfit(const HttpAddress& address) {
  if (address.host == ListenHost::kUnixSocket) {
    return NotAsked::kUnixSocket;
  }
  if (address.host == ListenHost::kElsewhere) {
    return NotAsked::kElsewhere;
  }
  if (address.tls) {
    return NotAsked::kTls;
  }
  if (!address.prefix) {
    return NotAsked::kNoPrefix;
  }
  return address.port ? std::nullopt : std::optional(NotAsked::kNoPort);
}

}  // namespace

std::string_view to_text(NotAsked reason) {
  switch (reason) {
    case NotAsked::kTls:
      return "it speaks TLS";
    case NotAsked::kUnixSocket:
      return "it listens on a Unix socket";
    case NotAsked::kElsewhere:
      return "it does not listen on loopback";
    case NotAsked::kNoPort:
      return "its port is not known";
    case NotAsked::kNoPrefix:
      return "its --api-prefix is no path";
    case NotAsked::kOtherNamespace:
      return "it is in another network namespace";
    case NotAsked::kUnreadable:
      return "its network namespace or its descriptors may not be read";
    case NotAsked::kOtherListener:
      return "it listens, but not on this port of loopback";
  }
  return "";
}

std::vector<HealthTarget> HealthTargets::find(const SeatIndex& index,
                                              const SeatConfigFacts& configs) {
  std::vector<HealthTarget> targets;
  listeners_ = read_tcp_listeners(procfs_, sources_, kSource).sockets;
  for (const Seat& seat : index.seats) {
    for (const SeatProcess& process : seat.processes) {
      const auto config = configs.processes.find(process.key);
      if (config == configs.processes.end() || !config->second.http ||
          targets.size() == kMaxTargets) {
        continue;
      }
      const auto stat = read_pid_stat(procfs_, std::to_string(process.key.pid));
      if (stat && stat->start_ticks == process.key.start_ticks && !has_ended(*stat)) {
        targets.push_back(locate(seat, process.key, *config->second.http));
      }
    }
  }
  return targets;
}

HealthTarget HealthTargets::locate(const Seat& seat, const ProcessKey& process,
                                   const HttpAddress& address) const {
  HealthTarget target{seat.name, process, unfit(address), {}};
  if (target.not_asked) {
    return target;
  }
  const auto own = procfs_.link_name("self/ns/net");
  const auto its = procfs_.link_name(fmt::format("{}/ns/net", process.pid));
  if (!own || !its) {
    target.not_asked = NotAsked::kUnreadable;
  } else if (*own != *its) {
    target.not_asked = NotAsked::kOtherNamespace;
  } else {
    target.not_asked = set_url(target, address);
  }
  return target;
}

/// Leaves it empty where the process listens nowhere.
std::optional<NotAsked> HealthTargets::set_url(HealthTarget& target,
                                               const HttpAddress& address) const {
  const auto sockets = read_sockets_of(procfs_, target.process.pid);
  if (!sockets) {
    return NotAsked::kUnreadable;
  }
  bool listens = false;
  for (const TcpListener& listener : listeners_) {
    if (!sockets->contains(listener.inode)) {
      continue;
    }
    listens = true;
    if (listener.port == *address.port && !listener.address.empty()) {
      target.url = fmt::format("http://{}:{}{}", listener.address, listener.port, *address.prefix);
      return std::nullopt;
    }
  }
  return listens ? std::optional(NotAsked::kOtherListener) : std::nullopt;
}

}  // namespace apu
