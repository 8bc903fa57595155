#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collectors/cgroup/cgroup_tree.h"
#include "collectors/parsers/keyed_numbers.h"
#include "collectors/pressure.h"
#include "exporter/result.h"
#include "exporter/sources.h"

namespace apu {

/// A limit of the memory controller: bytes, or none.
struct MemoryLimit {
  std::optional<std::uint64_t> bytes;  ///< absent: "max"
};

/// Parses memory.{current,min,low,high,max}, memory.swap.{current,max}: a number of bytes, or
/// "max". Errors: kMalformed: neither; no newline, so that it may have been cut; 2^63 and more, a
/// counter that fell below 0.
Result<MemoryLimit> parse_memory_limit(std::string_view text);

/// What the memory controller says of one cgroup. What the kernel has no file for is absent.
struct CgroupMemory {
  std::optional<std::uint64_t> current;       ///< memory.current, bytes, with all below it
  std::optional<std::uint64_t> swap_current;  ///< memory.swap.current, bytes
  std::optional<std::uint64_t> file;          ///< memory.stat file, bytes
  std::optional<std::uint64_t> file_mapped;   ///< memory.stat file_mapped, bytes: of `file`
  std::optional<std::uint64_t> shmem;         ///< memory.stat shmem, bytes: of `file`
  /// memory.stat gpu_active + gpu_reclaim, bytes: GPU pages that the cgroup is charged for; 0 where
  /// the kernel charges none. Absent where memory.stat could not be read whole.
  std::optional<std::uint64_t> gpu_charged;
  /// memory.stat has such keys: the kernel charges GPU pages. Absent likewise.
  std::optional<bool> charges_gpu;
  std::map<std::string, MemoryLimit> limits;    ///< min, low, high, max, swap_max
  std::map<std::string, std::uint64_t> events;  ///< memory.events, since the cgroup was made
  std::map<std::string, std::uint64_t> protected_bytes;  ///< effective: min, low
  std::vector<NamedPressure> pressure;                   ///< cpu, memory, io
};

/// Reads what the memory controller says, pass by pass.
///
/// Source: mm/memcontrol.c. World-readable. memory.stat flushes per-CPU counts under a lock that is
/// not the victim's: microseconds to milliseconds.
class CgroupMemoryReader {
 public:
  /// `tree` outlives it.
  CgroupMemoryReader(const CgroupTree& tree, SourceReporter sources);

  /// Forgets what the pass before read.
  void begin_pass();

  /// nullopt if it went away.
  std::optional<CgroupMemory> read(const std::string& path);

  /// Sum of memory.current over the children of the root, bytes; absent if one cannot be read.
  std::optional<std::uint64_t> charged();

  /// What memory.stat says of the root, and no other file.
  [[nodiscard]] CgroupMemory read_root();

  /// Why a file of this pass could not be read, other than that it was gone; the last one.
  [[nodiscard]] const Status& problem() const { return problem_; }

 private:
  using Bytes = std::optional<std::uint64_t>;

  const Result<MemoryLimit>& limit_of(const std::string& path, const std::string& file);
  Bytes number_of(const std::string& path, const std::string& file);
  void read_limits(const std::string& path, CgroupMemory& memory);
  Result<std::string> read_file(const std::string& name);
  std::optional<KeyedNumbers> read_numbers(const std::string& name);
  void read_statistics(const std::string& path, CgroupMemory& memory);
  void read_events(const std::string& path, CgroupMemory& memory);
  void read_pressure(const std::string& path, CgroupMemory& memory) const;
  Bytes asked_by(const std::string& path, const std::string& kind);
  Bytes asked_by_children(const std::string& parent, const std::string& kind);
  Bytes protection_of(const std::string& path, const std::string& kind);

  const CgroupTree& tree_;
  SourceReporter sources_;
  Status problem_;
  std::map<std::string, Result<MemoryLimit>> limits_;              // by file
  std::map<std::pair<std::string, std::string>, Bytes> children_;  // by parent and kind
};

}  // namespace apu
