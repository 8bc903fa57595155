#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/cgroup/cgroup_memory.h"
#include "collectors/seat_config/server_config.h"
#include "collectors/units/manager.h"
#include "exporter/clock.h"

namespace apu {

/// What a service manager says of one unit, in its own terms. Absent: not asked, as for a unit that
/// is not loaded; not known to this version, or to units of this kind; or of a type that it never
/// has.
struct UnitFacts {
  std::string id;                           ///< Id=, escaped
  std::string user;                         ///< id of the user whose manager has it; empty: PID 1
  std::optional<std::string> load_state;    ///< absent: not loaded
  std::optional<std::string> active_state;  ///< "inactive" for one that is not loaded
  std::optional<std::string> sub_state;     ///< "running", "dead", ...
  std::optional<std::string> unit_file_state;  ///< "enabled", ...; absent: it has no file
  std::optional<std::string> fragment_path;    ///< the unit file
  std::optional<std::string> control_group;    ///< absent: it has none now
  std::optional<std::string> run_as;           ///< User=; empty where it is not set
  std::optional<std::string> group;            ///< Group=; empty where it is not set
  std::optional<std::vector<std::string>> supplementary_groups;  ///< SupplementaryGroups=
  std::optional<std::string> restart;  ///< Restart=: "no", "on-failure", ...
  std::optional<std::string> result;   ///< of its last run: "success", "timeout", ...
  std::optional<std::vector<std::string>> drop_in_paths;
  std::optional<std::vector<std::string>> wants;        ///< Wants=
  std::optional<std::vector<std::string>> needs;        ///< Requires=, a word that C++ took
  std::optional<std::vector<std::string>> binds_to;     ///< BindsTo=
  std::optional<std::vector<std::string>> wanted_by;    ///< units that name it in Wants=
  std::optional<std::vector<std::string>> required_by;  ///< likewise in Requires=
  std::optional<ServerArguments> server;                ///< what ExecStart= tells a model server
  std::optional<std::uint64_t> restarts;      ///< NRestarts, since it was last started by hand
  std::optional<std::uint64_t> main_pid;      ///< absent: it has none now
  std::optional<bool> need_daemon_reload;     ///< its files changed after they were loaded
  std::optional<double> stop_timeout;         ///< TimeoutStopUSec, seconds; may be infinite
  std::map<std::string, MemoryLimit> limits;  ///< min, low, high, max, swap_max, as in cgroups
  std::optional<MemoryLimit> memlock;         ///< LimitMEMLOCK
  std::optional<TimePoint> active_since;      ///< absent: it never was
  std::optional<std::chrono::microseconds>
      inactive_since;  ///< CLOCK_MONOTONIC; 0: from the start on
};

/// Properties of the interface org.freedesktop.systemd1.Unit that parse_unit knows.
std::span<const std::string_view> unit_properties();

/// The same of org.freedesktop.systemd1.Service, and of the interfaces of other kinds of units,
/// which have some of them.
std::span<const std::string_view> service_properties();

struct ParsedUnit {
  UnitFacts facts;
  std::vector<std::string> problems;  ///< properties of a type that they never have
};

/// Reads the properties of a unit.
///
/// Source: org.freedesktop.systemd1(5): times in microseconds, sizes in bytes, and 2^64-1 for none.
ParsedUnit parse_unit(const std::string& user, const LoadedUnit& unit,
                      const Properties& properties);

}  // namespace apu
