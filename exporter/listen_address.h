#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "exporter/result.h"

namespace apu {

/// Where the web server listens.
struct ListenAddress {
  std::string host;        ///< IPv4 address or name; empty for all IPv4 addresses
  std::uint16_t port = 0;  ///< 0: the kernel chooses one
};

/// Parses node_exporter's form, "host:port" or ":port". Errors say what is wrong and, for what
/// Debian's civetweb cannot do (IPv6, unix sockets), the way round it.
Result<ListenAddress> parse_listen_address(std::string_view text);

}  // namespace apu
