#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "exporter/collector.h"
#include "exporter/guarded_reader.h"

namespace apu {

/// Asks for the mmap_lock of a process by reading its /proc/PID/cmdline, which takes it for
/// reading, and may wait for ever behind a restore worker of KFD that has it for writing.
class LockProbe {
 public:
  virtual ~LockProbe() = default;

  enum class Answer {
    kFree,      ///< the file was read
    kWaits,     ///< it did not answer, and the reader waits for a lock of that kind
    kNoProof,   ///< it did not answer for another reason
    kNotAsked,  ///< it has hung a moment ago, or no helper could ask: nothing new is known
  };

  virtual Answer ask(const ProcessIdentity& process) = 0;
};

/// Whether the reader of a cmdline that sleeps in `wchan` waits for the mmap_lock: not for a page
/// that is being swapped in, which takes as long on a host under pressure.
///
/// Source: __access_remote_vm in mm/memory.c, which takes the lock; the page's wait is in
/// folio_wait_bit_common, and its wchan that.
bool waits_for_mmap_lock(std::string_view wchan);

/// What is known of a process from pass to pass.
class LockSuspects {
 public:
  /// From so much of a core on a process is pegged.
  static constexpr double kPegged = 0.9;

  /// So many unanswered probes in a row are proof.
  static constexpr unsigned kProof = 2;

  /// Whether `process` is worth a probe: a thread of it is in D, or it took kPegged of a core since
  /// the last call, `cpu_seconds` being its CPU time so far, or the last probe waited.
  bool is_suspect(const ProcessIdentity& process, bool in_disk_sleep, double cpu_seconds,
                  std::chrono::steady_clock::time_point now);

  /// Takes the answer to a probe.
  void note(const ProcessIdentity& process, LockProbe::Answer answer);

  /// Whether kProof probes in a row waited, and none was answered since.
  [[nodiscard]] bool is_held(const ProcessIdentity& process) const;

  /// Forgets processes that are not in `living`.
  void keep_only(const std::vector<ProcessIdentity>& living);

 private:
  struct Suspect {
    double cpu_seconds = 0;
    std::optional<std::chrono::steady_clock::time_point> since;
    unsigned waits = 0;  // in a row
  };

  std::map<ProcessIdentity, Suspect> suspects_;
};

/// The facts of a pass.
struct MmapLockFacts {
  std::map<std::string, bool> held;     ///< by seat, whether the lock of one of its processes is
  std::set<ProcessIdentity> processes;  ///< whose lock is held
};

std::span<const MetricInfo> mmap_lock_metrics();

/// Probes the processes of seats, if they spin or hang. Files that it reads itself,
/// /proc/PID/task/*/stat, take no lock of the process's memory.
std::unique_ptr<Collector> make_mmap_lock_collector(const CollectorContext& context);

/// With another probe, for tests.
std::unique_ptr<Collector> make_mmap_lock_collector(const CollectorContext& context,
                                                    std::unique_ptr<LockProbe> probe);

}  // namespace apu
