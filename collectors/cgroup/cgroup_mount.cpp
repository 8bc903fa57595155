#include "collectors/cgroup/cgroup_mount.h"

#include <algorithm>
#include <vector>

#include "exporter/file_root.h"
#include "exporter/text.h"

namespace apu {
namespace {

/// A line of mountinfo: "31 24 0:27 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw".
struct MountLine {
  std::string_view root;
  std::string_view mount_point;
  std::string_view type;
  std::string_view super_options;
};

std::optional<MountLine> parse_line(std::string_view line) {
  constexpr size_t kRoot = 3;
  constexpr size_t kMountPoint = 4;
  constexpr size_t kSuperOptions = 2;
  const size_t dash = line.find(" - ");
  if (dash == std::string_view::npos) {
    return std::nullopt;
  }
  const auto fields = split_fields(line.substr(0, dash));
  const auto options = split_fields(line.substr(dash + 3));
  if (fields.size() <= kMountPoint || options.size() <= kSuperOptions) {
    return std::nullopt;
  }
  return MountLine{fields[kRoot], fields[kMountPoint], options[0], options[kSuperOptions]};
}

bool has_option(std::string_view options, std::string_view option) {
  return ("," + std::string(options) + ",").find("," + std::string(option) + ",") !=
         std::string::npos;
}

/// Whether it is mounted from the hierarchy's root, or, as seen from a cgroup namespace of our own,
/// from above ours: "/../..".
bool is_whole(std::string_view root) {
  return root == "/" || root.starts_with("/..");
}

/// That of the host's first process, or of ours where that is closed to us.
std::vector<std::string> read_mountinfos(const SourceRoots& roots) {
  const FileRoot procfs(roots.procfs);
  std::vector<std::string> texts;
  for (const char* file : {"1/mountinfo", "self/mountinfo"}) {
    if (auto text = procfs.read(file)) {
      texts.push_back(*std::move(text));
    }
  }
  return texts;
}

std::optional<CgroupMount> find_mount(const std::vector<std::string>& mountinfos) {
  for (const std::string& text : mountinfos) {
    if (auto mount = parse_cgroup_mount(text)) {
      return mount;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<CgroupMount> parse_cgroup_mount(std::string_view mountinfo) {
  std::optional<CgroupMount> found;
  bool whole = false;
  for_each_line(mountinfo, [&](std::string_view text) {
    const auto line = parse_line(text);
    if (!line || line->type != "cgroup2" || whole || (found && !is_whole(line->root))) {
      return;
    }
    whole = is_whole(line->root);
    found = CgroupMount{unescape_octal(line->mount_point),
                        has_option(line->super_options, "memory_recursiveprot")};
  });
  return found;
}

bool has_v1_memory(std::string_view mountinfo) {
  bool found = false;
  for_each_line(mountinfo, [&](std::string_view text) {
    const auto line = parse_line(text);
    found = found || (line && line->type == "cgroup" && has_option(line->super_options, "memory"));
  });
  return found;
}

CgroupRoot find_cgroup_root(const SourceRoots& roots) {
  CgroupRoot root{roots.cgroupfs};
  const auto mountinfos = read_mountinfos(roots);
  root.v1_memory = std::any_of(mountinfos.begin(), mountinfos.end(), has_v1_memory);
  if (const auto mount = find_mount(mountinfos)) {
    root.recursive_protection = mount->recursive_protection;
    if (!FileRoot(roots.cgroupfs).exists("cgroup.controllers")) {
      root.path = roots.rootfs / std::filesystem::path(mount->mount_point).relative_path();
    }
  }
  return root;
}

}  // namespace apu
