#include "collectors/cgroup/cgroup_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "collectors/parsers/keyed_numbers.h"
#include "collectors/report.h"
#include "exporter/text.h"

namespace apu {
namespace {

constexpr const char* kSource = "cgroup2";
constexpr int kMaxDepth = 12;
constexpr size_t kMaxUnits = 4000;

/// `file` of a cgroup, or the cgroup itself, relative to the root.
std::string below(const std::string& path, std::string_view file) {
  std::string relative = path.substr(std::min(path.find_first_not_of('/'), path.size()));
  if (!relative.empty() && !file.empty()) {
    relative += '/';
  }
  return relative + std::string(file);
}

std::string join(const std::string& path, std::string_view child) {
  return path == "/" ? fmt::format("/{}", child) : fmt::format("{}/{}", path, child);
}

std::string parent_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == 0 ? "/" : path.substr(0, slash);
}

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

/// The hierarchy is looked for where --path.cgroupfs says, then where it is mounted.
std::filesystem::path find_root(const SourceRoots& roots) {
  if (!FileRoot(roots.cgroupfs).exists("cgroup.controllers")) {
    if (const auto mount = read_mount(roots)) {
      return roots.rootfs / std::filesystem::path(mount->mount_point).relative_path();
    }
  }
  return roots.cgroupfs;
}

bool is_recursive(const SourceRoots& roots) {
  const auto mount = read_mount(roots);
  return !mount || mount->recursive_protection;  // systemd mounts it so
}

}  // namespace

Result<MemoryLimit> parse_memory_limit(std::string_view text) {
  const std::string_view value = trim(first_line(text));
  if (value == "max") {
    return MemoryLimit{};
  }
  const auto bytes = parse_number<std::uint64_t>(value);
  return bytes ? Result<MemoryLimit>(MemoryLimit{bytes})
               : Error{ErrorKind::kMalformed, fmt::format("neither bytes nor 'max': '{}'", value)};
}

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

CgroupTree::CgroupTree(const SourceRoots& roots, SourceReporter sources)
    : root_(find_root(roots)), sources_(std::move(sources)), recursive_(is_recursive(roots)) {}

