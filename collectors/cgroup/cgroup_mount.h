#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "exporter/roots.h"

namespace apu {

/// Where the unified hierarchy is mounted, and how.
struct CgroupMount {
  std::string mount_point;
  bool recursive_protection = false;  ///< memory_recursiveprot
};

/// The first mount of type cgroup2 in /proc/PID/mountinfo; nullopt if there is none.
std::optional<CgroupMount> parse_cgroup_mount(std::string_view mountinfo);

/// The unified hierarchy of the host.
struct CgroupRoot {
  std::filesystem::path path;        ///< --path.cgroupfs, or else where PID 1 or we have it mounted
  bool recursive_protection = true;  ///< as systemd mounts it, where mountinfo does not tell
};

CgroupRoot find_cgroup_root(const SourceRoots& roots);

}  // namespace apu
