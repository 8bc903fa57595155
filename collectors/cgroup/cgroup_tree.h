#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/cgroup/protection.h"
#include "collectors/pressure.h"
#include "exporter/file_root.h"
#include "exporter/roots.h"
#include "exporter/sources.h"

namespace apu {

/// A limit of the memory controller: bytes, or none.
struct MemoryLimit {
  std::optional<std::uint64_t> bytes;  ///< absent: "max"
};

/// Parses memory.{min,low,high,max}, memory.swap.max: a number of bytes, or "max".
/// Errors: kMalformed.
Result<MemoryLimit> parse_memory_limit(std::string_view text);

/// What the memory controller says of one cgroup. What the kernel has no file for is absent.
struct CgroupMemory {
  std::optional<std::uint64_t> current;       ///< memory.current, bytes, with all below it
  std::optional<std::uint64_t> swap_current;  ///< memory.swap.current, bytes
  std::optional<std::uint64_t> file;          ///< memory.stat file, bytes
  /// memory.stat gpu_active + gpu_reclaim, bytes: GPU pages that the cgroup is charged for; 0 where
  /// the kernel charges none. Absent where memory.stat could not be read whole.
  std::optional<std::uint64_t> gpu_charged;
  std::map<std::string, MemoryLimit> limits;    ///< min, low, high, max, swap_max
  std::map<std::string, std::uint64_t> events;  ///< memory.events, since the cgroup was made
  std::map<std::string, std::uint64_t> protected_bytes;  ///< effective: min, low
  std::vector<NamedPressure> pressure;                   ///< cpu, memory, io
};

/// The unified cgroup hierarchy of a host, read afresh in each pass.
///
/// Source: mm/memcontrol.c, kernel/cgroup/cgroup.c. World-readable. memory.stat flushes per-CPU
/// counts under a lock that is not the victim's: microseconds to milliseconds.
class CgroupTree {
 public:
  CgroupTree(const SourceRoots& roots, SourceReporter sources);

  /// Whether there is a unified hierarchy with the memory controller. Errors: kUnsupported for
  /// hosts whose memory controller is bound to v1, kNotFound and what reading meets.
  [[nodiscard]] Status check() const;

  /// Forgets what the pass before read.
  void begin_pass();

  /// Paths of all cgroups whose last part ends in ".service", sorted; so many at most.
  [[nodiscard]] std::vector<std::string> units() const;

  /// The processes in a cgroup and below it.
  [[nodiscard]] std::vector<std::int64_t> processes(const std::string& path) const;

  /// nullopt if it went away.
  std::optional<CgroupMemory> read_memory(const std::string& path);

  /// Sum of memory.current over the children of the root, bytes.
  std::optional<std::uint64_t> charged();

  /// memory.stat gpu_active + gpu_reclaim of the root, bytes; as in CgroupMemory.
  [[nodiscard]] std::optional<std::uint64_t> gpu_charged() const;

  /// `path` of a process as seen from inside a private cgroup namespace, "/../llama.service", as
  /// the path from the root: `init_path` is that of PID 1, whose number of ".." is our depth.
  [[nodiscard]] std::optional<std::string> resolve(const std::string& path,
                                                   const std::string& init_path) const;

 private:
  struct Usage {
    std::uint64_t current = 0;
    std::map<std::string, std::uint64_t> settings;  // min, low
  };

  void walk_units(const std::string& path, int depth, std::vector<std::string>& units) const;
  void walk_processes(const std::string& path, int depth, std::vector<std::int64_t>& pids) const;
  [[nodiscard]] std::vector<std::string> children(const std::string& path) const;
  [[nodiscard]] std::optional<std::uint64_t> read_number(const std::string& path,
                                                         const char* file) const;
  void read_limits(const std::string& path, CgroupMemory& memory) const;
  void read_statistics(const std::string& path, CgroupMemory& memory) const;
  void read_pressure(const std::string& path, CgroupMemory& memory) const;
  const Usage& usage_of(const std::string& path);
  std::uint64_t siblings_protected(const std::string& parent, const std::string& kind);
  std::uint64_t protection_of(const std::string& path, const std::string& kind);

  FileRoot root_;
  SourceReporter sources_;
  bool recursive_;  // memory_recursiveprot
  std::map<std::string, Usage> usages_;
  std::map<std::pair<std::string, std::string>, std::uint64_t> protected_;  // by parent and kind
};

/// Where the unified hierarchy is mounted, and how.
struct CgroupMount {
  std::string mount_point;
  bool recursive_protection = false;  ///< memory_recursiveprot
};

/// The first mount of type cgroup2 in /proc/PID/mountinfo; nullopt if there is none.
std::optional<CgroupMount> parse_cgroup_mount(std::string_view mountinfo);

}  // namespace apu
