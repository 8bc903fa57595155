#include "collectors/parsers/tcp_listeners.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstring>

#include "exporter/text.h"

namespace apu {
namespace {

constexpr size_t kWordDigits = 8;
constexpr std::string_view kListening = "0A";  // TCP_LISTEN in include/net/tcp_states.h

template <typename Number>
std::optional<Number> parse_hex(std::string_view text) {
  constexpr int kBase = 16;
  Number value{};
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value, kBase);
  const bool whole = parsed.ec == std::errc{} && parsed.ptr == text.data() + text.size();
  return whole ? std::optional(value) : std::nullopt;
}

/// The bytes of an address as they are on the wire: 4, or 16; empty if it is none.
std::string parse_address(std::string_view digits) {
  std::string bytes;
  if (digits.size() != kWordDigits && digits.size() != 4 * kWordDigits) {
    return bytes;
  }
  for (size_t at = 0; at < digits.size(); at += kWordDigits) {
    const auto word = parse_hex<std::uint32_t>(digits.substr(at, kWordDigits));
    if (!word) {
      return {};
    }
    std::array<char, sizeof(*word)> raw{};
    std::memcpy(raw.data(), &*word, raw.size());
    bytes.append(raw.data(), raw.size());
  }
  return bytes;
}

std::string v4_text(std::string_view bytes) {
  return fmt::format("{}.{}.{}.{}", static_cast<unsigned char>(bytes[0]),
                     static_cast<unsigned char>(bytes[1]), static_cast<unsigned char>(bytes[2]),
                     static_cast<unsigned char>(bytes[3]));
}

void set_place(TcpListener& listener, std::string_view bytes) {
  constexpr size_t kV4Bytes = 4;
  constexpr char kLoopbackNet = 127;
  const std::string mapped = std::string(10, '\0') + "\xff\xff";
  const bool is_v6 = bytes.size() > kV4Bytes && !bytes.starts_with(mapped);
  const std::string_view v4 = is_v6 ? "" : bytes.substr(bytes.size() - kV4Bytes);
  const bool is_any = bytes.find_first_not_of('\0') == std::string_view::npos;
  if (is_any) {
    listener.scope = ListenScope::kAny;
    listener.address = is_v6 ? "[::1]" : "127.0.0.1";
  } else if (is_v6 && bytes == std::string(15, '\0') + '\1') {
    listener.scope = ListenScope::kLoopback;
    listener.address = "[::1]";
  } else if (!is_v6 && v4.front() == kLoopbackNet) {
    listener.scope = ListenScope::kLoopback;
    listener.address = v4_text(v4);
  }
}

}  // namespace

std::optional<TcpListener> parse_tcp_listener(std::string_view line, int line_number,
                                              Problems& problems) {
  constexpr size_t kLocal = 1;
  constexpr size_t kState = 3;
  constexpr size_t kInode = 9;
  const auto fields = split_fields(line);
  if (fields.empty() || fields[0] == "sl") {
    return std::nullopt;
  }
  if (fields.size() > kState && fields[kState] != kListening) {
    return std::nullopt;
  }
  if (fields.size() > kInode) {
    const std::string_view local = fields[kLocal];
    const size_t colon = local.find(':');
    const std::string bytes = parse_address(local.substr(0, colon));
    const auto port = colon == std::string_view::npos
                          ? std::nullopt
                          : parse_hex<std::uint16_t>(local.substr(colon + 1));
    const auto inode = parse_number<std::uint64_t>(fields[kInode]);
    if (!bytes.empty() && port && inode) {
      TcpListener listener;
      listener.port = *port;
      listener.inode = *inode;
      set_place(listener, bytes);
      return listener;
    }
  }
  problems.push_back({line_number, "no socket in this line"});
  return std::nullopt;
}

std::optional<std::uint64_t> parse_socket_link(std::string_view target) {
  if (!consume(target, "socket:[") || !target.ends_with(']')) {
    return std::nullopt;
  }
  return parse_number<std::uint64_t>(target.substr(0, target.size() - 1));
}

}  // namespace apu
