#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/cgroup/cgroup.h"
#include "collectors/seats/index.h"
#include "collectors/units/unit_facts.h"

namespace apu {

/// A pattern for a service manager, which knows shell patterns over escaped names, and in which
/// case matters: it matches the name of every service that `pattern` of --seat.pattern matches, and
/// others.
std::string manager_pattern(std::string_view pattern);

/// The name by which the manager of `user` ("": PID 1) knows the unit that holds a seat's cgroup;
/// nullopt where the seat is none of its units, as in a container that has managers of its own.
std::optional<std::string> unit_id(const SeatPlace& place, std::string_view user);

/// What one manager has.
struct ManagerListing {
  std::string user;
  std::vector<LoadedUnit> loaded;
  std::vector<UnitFile> files;
};

/// A unit that is a seat.
struct ChosenUnit {
  std::string seat;  ///< the seat's name
  std::string user;
  std::string id;
  std::optional<LoadedUnit> loaded;            ///< absent: not in memory
  std::optional<std::string> unit_file_state;  ///< by its file
  std::optional<std::string> fragment_path;    ///< by its file
};

struct Choice {
  std::vector<ChosenUnit> units;
  std::uint64_t omitted = 0;  ///< those beyond rules.max
};

/// The units that are seats: those of the index, which may be null, and those that `rules` name,
/// but not the exporter's `own`. Templates and aliases are no units, and what others name without
/// there being a file is none.
Choice choose_units(std::vector<ManagerListing> listings, const SeatIndex* index,
                    const SeatRules& rules, const SeatPlace& own);

/// What the cgroups had, and when at the latest it was so.
struct CgroupInput {
  const CgroupFacts* facts = nullptr;
  std::chrono::steady_clock::time_point taken;
};

/// A seat's unit, and what follows from its facts.
struct SeatUnit {
  std::string seat;  ///< the seat's name
  std::string unit;  ///< the `unit` label
  UnitFacts facts;
  /// Less than kMinStopTimeout: a seat that holds a model needs tens of seconds to stop.
  std::optional<bool> stop_timeout_short;
  /// Starting it starts another seat, which it names in Wants=, Requires= or BindsTo=.
  std::optional<bool> pulls_in_seat;
  /// Inactive or failed, and processes are left behind in its cgroup.
  std::optional<bool> inactive_but_populated;
  /// Whether the cgroup has another limit than the manager: min, low (where the unit sets one),
  /// high, max, swap_max.
  std::map<std::string, bool> limit_differs;
};

constexpr double kMinStopTimeout = 120;  // seconds

/// Derives what follows from the facts of all units that are seats. `chosen` and `facts` go
/// together.
std::vector<SeatUnit> derive(const std::vector<ChosenUnit>& chosen, std::vector<UnitFacts> facts,
                             const CgroupInput& cgroup);

}  // namespace apu
