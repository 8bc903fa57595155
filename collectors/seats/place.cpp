#include "collectors/seats/place.h"

#include <algorithm>
#include <vector>

#include "exporter/text.h"

namespace apu {
namespace {

constexpr size_t kContainerIdLength = 64;
constexpr size_t kShortIdLength = 12;

bool is_hex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

std::optional<unsigned> hex_digit(char c) {
  return is_hex(c) ? std::optional<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10) : std::nullopt;
}

/// A part of a path, and where it ends in it.
struct Part {
  std::string_view name;
  size_t end = 0;
};

std::vector<Part> parts_of(std::string_view path) {
  std::vector<Part> parts;
  size_t at = 0;
  while (at < path.size()) {
    const size_t end = std::min(path.find('/', at), path.size());
    if (end > at) {
      parts.push_back({path.substr(at, end - at), end});
    }
    at = end + 1;
  }
  return parts;
}

bool take_suffix(std::string_view& text, std::string_view suffix) {
  if (!text.ends_with(suffix) || text.size() == suffix.size()) {
    return false;
  }
  text.remove_suffix(suffix.size());
  return true;
}

/// "docker-ID.scope", "cri-containerd-ID.scope", "crio-ID", "libpod-ID.scope/container", "ID";
/// "kubepods-POD.slice:cri-containerd:ID", which containerd makes of systemd's names without
/// systemd.
std::string_view container_id_of(std::string_view part) {
  take_suffix(part, ".scope");
  if (part.size() < kContainerIdLength) {
    return {};
  }
  const std::string_view id = part.substr(part.size() - kContainerIdLength);
  const char before = part.size() == kContainerIdLength ? '-' : part[part.size() - id.size() - 1];
  return (before == '-' || before == ':') && std::all_of(id.begin(), id.end(), is_hex)
             ? id
             : std::string_view();
}

/// "kubepods-besteffort-pod1111_2222.slice", "pod1111-2222": the pod's uid with dashes.
std::string pod_uid_of(std::string_view part) {
  part = part.substr(0, part.find(':'));
  take_suffix(part, ".slice");
  const size_t pod = part.rfind("pod");
  if (pod == std::string_view::npos || (pod > 0 && part[pod - 1] != '-')) {
    return {};
  }
  std::string uid(part.substr(pod + 3));
  std::replace(uid.begin(), uid.end(), '_', '-');
  const bool fits =
      uid.size() >= kContainerIdLength / 2 &&
      std::all_of(uid.begin(), uid.end(), [](char c) { return is_hex(c) || c == '-'; });
  return fits ? uid : std::string();
}

/// The id in "user@1000.service", "user-1000.slice".
std::string_view user_of(std::string_view part, std::string_view before, std::string_view after) {
  return consume(part, before) && take_suffix(part, after) ? part : std::string_view();
}

/// Whether a unit and not a container is what an operator knows: Podman with the unit's own cgroup
/// (Quadlet) puts the container's processes beside its monitor.
bool is_payload(std::string_view part) {
  return part.starts_with("libpod-payload-");
}

/// Takes the outermost unit of a path, which is the seat unless a container is found.
void take_unit(SeatPlace& place, std::string_view name, std::string_view cgroup) {
  const bool session = name.starts_with("session-") && name.ends_with(".scope") &&
                       !place.user.empty() && place.kind != SeatKind::kUserUnit;
  place.kind = session                             ? SeatKind::kLoginSession
               : place.kind == SeatKind::kUserUnit ? SeatKind::kUserUnit
                                                   : SeatKind::kSystemUnit;
  place.unit = unescape_unit(without_service(name));
  place.cgroup = cgroup;
}

/// Takes a container: of several that hold each other the innermost is the seat.
void take_container(SeatPlace& place, std::string_view name, std::string_view id,
                    std::string_view cgroup) {
  place.container_id = id;
  if (place.unit.empty() || !is_payload(name)) {
    place.kind = SeatKind::kContainer;
    place.unit.clear();
    place.cgroup = cgroup;
  }
}

}  // namespace

std::string unescape_unit(std::string_view text) {
  std::string plain;
  while (!text.empty()) {
    const auto high = text.size() >= 4 ? hex_digit(text[2]) : std::nullopt;
    const auto low = text.size() >= 4 ? hex_digit(text[3]) : std::nullopt;
    if (text.starts_with("\\x") && high && low) {
      plain += static_cast<char>(*high * 16 + *low);
      text.remove_prefix(4);
    } else {
      plain += text[0];
      text.remove_prefix(1);
    }
  }
  return plain;
}

std::string_view without_service(std::string_view unit) {
  take_suffix(unit, ".service");
  return unit;
}

bool SeatPlace::owns_cgroup() const {
  if (kind == SeatKind::kOther) {
    return cgroup != "/" && !cgroup.empty() && !cgroup.ends_with(".slice");
  }
  return kind != SeatKind::kLoginSession;
}

std::string SeatPlace::name(std::string_view command) const {
  switch (kind) {
    case SeatKind::kSystemUnit:
      return unit;
    case SeatKind::kUserUnit:
      return user + "/" + unit;
    case SeatKind::kContainer:
      return container_id.substr(0, kShortIdLength);
    case SeatKind::kLoginSession:
      return user + "/" + std::string(command);
    case SeatKind::kOther:
      break;
  }
  const size_t slash = cgroup.rfind('/');
  const std::string last = slash == std::string::npos ? cgroup : cgroup.substr(slash + 1);
  return last.empty() ? std::string(command) : last;
}

SeatPlace parse_seat_place(std::string_view path) {
  SeatPlace place;
  place.cgroup = path;
  bool placed = false;
  for (const Part& part : parts_of(path)) {
    const std::string_view name = part.name;
    if (std::string uid = pod_uid_of(name); !uid.empty()) {
      place.pod_uid = std::move(uid);
    }
    if (const auto id = container_id_of(name); !id.empty()) {
      take_container(place, name, id, path.substr(0, part.end));
      placed = true;
    } else if (placed) {
      continue;  // a unit or a container that parts itself is one seat
    } else if (const auto slice = user_of(name, "user-", ".slice"); !slice.empty()) {
      place.user = slice;
    } else if (const auto manager = user_of(name, "user@", ".service"); !manager.empty()) {
      place.user = manager;
      place.kind = SeatKind::kUserUnit;
    } else if (name.ends_with(".service") || name.ends_with(".scope")) {
      take_unit(place, name, path.substr(0, part.end));
      placed = true;
    }
  }
  if (!placed) {  // a process in a slice itself, or a manager's own
    place.kind = SeatKind::kOther;
  }
  return place;
}

Result<std::string> parse_proc_cgroup(std::string_view text) {
  constexpr std::string_view kDeleted = " (deleted)";
  std::optional<std::string> path;
  for_each_line(text, [&](std::string_view line) {
    if (consume(line, "0::") && !path) {
      take_suffix(line, kDeleted);
      path = line;
    }
  });
  if (!path) {
    return Error{ErrorKind::kUnsupported, "no unified hierarchy (line 0::)"};
  }
  if (!path->starts_with('/')) {
    return Error{ErrorKind::kMalformed, "no path in '0::" + *path + "'"};
  }
  return *std::move(path);
}

}  // namespace apu
