#include "collectors/cgroup/cgroup_mount.h"

#include "exporter/file_root.h"
#include "exporter/text.h"

namespace apu {
namespace {

std::optional<CgroupMount> read_mount(const SourceRoots& roots) {
  const FileRoot procfs(roots.procfs);
  for (const char* file : {"1/mountinfo", "self/mountinfo"}) {
    if (const auto text = procfs.read(file)) {
      if (auto mount = parse_cgroup_mount(*text)) {
        return mount;
      }
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<CgroupMount> parse_cgroup_mount(std::string_view mountinfo) {
  std::optional<CgroupMount> found;
  for_each_line(mountinfo, [&](std::string_view line) {
    // "31 24 0:27 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,memory_recursiveprot"
    const size_t dash = line.find(" - ");
    if (found || dash == std::string_view::npos) {
      return;
    }
    const auto fields = split_fields(line.substr(0, dash));
    const auto options = split_fields(line.substr(dash + 3));
    constexpr size_t kMountPoint = 4;
    constexpr size_t kSuperOptions = 2;
    if (fields.size() <= kMountPoint || options.size() <= kSuperOptions ||
        options[0] != "cgroup2") {
      return;
    }
    found =
        CgroupMount{std::string(fields[kMountPoint]),
                    options[kSuperOptions].find("memory_recursiveprot") != std::string_view::npos};
  });
  return found;
}

CgroupRoot find_cgroup_root(const SourceRoots& roots) {
  CgroupRoot root{roots.cgroupfs};
  if (const auto mount = read_mount(roots)) {
    root.recursive_protection = mount->recursive_protection;
    if (!FileRoot(roots.cgroupfs).exists("cgroup.controllers")) {
      root.path = roots.rootfs / std::filesystem::path(mount->mount_point).relative_path();
    }
  }
  return root;
}

}  // namespace apu