Status CgroupTree::check() const {
  const auto controllers = root_.read("cgroup.controllers");
  if (!controllers) {
    const bool v1 = root_.exists("memory") || root_.exists("unified");
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

void CgroupTree::begin_pass() {
  usages_.clear();
  protected_.clear();
}

std::vector<std::string> CgroupTree::children(const std::string& path) const {
  const auto names = root_.list(below(path, ""));
  std::vector<std::string> found;
  for (const std::string& name : names ? *names : std::vector<std::string>()) {
    std::error_code error;
    if (std::filesystem::is_directory(root_.path_of(below(path, name)), error)) {
      found.push_back(join(path, name));
    }
  }
  return found;
}

std::vector<std::string> CgroupTree::units() const {
  std::vector<std::string> units;
  walk_units("/", 0, units);
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

void CgroupTree::walk_processes(const std::string& path, int depth,
                                std::vector<std::int64_t>& pids) const {
  if (const auto text = root_.read(below(path, "cgroup.procs"))) {
    for_each_line(*text, [&](std::string_view line) {
      const auto pid = parse_number<std::int64_t>(trim(line));
      if (pid && *pid > 0) {  // 0: of another process namespace
        pids.push_back(*pid);
      }
    });
  }
  for (const std::string& child : depth < kMaxDepth ? children(path) : std::vector<std::string>()) {
    walk_processes(child, depth + 1, pids);
  }
}

std::optional<std::uint64_t> CgroupTree::read_number(const std::string& path,
                                                     const char* file) const {
  const std::string name = below(path, file);
  const auto text = root_.read(name);
  if (!text) {
    return std::nullopt;
  }
  const auto limit = parse_memory_limit(*text);
  if (!limit) {
    sources_.parse_error(kSource, fmt::format("{}:1: {}", name, limit.error().message));
    return std::nullopt;
  }
  return limit->bytes;
}

void CgroupTree::read_limits(const std::string& path, CgroupMemory& memory) const {
  constexpr std::pair<const char*, const char*> kFiles[] = {{"min", "memory.min"},
                                                            {"low", "memory.low"},
                                                            {"high", "memory.high"},
                                                            {"max", "memory.max"},
                                                            {"swap_max", "memory.swap.max"}};
  for (const auto& [limit, file] : kFiles) {
    const std::string name = below(path, file);
    const auto text = root_.read(name);
    if (!text) {
      continue;
    }
    if (const auto parsed = parse_memory_limit(*text)) {
      memory.limits[limit] = *parsed;
    } else {
      sources_.parse_error(kSource, fmt::format("{}:1: {}", name, parsed.error().message));
    }
  }
}

void CgroupTree::read_statistics(const std::string& path, CgroupMemory& memory) const {
  const std::string stat_name = below(path, "memory.stat");
  if (const auto text = root_.read(stat_name)) {
    const KeyedNumbers stat = parse_vmstat(*text);
    report_problems(sources_, kSource, stat_name, stat.problems);
    memory.file = stat.get("file");
    if (stat.problems.empty()) {
      memory.gpu_charged = stat.get_or_zero("gpu_active") + stat.get_or_zero("gpu_reclaim");
    }
  }
  const std::string events_name = below(path, "memory.events");
  if (const auto text = root_.read(events_name)) {
    const KeyedNumbers events = parse_vmstat(*text);
    report_problems(sources_, kSource, events_name, events.problems);
    memory.events = {events.values.begin(), events.values.end()};
  }
}

void CgroupTree::read_pressure(const std::string& path, CgroupMemory& memory) const {
  for (const char* resource : {"cpu", "memory", "io"}) {
    const std::string name = below(path, std::string(resource) + ".pressure");
    const auto text = root_.read(name);
    if (text && !text->empty()) {
      memory.pressure.push_back({resource, parse_pressure(*text)});
      report_problems(sources_, kSource, name, memory.pressure.back().pressure.problems);
    }
  }
}

std::optional<CgroupMemory> CgroupTree::read_memory(const std::string& path) {
  if (!root_.exists(below(path, "cgroup.procs"))) {
    return std::nullopt;
  }
  CgroupMemory memory;
  memory.current = read_number(path, "memory.current");
  memory.swap_current = read_number(path, "memory.swap.current");
  read_limits(path, memory);
  read_statistics(path, memory);
  read_pressure(path, memory);
  for (const char* kind : {"min", "low"}) {
    if (memory.current && memory.limits.contains(kind)) {
      memory.protected_bytes[kind] = protection_of(path, kind);
    }
  }
  return memory;
}

const CgroupTree::Usage& CgroupTree::usage_of(const std::string& path) {
  const auto known = usages_.find(path);
  if (known != usages_.end()) {
    return known->second;
  }
  Usage usage;
  usage.current = read_number(path, "memory.current").value_or(0);
  for (const auto& [kind, file] : {std::pair{"min", "memory.min"}, {"low", "memory.low"}}) {
    const auto text = root_.read(below(path, file));
    const auto limit = text ? parse_memory_limit(*text) : MemoryLimit{0};
    constexpr std::uint64_t kAll = std::numeric_limits<std::uint64_t>::max();
    usage.settings[kind] = limit ? limit->bytes.value_or(kAll) : 0;
  }
  return usages_[path] = std::move(usage);
}

std::uint64_t CgroupTree::siblings_protected(const std::string& parent, const std::string& kind) {
  const auto known = protected_.find({parent, kind});
  if (known != protected_.end()) {
    return known->second;
  }
  std::uint64_t sum = 0;
  for (const std::string& child : children(parent)) {
    const Usage& usage = usage_of(child);
    sum += std::min(usage.current, usage.settings.at(kind));
  }
  return protected_[{parent, kind}] = sum;
}

std::uint64_t CgroupTree::protection_of(const std::string& path, const std::string& kind) {
  std::vector<ProtectionLevel> levels;
  for (std::string at = path; at != "/"; at = parent_of(at)) {
    const Usage& usage = usage_of(at);
    levels.push_back(
        {usage.current, usage.settings.at(kind), siblings_protected(parent_of(at), kind)});
  }
  std::reverse(levels.begin(), levels.end());
  return effective_protection(levels, recursive_);
}

std::optional<std::uint64_t> CgroupTree::charged() {
  std::optional<std::uint64_t> sum;
  for (const std::string& child : children("/")) {
    const auto current = read_number(child, "memory.current");
    if (!current && root_.exists(below(child, "memory.current"))) {
      return std::nullopt;  // a sum without it would look like memory that was freed
    }
    if (current) {
      sum = sum.value_or(0) + *current;
    }
  }
  return sum;
}

std::optional<std::uint64_t> CgroupTree::gpu_charged() const {
  CgroupMemory memory;
  read_statistics("/", memory);
  return memory.gpu_charged;
}

std::optional<std::string> CgroupTree::resolve(const std::string& path,
                                               const std::string& init_path) const {
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
  std::optional<std::string> match;
  for (const std::string& ancestor : ancestors) {
    const std::string candidate = ancestor + std::string(rest);
    if (root_.exists(below(candidate, "cgroup.procs"))) {
      if (match) {
        return std::nullopt;  // not told which
      }
      match = candidate;
    }
  }
  return match;
}

}  // namespace apu
