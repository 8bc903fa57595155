#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collectors/parsers/pid_stat.h"
#include "collectors/recent_series.h"
#include "exporter/collector.h"

namespace apu {

/// What the name of a kworker says.
struct KworkerName {
  bool per_cpu = false;   ///< bound to a CPU: the only ones whose work can be reported as a hog
  std::string workqueue;  ///< that it runs, or ran last; empty if it has none or is not told
};

/// Parses the name of a kworker as /proc/<pid>/stat shows it. nullopt if it is no kworker.
///
/// Source: format_worker_id and wq_worker_comm in kernel/workqueue.c.
/// Shape:  "kworker/3:1", "kworker/3:1H" (high priority), "kworker/u64:2" (unbound),
///         "kworker/R-name" (rescuer), each with "+queue" while it runs or "-queue" afterwards.
std::optional<KworkerName> parse_kworker_name(std::string_view comm);

/// One kworker at one pass.
struct KworkerSample {
  std::int64_t pid = 0;
  std::uint64_t start_ticks = 0;
  std::uint64_t cpu_ticks = 0;
  KworkerName name;
};

/// Sums the CPU time of kworkers over passes, in clock ticks. The sums never fall: a kworker that
/// ends takes nothing with it but what it used since the last pass.
class KworkerTotals {
 public:
  /// The kworkers of one pass, all of them. `monotonic`: Clock::monotonic.
  void add_pass(std::chrono::nanoseconds monotonic, const std::vector<KworkerSample>& kworkers);

  [[nodiscard]] std::uint64_t per_cpu_ticks() const { return per_cpu_ticks_; }

  /// By workqueue, of those in `kNamedWorkqueues`; all others are "other". A pass gives all that a
  /// kworker used since the one before to the queue that its name shows: a sample, not a count.
  [[nodiscard]] const std::map<std::string, std::uint64_t, std::less<>>& by_workqueue() const {
    return by_workqueue_;
  }

  /// Ticks that all per-CPU kworkers used a second, over the last kWindow; nullopt until it has
  /// passed.
  [[nodiscard]] std::optional<double> per_cpu_rate() const;

  static constexpr std::chrono::seconds kWindow{60};

 private:
  using Identity = std::pair<std::int64_t, std::uint64_t>;  // pid, start

  struct LastSeen {
    std::uint64_t ticks = 0;
    std::uint64_t pass = 0;
  };

  // A kworker whose stat could not be read for a while is no new one.
  static constexpr std::uint64_t kRememberedPasses = 40;

  std::map<Identity, LastSeen> seen_;
  std::uint64_t passes_ = 0;
  std::uint64_t per_cpu_ticks_ = 0;
  std::map<std::string, std::uint64_t, std::less<>> by_workqueue_;
  RecentSeries per_cpu_history_{kWindow};  // of per_cpu_ticks_
};

/// The facts of a pass.
struct KworkersFacts {
  double per_cpu_seconds = 0;           ///< CPU time since the exporter's first pass
  std::optional<double> per_cpu_cores;  ///< CPU time a second, over KworkerTotals::kWindow
  std::map<std::string, double, std::less<>> seconds_by_workqueue;
};

Families to_families(const KworkersFacts& facts);

std::span<const MetricInfo> kworkers_metrics();

/// CPU time of kworkers. Source "kworkers": absent where /proc shows none, as in a container with a
/// process namespace of its own.
std::unique_ptr<Collector> make_kworkers_collector(const CollectorContext& context);

}  // namespace apu
