#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collectors/seats/place.h"
#include "exporter/collector.h"
#include "exporter/guarded_reader.h"

namespace apu {

using ProcessKey = ProcessIdentity;

/// A process that has to do with a GPU, or stands in a unit that is a seat by its name.
struct SeatProcess {
  ProcessKey key;
  std::string command;  ///< comm
  std::string cgroup;   ///< its path in the unified hierarchy
  bool on_gpu = false;  ///< KFD knows it, or it holds a DRM client of an AMD card
};

/// One slot that serves a model.
struct Seat {
  std::string name;  ///< the `seat` label
  SeatPlace place;
  std::vector<SeatProcess> processes;  ///< oldest first; empty for a unit that has none
  /// Processes of its cgroup that procfs does not show: hidepid=, another process namespace, or one
  /// that ended just now. A seat that has some is not down.
  std::uint64_t hidden = 0;
};

/// All seats, and which of them a process is of. Immutable once it is published.
struct SeatIndex {
  std::vector<Seat> seats;   ///< by name
  std::uint64_t beyond = 0;  ///< seats that --seat.max left out

  /// nullptr for a process of no seat.
  [[nodiscard]] const Seat* find(const ProcessKey& process) const;
};

/// Forgets what `map` has of seats that are no longer in `index`.
template <typename Value>
void keep_only(const SeatIndex& index, std::map<std::string, Value>& map) {
  std::erase_if(map, [&](const auto& entry) {
    return std::none_of(index.seats.begin(), index.seats.end(),
                        [&](const Seat& seat) { return seat.name == entry.first; });
  });
}

/// Which units are seats even without a process, and how many seats there may be.
struct SeatRules {
  /// Shell patterns over units' names, with or without ".service"; case does not matter.
  std::vector<std::string> patterns;
  size_t max = 64;

  /// Units of the model servers that are common.
  static std::vector<std::string> default_patterns();

  [[nodiscard]] bool matches(std::string_view unit) const;
};

/// The rules by the options, with the patterns that are the default where none is given.
SeatRules rules_of(const SeatOptions& options);

/// Finds seats and names them. A name stays with its cgroup while that lives; of several that would
/// have the same one, those that came later get "-2", "-3".
class SeatNamer {
 public:
  explicit SeatNamer(SeatRules rules) : rules_(std::move(rules)) {}

  /// `processes` are all that may belong to a seat: those on a GPU make their cgroup one, others
  /// join it. `units` are the paths of all cgroups of units, populated or not.
  /// `hidden`: how many processes of a cgroup are not shown.
  std::shared_ptr<const SeatIndex> update(const std::vector<SeatProcess>& processes,
                                          const std::vector<std::string>& units,
                                          const std::map<std::string, std::uint64_t>& hidden = {});

 private:
  /// What makes a seat the same one from pass to pass: its cgroup; in a login session, which holds
  /// anything that a user starts, the command too.
  using SeatKey = std::pair<std::string, std::string>;

  using Candidates = std::map<SeatKey, Seat>;

  [[nodiscard]] Candidates find(const std::vector<SeatProcess>& processes,
                                const std::vector<std::string>& units) const;
  std::string name_of(const SeatKey& key, const Seat& seat);
  void forget_all_but(const Candidates& seats);

  SeatRules rules_;
  std::map<SeatKey, std::string> names_;  // of seats that live
};

}  // namespace apu
