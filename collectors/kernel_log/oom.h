#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "exporter/clock.h"

namespace apu {

class KernelLogStateCodec;

/// Whose memory ran out.
enum class OomScope {
  kHost,   ///< "global" in the kernel's words
  kMemcg,  ///< the limit of a memory cgroup
};

std::string_view to_label(OomScope scope);

/// "oom-kill:constraint=...": the kernel chose a victim. One for each invocation.
struct OomEvent {
  OomScope scope = OomScope::kHost;
  std::string_view victim_cgroup;   ///< task_memcg, as printed; cut off where the line was
  std::optional<std::int64_t> pid;  ///< absent where the line was cut off
};

/// "...: Killed process PID (NAME) total-vm:...".
struct OomKill {
  OomScope scope = OomScope::kHost;
  std::int64_t pid = 0;
};

/// Parses the line that dump_oom_victim prints in mm/oom_kill.c. Values are found by their keys:
/// node lists hold commas, and task names anything.
std::optional<OomEvent> parse_oom_event(std::string_view message);

/// Parses the line that __oom_kill_process prints. "is already exiting. Skip killing" is no kill.
std::optional<OomKill> parse_oom_kill(std::string_view message);

/// The cgroup in "Tasks in PATH are going to be killed due to memory.oom.group set"; nullopt for
/// any other message.
std::optional<std::string_view> parse_oom_group(std::string_view message);

/// Counts of one scope and unit.
struct OomKillCounts {
  std::uint64_t kills = 0;
  std::optional<TimePoint> last_time;
};

/// Counts events and the distinct processes killed in each. The first victim of a group kill is
/// printed twice, so a process counts once in an event. The event's line is rate limited by the
/// kernel and the kill's is not: a kill that belongs to no event seen has no known unit.
class OomState {
 public:
  using Key = std::pair<OomScope, std::string>;  // unit, "" where none is known

  /// So many units get counts of their own; the kills of more are counted as of "other".
  static constexpr size_t kMaxUnits = 64;

  /// Folds a message in. False if it is none of this.
  bool fold(std::string_view message, std::optional<TimePoint> time);

  [[nodiscard]] const std::map<OomScope, std::uint64_t>& events() const { return events_; }

  [[nodiscard]] const std::map<Key, OomKillCounts>& kills() const { return kills_; }

  /// Time of the first event of the host.
  [[nodiscard]] const std::optional<TimePoint>& first_host_event() const { return first_host_; }

 private:
  friend class KernelLogStateCodec;

  /// The last event, while kills may belong to it.
  struct Current {
    std::string unit;
    std::optional<std::int64_t> victim;  // absent where the line was cut off
    bool whole_group = false;            // then any process may follow
    std::set<std::int64_t> killed;
  };

  void begin_event(const OomEvent& event, std::optional<TimePoint> time);
  void begin_group(std::string_view cgroup);
  void add_kill(const OomKill& kill, std::optional<TimePoint> time);
  OomKillCounts& counts_of(OomScope scope, const std::string& unit);

  std::map<OomScope, std::uint64_t> events_;
  std::map<Key, OomKillCounts> kills_;
  std::optional<TimePoint> first_host_;
  Current current_;
};

}  // namespace apu
