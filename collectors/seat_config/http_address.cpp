#include "collectors/seat_config/http_address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>

namespace apu {

ListenHost parse_listen_host(std::string_view value) {
  static constexpr std::array<std::string_view, 5> kLocal{"localhost", "0.0.0.0", "::", "::1",
                                                          "[::1]"};
  in_addr address{};
  const bool is_loopback =
      value.starts_with("127.") && inet_pton(AF_INET, std::string(value).c_str(), &address) == 1;
  if (is_loopback || std::find(kLocal.begin(), kLocal.end(), value) != kLocal.end()) {
    return ListenHost::kLocal;
  }
  return value.ends_with(".sock") ? ListenHost::kUnixSocket : ListenHost::kElsewhere;
}

bool is_url_prefix(std::string_view text) {
  constexpr size_t kMaxBytes = 255;
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("/-._~").find(c) != std::string_view::npos;
  };
  return text.empty() || (text.starts_with('/') && text.size() <= kMaxBytes &&
                          std::all_of(text.begin(), text.end(), fits));
}

}  // namespace apu
