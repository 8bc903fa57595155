#include "collectors/cgroup/protection.h"

#include <algorithm>
#include <limits>

namespace apu {
namespace {

/// a * b / c without overflow; precise enough for bytes.
std::uint64_t scale(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  constexpr auto kAll = std::numeric_limits<std::uint64_t>::max();
  const long double scaled =
      static_cast<long double>(a) * static_cast<long double>(b) / static_cast<long double>(c);
  return scaled >= static_cast<long double>(kAll) ? kAll : static_cast<std::uint64_t>(scaled);
}

std::uint64_t below(const ProtectionLevel& level, std::uint64_t parent_usage,
                    std::uint64_t parent_effective, bool recursive) {
  const std::uint64_t own = std::min(level.usage, level.setting);
  const std::uint64_t siblings = level.siblings_protected;
  if (siblings > parent_effective) {
    return scale(own, parent_effective, siblings);
  }
  const bool shares =
      recursive && parent_effective > siblings && parent_usage > siblings && level.usage > own;
  return shares
             ? own + scale(parent_effective - siblings, level.usage - own, parent_usage - siblings)
             : own;
}

}  // namespace

std::uint64_t effective_protection(const std::vector<ProtectionLevel>& path, bool recursive) {
  std::uint64_t effective = 0;
  for (size_t i = 0; i < path.size(); ++i) {
    effective = i == 0 ? path[i].setting : below(path[i], path[i - 1].usage, effective, recursive);
  }
  return path.empty() ? 0 : std::min(effective, path.back().usage);
}

}  // namespace apu
