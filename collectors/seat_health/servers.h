#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/parsers/tcp_listeners.h"
#include "collectors/seat_config/seat_config.h"
#include "collectors/seats/index.h"
#include "exporter/file_root.h"
#include "exporter/sources.h"

namespace apu {

/// Why a llama-server is not asked.
enum class NotAsked {
  kTls,
  kUnixSocket,
  kElsewhere,       ///< it was told to listen on an address that is not loopback
  kNoPort,          ///< no port that could be read
  kNoPrefix,        ///< a prefix that is none of a URL
  kOtherNamespace,  ///< a network of its own, as containers have
  kUnreadable,      ///< its network namespace or its descriptors may not be read
  kOtherListener,   ///< it listens, and not on this port of loopback
};

/// For a person.
std::string_view to_text(NotAsked reason);

/// A llama-server of a seat.
struct HealthTarget {
  std::string seat;
  ProcessKey process;
  std::optional<NotAsked> not_asked;
  std::string url;  ///< "http://127.0.0.1:8080", a prefix behind it; empty where nobody listens yet
};

/// Finds the llama-servers of seats, and where on loopback they can be asked. It trusts no
/// configuration for that: the process itself has to hold the socket that listens there.
class HealthTargets {
 public:
  HealthTargets(FileRoot procfs, SourceReporter sources)
      : procfs_(std::move(procfs)), sources_(std::move(sources)) {}

  /// Those of a pass; of processes that have not ended. Reads /proc/PID/{stat,ns/net,fd} and
  /// /proc/self/{ns/net,net/tcp,net/tcp6}, none of which takes a lock of a process's memory.
  std::vector<HealthTarget> find(const SeatIndex& index, const SeatConfigFacts& configs);

 private:
  [[nodiscard]] HealthTarget locate(const Seat& seat, const ProcessKey& process,
                                    const HttpAddress& address) const;
  std::optional<NotAsked> set_url(HealthTarget& target, const HttpAddress& address) const;

  FileRoot procfs_;
  SourceReporter sources_;
  std::vector<TcpListener> listeners_;  // of this pass
};

}  // namespace apu
