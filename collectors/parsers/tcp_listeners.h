#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/parsers/problem.h"

namespace apu {

/// Which addresses a listening socket takes connections for.
enum class ListenScope {
  kAny,
  kLoopback,
  kOther,  ///< one address that is not loopback
};

/// A TCP socket that listens.
struct TcpListener {
  ListenScope scope = ListenScope::kOther;
  /// Where it can be reached on this host, as a URL has it: "127.0.0.1", "[::1]"; empty for kOther.
  std::string address;
  std::uint16_t port = 0;
  std::uint64_t inode = 0;
};

/// Reads a line of /proc/net/tcp or tcp6; nullopt for the heading, and for a socket that does not
/// listen. Adds to `problems` a line that is none of these.
///
/// Source: get_tcp4_sock in net/ipv4/tcp_ipv4.c, get_tcp6_sock in net/ipv6/tcp_ipv6.c.
/// Shape:  "sl: ADDRESS:PORT ADDRESS:PORT ST TX:RX TR:WHEN RETRNSMT UID TIMEOUT INODE ...": hex but
///         for the last four; an address is one word of 32 bits in the host's byte order, or four.
std::optional<TcpListener> parse_tcp_listener(std::string_view line, int line_number,
                                              Problems& problems);

/// The inode of "socket:[N]", as /proc/PID/fd has it; nullopt for any other target.
std::optional<std::uint64_t> parse_socket_link(std::string_view target);

}  // namespace apu
