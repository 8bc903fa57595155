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

/// The first mount of type cgroup2 in /proc/PID/mountinfo, those of a part of the hierarchy after
/// the whole one; nullopt if there is none.
///
/// Source: show_mountinfo in fs/proc_namespace.c, which escapes blanks and backslashes ("\\040").
std::optional<CgroupMount> parse_cgroup_mount(std::string_view mountinfo);

/// Whether the memory controller is mounted as one of cgroup v1.
bool has_v1_memory(std::string_view mountinfo);

/// The unified hierarchy of the host.
struct CgroupRoot {
  std::filesystem::path path;        ///< --path.cgroupfs, or else where PID 1 or we have it mounted
  bool recursive_protection = true;  ///< as systemd mounts it, where mountinfo does not tell
  bool v1_memory = false;            ///< the memory controller is that of cgroup v1
};

CgroupRoot find_cgroup_root(const SourceRoots& roots);

}  // namespace apu
