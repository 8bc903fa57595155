#include "collectors/kernel_log/unit_name.h"

#include "collectors/seats/place.h"

namespace apu {

std::string unit_of_cgroup(std::string_view path) {
  if (path.ends_with('>')) {
    return {};  // a pager cut it off
  }
  const SeatPlace place = parse_seat_place(path);
  if (place.kind == SeatKind::kContainer || place.kind == SeatKind::kUserUnit) {
    return place.name({});
  }
  return place.unit;
}

}  // namespace apu
