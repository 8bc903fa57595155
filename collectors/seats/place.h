#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "exporter/result.h"

namespace apu {

/// Resolves "\\x2d", by which systemd writes characters that a unit's name may not hold.
std::string unescape_unit(std::string_view text);

/// A unit's name as labels have it: without ".service".
std::string_view without_service(std::string_view unit);

/// What kind of thing holds the processes of a seat.
enum class SeatKind {
  kSystemUnit,    ///< a unit of PID 1
  kUserUnit,      ///< a unit of a user's manager
  kContainer,     ///< Docker, containerd, CRI-O, Podman, Kubernetes
  kLoginSession,  ///< a process that somebody started by hand
  kOther,         ///< a cgroup of no form that is known
};

/// A seat's cgroup, read from the path alone.
struct SeatPlace {
  SeatKind kind = SeatKind::kOther;
  std::string cgroup;  ///< the seat's own directory: that of the unit or container, not below it
  std::string unit;    ///< without ".service"; empty where none holds it
  std::string user;    ///< id of the user whose manager has the unit, or whose session it is
  std::string container_id;  ///< the whole id
  std::string pod_uid;       ///< with dashes

  /// Whether all that stands in the cgroup is the seat's: not in a session, nor in a slice.
  [[nodiscard]] bool owns_cgroup() const;

  /// The seat's name where the path tells it: the unit, "UID/unit", the first 12 characters of the
  /// container's id, the last part of another path. Of a login session the command is wanted:
  /// "UID/command".
  [[nodiscard]] std::string name(std::string_view command) const;
};

/// Reads a path below the cgroup root: systemd's slices, units and escapes; the names that Docker,
/// Podman, containerd and CRI-O give a container with both of their drivers; Kubernetes' QoS
/// classes and pods. A unit or container that parts itself into cgroups (delegation) is one seat.
SeatPlace parse_seat_place(std::string_view path);

/// The path in a process's unified hierarchy.
///
/// Source: proc_cgroup_show in kernel/cgroup/cgroup.c. Shape: "0::/path", " (deleted)" behind it
/// when the cgroup is gone; lines of v1 hierarchies beside it.
/// Errors: kUnsupported where there is no line "0::"; kMalformed.
Result<std::string> parse_proc_cgroup(std::string_view text);

}  // namespace apu
