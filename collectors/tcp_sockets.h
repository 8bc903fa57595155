#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "collectors/parsers/tcp_listeners.h"
#include "exporter/file_root.h"
#include "exporter/sources.h"

namespace apu {

struct TcpListeners {
  std::vector<TcpListener> sockets;
  bool complete = true;  ///< else a table, or a line of one, could not be read
};

/// The TCP sockets that listen in the exporter's network namespace: /proc/self/net/tcp and tcp6.
/// What cannot be read is counted as parse errors of `source`.
TcpListeners read_tcp_listeners(const FileRoot& procfs, const SourceReporter& sources,
                                const std::string& source);

/// The inodes of the sockets that a process holds, by /proc/PID/fd; nullopt where it may not be
/// read. Takes no lock of the process's memory.
std::optional<std::set<std::uint64_t>> read_sockets_of(const FileRoot& procfs, std::int64_t pid);

}  // namespace apu
