#include "exporter/listen_address.h"

#include <fmt/format.h>

#include <algorithm>

#include "exporter/text.h"

namespace apu {
namespace {

bool is_host_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '-';
}

bool names_unix_socket(std::string_view text) {
  return text.starts_with('/') || text.starts_with('@') || text.starts_with("unix:");
}

Error refused(std::string_view text, std::string_view reason) {
  return {ErrorKind::kUnsupported, fmt::format("'{}': {}", text, reason)};
}

}  // namespace

Result<ListenAddress> parse_listen_address(std::string_view text) {
  constexpr std::string_view kWayRound =
      "; listen on 127.0.0.1:PORT and put systemd-socket-proxyd or a reverse proxy in front";
  if (names_unix_socket(text)) {
    return refused(text, fmt::format("unix sockets are not supported{}", kWayRound));
  }
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) {
    return refused(text, "is not host:port or :port");
  }
  const std::string_view host = text.substr(0, colon);
  const auto port = parse_number<std::uint16_t>(text.substr(colon + 1));
  if (host.find(':') != std::string_view::npos || host.starts_with('[')) {
    return refused(text, fmt::format("IPv6 is not supported by this web server{}", kWayRound));
  }
  if (!port) {
    return refused(text, "the port is not a number from 0 to 65535");
  }
  if (!std::all_of(host.begin(), host.end(), is_host_character)) {
    return refused(text, "the host is neither an IPv4 address nor a name");
  }
  return ListenAddress{std::string(host), *port};
}

}  // namespace apu
