#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "collectors/kfd.h"
#include "exporter/clock.h"

namespace apu {

/// Remembers since when entries have been orphans. One that is an orphan stays it while its entry
/// does: its pid may meanwhile be that of a stranger. So is one whose process has another start
/// than it had: its own ended between two passes.
class KfdOrphans {
 public:
  /// Sets `orphan_for` of the orphans among `processes`, which are all of a pass, and makes
  /// orphans of those that were some.
  void update(TimePoint now, std::vector<KfdProcess>& processes);

 private:
  [[nodiscard]] bool has_ended(const KfdProcess& process) const;

  std::map<std::int64_t, TimePoint> since_;       // of orphans, by pid
  std::map<std::int64_t, std::uint64_t> starts_;  // of those that live
};

/// Time evicted of the contexts of processes. Kernels with several contexts count in each, and
/// forget one with its count when it goes; the sum must not fall while the process lives.
class KfdEvictions {
 public:
  /// Milliseconds by gpu_id and by the context's directory.
  using Times = std::map<std::uint32_t, std::map<std::string, std::uint64_t>>;

  /// What was read now of the contexts of a process.
  void update(std::int64_t pid, const Times& times);

  /// Over all its contexts that ever were; nullopt if none was read.
  [[nodiscard]] std::optional<std::uint64_t> total(std::int64_t pid, std::uint32_t gpu_id) const;

  /// Forgets the entries that are gone.
  void keep_only(const std::vector<KfdProcess>& processes);

 private:
  std::map<std::int64_t, Times> times_;  // by pid
};

}  // namespace apu
