#include <array>
#include <limits>
#include <optional>
#include <set>
#include <string>

#include "collectors/units/units.h"

namespace apu {
namespace {

using prometheus::MetricType;

constexpr MetricInfo kRestarts{
    "apu_seat_unit_restarts_total", MetricType::Counter, "seat,unit",
    "Restarts of the seat's unit by Restart=, since it was last started by hand (D-Bus NRestarts)"};
constexpr MetricInfo kActive{
    "apu_seat_unit_active_state", MetricType::Gauge, "seat,unit,state",
    "1 for the state that the seat's unit is in, 0 for the others; a unit that is not loaded is "
    "inactive (D-Bus ActiveState)"};
constexpr MetricInfo kActiveSince{
    "apu_seat_unit_active_timestamp_seconds", MetricType::Gauge, "seat,unit",
    "When the seat's unit last became active (D-Bus ActiveEnterTimestamp)"};
constexpr MetricInfo kEnabled{
    "apu_seat_unit_enabled", MetricType::Gauge, "seat,unit",
    "1 if the seat's unit is enabled, so that it starts at boot, 0 if it is disabled or masked; "
    "absent where it can be neither (D-Bus UnitFileState)"};
constexpr MetricInfo kStopTimeout{
    "apu_seat_unit_stop_timeout_seconds", MetricType::Gauge, "seat,unit",
    "Time that the seat's unit has to stop before it is killed; +Inf for no limit (D-Bus "
    "TimeoutStopUSec)"};
constexpr MetricInfo kStopTimeoutShort{
    "apu_seat_unit_stop_timeout_short", MetricType::Gauge, "seat,unit",
    "1 if the stop timeout is under 120 s, as a seat that holds a model needs tens of seconds to "
    "stop, else 0 (D-Bus TimeoutStopUSec)"};
constexpr MetricInfo kNeedReload{
    "apu_seat_unit_need_daemon_reload", MetricType::Gauge, "seat,unit",
    "1 if files of the seat's unit changed after they were loaded, else 0 (D-Bus "
    "NeedDaemonReload)"};
constexpr MetricInfo kPullsIn{
    "apu_seat_unit_pulls_in_seat", MetricType::Gauge, "seat,unit",
    "1 if starting the seat's unit starts another seat, else 0 (D-Bus Wants, Requires, BindsTo)"};
constexpr MetricInfo kLeftBehind{
    "apu_seat_unit_inactive_but_populated", MetricType::Gauge, "seat,unit",
    "1 while the seat's unit is inactive or failed and processes are left in its cgroup, else 0 "
    "(D-Bus ActiveState, cgroup.procs)"};
constexpr MetricInfo kLimit{
    "apu_seat_unit_memory_limit_bytes", MetricType::Gauge, "seat,unit,limit",
    "Memory limits and protections of the seat's unit as its manager has them: min, low, high, "
    "max, swap_max; +Inf where there is no limit (D-Bus MemoryMin ...)"};
constexpr MetricInfo kLimitDiffers{
    "apu_seat_unit_memory_limit_differs", MetricType::Gauge, "seat,unit,limit",
    "1 if the cgroup of the seat's unit has another limit than its manager, else 0; absent for a "
    "min or low that the unit does not set (D-Bus MemoryMin ..., memory.*)"};
constexpr MetricInfo kOmitted{"apu_seat_units_omitted", MetricType::Gauge, "",
                              "Units of seats beyond --seat.max, which have no series (D-Bus)"};
constexpr std::array kMetrics{
    kRestarts,   kActive,  kActiveSince, kEnabled, kStopTimeout,  kStopTimeoutShort,
    kNeedReload, kPullsIn, kLeftBehind,  kLimit,   kLimitDiffers, kOmitted};

constexpr std::array kStates{"active", "reloading",  "inactive",
                             "failed", "activating", "deactivating"};
constexpr const char* kOtherState = "other";

void add_active_state(MetricWriter& metrics, const SeatUnit& unit) {
  const auto& active = unit.facts.active_state;
  if (!active) {
    return;
  }
  bool known = false;
  for (const char* state : kStates) {
    known = known || *active == state;
    metrics.set(kActive, {unit.seat, unit.unit, state}, *active == state ? 1 : 0);
  }
  metrics.set(kActive, {unit.seat, unit.unit, kOtherState}, known ? 0 : 1);
}

/// Absent where an [Install] section has no say: static, generated, transient, indirect.
std::optional<bool> is_enabled(const UnitFacts& facts) {
  if (!facts.unit_file_state) {
    return std::nullopt;
  }
  const std::string& state = *facts.unit_file_state;
  if (state == "enabled" || state == "enabled-runtime") {
    return true;
  }
  const std::set<std::string> off{"disabled", "masked", "masked-runtime", "linked",
                                  "linked-runtime"};
  return off.contains(state) ? std::optional(false) : std::nullopt;
}

void add_limits(MetricWriter& metrics, const SeatUnit& unit) {
  for (const auto& [name, limit] : unit.facts.limits) {
    metrics.set(
        kLimit, {unit.seat, unit.unit, name},
        limit.bytes ? static_cast<double>(*limit.bytes) : std::numeric_limits<double>::infinity());
  }
  for (const auto& [name, differs] : unit.limit_differs) {
    metrics.set(kLimitDiffers, {unit.seat, unit.unit, name}, differs ? 1 : 0);
  }
}

}  // namespace

Families to_families(const UnitsFacts& facts) {
  MetricWriter metrics;
  for (const SeatUnit& unit : facts.units) {
    const MetricWriter::LabelValues labels{unit.seat, unit.unit};
    metrics.set(kRestarts, labels, unit.facts.restarts);
    add_active_state(metrics, unit);
    if (unit.facts.active_since) {
      metrics.set(kActiveSince, labels, to_unix_seconds(*unit.facts.active_since));
    }
    metrics.set(kEnabled, labels, is_enabled(unit.facts));
    metrics.set(kStopTimeout, labels, unit.facts.stop_timeout);
    metrics.set(kStopTimeoutShort, labels, unit.stop_timeout_short);
    metrics.set(kNeedReload, labels, unit.facts.need_daemon_reload);
    metrics.set(kPullsIn, labels, unit.pulls_in_seat);
    metrics.set(kLeftBehind, labels, unit.inactive_but_populated);
    add_limits(metrics, unit);
  }
  metrics.set(kOmitted, static_cast<double>(facts.omitted));
  return metrics.take();
}

std::span<const MetricInfo> units_metrics() {
  return kMetrics;
}

}  // namespace apu
