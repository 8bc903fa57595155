#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace apu {

/// What a server was told to listen on.
enum class ListenHost {
  kLocal,       ///< loopback, or all addresses
  kElsewhere,   ///< another address, or a name that only a resolver knows
  kUnixSocket,  ///< a path that ends in ".sock"
};

/// Where a llama-server answers HTTP, by what it was told and its defaults.
struct HttpAddress {
  ListenHost host = ListenHost::kLocal;
  std::optional<std::uint16_t> port = kDefaultPort;  ///< absent: unreadable, or the kernel chose it
  std::optional<std::string> prefix = "";  ///< before each path; absent where it is none of a URL
  bool tls = false;

  static constexpr std::uint16_t kDefaultPort = 8080;

  bool operator==(const HttpAddress&) const = default;
};

/// Reads the value of llama-server's --host. "localhost" is the only name that counts as local: no
/// name is resolved.
ListenHost parse_listen_host(std::string_view value);

/// Whether `text` may stand before a path of a URL as it is: empty, or "/" and what needs no
/// escape, up to 255 bytes.
bool is_url_prefix(std::string_view text);

}  // namespace apu
