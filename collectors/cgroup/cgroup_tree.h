#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/cgroup/cgroup_mount.h"
#include "exporter/file_root.h"
#include "exporter/result.h"
#include "exporter/roots.h"
#include "exporter/sources.h"

namespace apu {

/// The unified cgroup hierarchy of a host, read afresh in each pass. Paths of cgroups begin with
/// "/", which is the root.
///
/// Source: kernel/cgroup/cgroup.c. World-readable.
class CgroupTree {
 public:
  CgroupTree(const SourceRoots& roots, SourceReporter sources);

  /// Whether there is a unified hierarchy with the memory controller. Errors: kUnsupported for
  /// hosts whose memory controller is bound to v1, kNotFound and what reading meets.
  [[nodiscard]] Status check() const;

  /// Paths of all cgroups whose last part ends in ".service", sorted. More than kMaxUnits are a
  /// parse error, and those beyond are left out.
  [[nodiscard]] std::vector<std::string> units() const;

  static constexpr size_t kMaxUnits = 4000;

  /// The processes in a cgroup and below it.
  [[nodiscard]] std::vector<std::int64_t> processes(const std::string& path) const;

  [[nodiscard]] std::vector<std::string> children(const std::string& path) const;

  /// Precondition: not the root.
  static std::string parent_of(const std::string& path);

  [[nodiscard]] bool exists(const std::string& path) const;

  /// The name of a cgroup's file, for read() and for messages: relative to the hierarchy's root.
  static std::string file(const std::string& path, std::string_view name);

  [[nodiscard]] Result<std::string> read(const std::string& file) const;

  /// Whether it is mounted with memory_recursiveprot.
  [[nodiscard]] bool recursive_protection() const { return recursive_; }

  /// `path` of a process as seen from inside a private cgroup namespace, "/../llama.service", as
  /// the path from the root: `init_path` is that of PID 1, whose number of ".." is our depth. Of
  /// several that it can be, it is the one that `pid` is in.
  [[nodiscard]] std::optional<std::string> resolve(const std::string& path,
                                                   const std::string& init_path,
                                                   std::int64_t pid) const;

 private:
  CgroupTree(const CgroupRoot& root, SourceReporter sources);

  [[nodiscard]] std::vector<std::int64_t> processes_in(const std::string& path) const;
  void walk_units(const std::string& path, int depth, std::vector<std::string>& units) const;
  void walk_processes(const std::string& path, int depth, std::vector<std::int64_t>& pids) const;

  FileRoot root_;
  SourceReporter sources_;
  bool recursive_;
  bool v1_memory_;
};

}  // namespace apu
