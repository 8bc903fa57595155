#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "collectors/units/manager.h"
#include "collectors/units/seat_units.h"
#include "exporter/collector.h"

namespace apu {

/// The facts of a pass.
struct UnitsFacts {
  std::vector<SeatUnit> units;
  std::uint64_t omitted = 0;  ///< units beyond --seat.max
};

Families to_families(const UnitsFacts& facts);

std::span<const MetricInfo> units_metrics();

/// What the service managers say of the units that are seats: those of the newest seat index, and
/// those that --seat.pattern names, running or not. Source "dbus" is the system's manager, without
/// which there are no facts; "dbus_user" those of users who have seats.
std::unique_ptr<Collector> make_units_collector(const CollectorContext& context);

/// With other managers, for tests.
std::unique_ptr<Collector> make_units_collector(const CollectorContext& context,
                                                std::unique_ptr<ServiceManagers> managers);

}  // namespace apu
