#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

#include "exporter/file_root.h"

namespace apu {

/// Whose device a DRM minor is.
enum class DrmDriver { kUnknown, kAmdgpu, kOther };

/// The number in "card1" or "renderD128", which is the minor of that device; nullopt for
/// "card1-DP-1" and other names.
std::optional<std::uint32_t> parse_drm_node_name(std::string_view name);

/// Which driver has which DRM minor, by /sys/class/drm. Follows links, and reads no attribute.
class DrmMinors {
 public:
  static DrmMinors read(const FileRoot& sysfs);

  /// kUnknown where sysfs does not tell.
  [[nodiscard]] DrmDriver driver_of(std::uint32_t minor) const;

 private:
  std::map<std::uint32_t, DrmDriver> drivers_;
};

/// The minor of the DRM device that /proc/PID/fd/N refers to, `link` being its target: by the
/// device's number, since a container may have the node under any name. By the name where a
/// recorded host has no device behind the link. nullopt: no DRM device.
std::optional<std::uint32_t> drm_minor_of(const FileRoot& procfs, std::string_view descriptor,
                                          std::string_view link);

}  // namespace apu
