#include "collectors/kernel_log/unit_name.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "exporter/text.h"

namespace apu {
namespace {

constexpr size_t kContainerIdLength = 64;
constexpr size_t kShortIdLength = 12;

bool is_hex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

std::optional<unsigned> hex_digit(char c) {
  return is_hex(c) ? std::optional<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10) : std::nullopt;
}

std::vector<std::string_view> parts_of(std::string_view path) {
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    const size_t slash = std::min(path.find('/'), path.size());
    if (slash > 0) {
      parts.push_back(path.substr(0, slash));
    }
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  return parts;
}

/// The container id that a part of a path ends in: "docker-ID.scope", "cri-containerd-ID.scope",
/// "libpod-ID.scope", or the bare ID of the cgroupfs driver.
std::string_view container_id(std::string_view part) {
  if (part.ends_with(".scope")) {
    part.remove_suffix(std::string_view(".scope").size());
  }
  if (part.size() < kContainerIdLength) {
    return {};
  }
  const std::string_view id = part.substr(part.size() - kContainerIdLength);
  const bool whole = part.size() == kContainerIdLength || part[part.size() - id.size() - 1] == '-';
  return whole && std::all_of(id.begin(), id.end(), is_hex) ? id.substr(0, kShortIdLength)
                                                            : std::string_view();
}

/// The user id of "user@1000.service".
std::string_view user_of(std::string_view part) {
  return consume(part, "user@") && part.ends_with(".service")
             ? part.substr(0, part.size() - std::string_view(".service").size())
             : std::string_view();
}

}  // namespace

std::string unescape_unit(std::string_view text) {
  std::string plain;
  while (!text.empty()) {
    const auto high = text.size() >= 4 ? hex_digit(text[2]) : std::nullopt;
    const auto low = text.size() >= 4 ? hex_digit(text[3]) : std::nullopt;
    if (text.starts_with("\\x") && high && low) {
      plain += static_cast<char>(*high * 16 + *low);
      text.remove_prefix(4);
    } else {
      plain += text[0];
      text.remove_prefix(1);
    }
  }
  return plain;
}

std::string_view without_service(std::string_view unit) {
  constexpr std::string_view kSuffix = ".service";
  return unit.ends_with(kSuffix) && unit.size() > kSuffix.size()
             ? unit.substr(0, unit.size() - kSuffix.size())
             : unit;
}

std::string unit_of_cgroup(std::string_view path) {
  if (path.ends_with('>')) {
    return {};  // a pager cut it off
  }
  std::string_view user;
  std::string_view unit;
  for (const std::string_view part : parts_of(path)) {
    if (const std::string_view id = container_id(part); !id.empty()) {
      return std::string(id);
    }
    if (const std::string_view uid = user_of(part); !uid.empty()) {
      user = uid;
    } else if (part.ends_with(".service") || part.ends_with(".scope")) {
      unit = part;
    }
  }
  if (unit.empty()) {
    return {};
  }
  const std::string name = unescape_unit(without_service(unit));
  return user.empty() ? name : std::string(user) + "/" + name;
}

}  // namespace apu
