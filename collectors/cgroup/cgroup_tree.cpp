#include "collectors/cgroup/cgroup_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "exporter/text.h"

namespace apu {
namespace {

constexpr const char* kSource = "cgroup2";
constexpr int kMaxDepth = 12;

std::string join(const std::string& path, std::string_view child) {
  return path == "/" ? fmt::format("/{}", child) : fmt::format("{}/{}", path, child);
}

}  // namespace

CgroupTree::CgroupTree(const SourceRoots& roots, SourceReporter sources)
    : CgroupTree(find_cgroup_root(roots), std::move(sources)) {}

CgroupTree::CgroupTree(const CgroupRoot& root, SourceReporter sources)
    : root_(root.path),
      sources_(std::move(sources)),
      recursive_(root.recursive_protection),
      v1_memory_(root.v1_memory) {}

std::string CgroupTree::file(const std::string& path, std::string_view name) {
  std::string relative = path.substr(std::min(path.find_first_not_of('/'), path.size()));
  if (!relative.empty() && !name.empty()) {
    relative += '/';
  }
  return relative + std::string(name);
}

std::string CgroupTree::parent_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == 0 ? "/" : path.substr(0, slash);
}

Result<std::string> CgroupTree::read(const std::string& file) const {
  return root_.read(file);
}

bool CgroupTree::exists(const std::string& path) const {
  return root_.exists(file(path, "cgroup.procs"));
}

Status CgroupTree::check() const {
  const auto controllers = root_.read("cgroup.controllers");
  if (!controllers) {
    const bool v1 = v1_memory_ || root_.exists("memory") || root_.exists("unified");
    return v1 ? Error{ErrorKind::kUnsupported, "the memory controller is that of cgroup v1"}
              : controllers.error();
  }
  const auto names = split_fields(first_line(*controllers));
  const bool memory = std::find(names.begin(), names.end(), "memory") != names.end();
  return memory ? Status()
                : Error{ErrorKind::kUnsupported,
                        "the unified hierarchy has no memory controller (hybrid mode, or "
                        "cgroup_disable=memory)"};
}

std::vector<std::string> CgroupTree::children(const std::string& path) const {
  const auto names = root_.list(file(path, ""));
  std::vector<std::string> found;
  for (const std::string& name : names ? *names : std::vector<std::string>()) {
    std::error_code error;
    if (std::filesystem::is_directory(root_.path_of(file(path, name)), error)) {
      found.push_back(join(path, name));
    }
  }
  return found;
}

std::vector<std::string> CgroupTree::units() const {
  std::vector<std::string> units;
  walk_units("/", 0, units);
  if (units.size() >= kMaxUnits) {
    sources_.parse_error(kSource, fmt::format("{} units or more: not all are read", kMaxUnits));
  }
  std::sort(units.begin(), units.end());
  return units;
}

void CgroupTree::walk_units(const std::string& path, int depth,
                            std::vector<std::string>& units) const {
  for (const std::string& child : children(path)) {
    if (units.size() >= kMaxUnits) {
      return;
    }
    const bool unit = child.ends_with(".service");
    const bool manager = unit && child.find("/user@") != std::string::npos &&
                         child.rfind('/') == child.find("/user@");
    if (unit && !manager) {
      units.push_back(child);
    } else if (depth < kMaxDepth && (manager || child.ends_with(".slice"))) {
      walk_units(child, depth + 1, units);
    }
  }
}

std::vector<std::int64_t> CgroupTree::processes(const std::string& path) const {
  std::vector<std::int64_t> pids;
  walk_processes(path, 0, pids);
  return pids;
}

std::vector<std::int64_t> CgroupTree::processes_in(const std::string& path) const {
  std::vector<std::int64_t> pids;
  if (const auto text = root_.read(file(path, "cgroup.procs"))) {
    for_each_line(*text, [&](std::string_view line) {
      const auto pid = parse_number<std::int64_t>(trim(line));
      if (pid && *pid >= 0) {
        pids.push_back(*pid);
      }
    });
  }
  return pids;
}

void CgroupTree::walk_processes(const std::string& path, int depth,
                                std::vector<std::int64_t>& pids) const {
  const auto own = processes_in(path);
  pids.insert(pids.end(), own.begin(), own.end());
  for (const std::string& child : depth < kMaxDepth ? children(path) : std::vector<std::string>()) {
    walk_processes(child, depth + 1, pids);
  }
}

std::optional<std::string> CgroupTree::resolve(const std::string& path,
                                               const std::string& init_path,
                                               std::int64_t pid) const {
  constexpr std::string_view kUp = "/..";
  const auto take_ups = [&](std::string_view& rest) {
    size_t ups = 0;
    while (rest.starts_with(kUp) && (rest.size() == kUp.size() || rest[kUp.size()] == '/')) {
      rest.remove_prefix(kUp.size());
      ++ups;
    }
    return ups;
  };
  std::string_view rest = path;
  std::string_view init = init_path;
  const size_t ups = take_ups(rest);
  const size_t depth = take_ups(init);
  const bool climbs_later = (std::string(rest) + "/").find("/../") != std::string::npos;
  if (ups > depth || climbs_later) {
    return std::nullopt;  // outside of what is mounted here
  }
  if (depth == 0) {
    return path;  // no namespace of ours
  }
  if (ups == depth) {
    return rest.empty() ? "/" : std::string(rest);
  }
  // It shares an ancestor with us whose name we are not told: one that has such a child.
  std::vector<std::string> ancestors{"/"};
  for (size_t level = 0; level < depth - ups; ++level) {
    std::vector<std::string> next;
    for (const std::string& ancestor : ancestors) {
      const auto found = children(ancestor);
      next.insert(next.end(), found.begin(), found.end());
    }
    ancestors = std::move(next);
  }
  std::vector<std::string> candidates;
  for (const std::string& ancestor : ancestors) {
    std::string candidate = ancestor + std::string(rest);
    if (exists(candidate)) {
      candidates.push_back(std::move(candidate));
    }
  }
  if (candidates.size() > 1) {
    std::erase_if(candidates, [&](const std::string& candidate) {
      const auto pids = processes_in(candidate);
      return std::find(pids.begin(), pids.end(), pid) == pids.end();
    });
  }
  return candidates.size() == 1 ? std::optional(candidates.front()) : std::nullopt;
}

}  // namespace apu
