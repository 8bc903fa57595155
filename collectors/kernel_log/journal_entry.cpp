#include "collectors/kernel_log/journal_entry.h"

#include <algorithm>
#include <chrono>

#include "collectors/kernel_log/journal_lane.h"
#include "exporter/text.h"

namespace apu {
namespace {

constexpr std::string_view kManagerScope = "init.scope";

// The kernel's stamps are not quite in order: so far behind a bound nothing follows.
constexpr std::chrono::seconds kStampSlack{1};

bool is(const JournalLane& lane, const char* field, std::string_view value) {
  return lane.field(field) == value;
}

std::optional<int> level_of(const JournalLane& lane) {
  const auto text = lane.field("PRIORITY");
  return text ? parse_number<int>(*text) : std::nullopt;
}

/// The user whose manager wrote the entry. What runs below that manager has the same unit, but is
/// in a unit of its own there.
std::optional<std::string> managing_user(const JournalLane& lane) {
  const auto unit = lane.field("_SYSTEMD_UNIT");
  const auto user = unit ? user_of_manager_unit(*unit) : std::nullopt;
  if (!user || user->empty()) {
    return std::nullopt;
  }
  std::string id(*user);  // the next field may take its memory
  const auto scope = lane.field("_SYSTEMD_USER_UNIT");
  const bool manager = !scope || *scope == kManagerScope;
  return manager && is(lane, "SYSLOG_IDENTIFIER", "systemd") ? std::optional(id) : std::nullopt;
}

TimePoint time_of(const JournalLane& lane) {
  return TimePoint(lane.realtime());
}

}  // namespace

std::optional<std::string_view> user_of_manager_unit(std::string_view unit) {
  constexpr std::string_view kEnd = ".service";
  if (!consume(unit, "user@") || !unit.ends_with(kEnd)) {
    return std::nullopt;
  }
  unit.remove_suffix(kEnd.size());
  const bool number = !unit.empty() && std::all_of(unit.begin(), unit.end(),
                                                   [](char c) { return c >= '0' && c <= '9'; });
  return number ? std::optional(unit) : std::nullopt;
}

std::optional<std::chrono::microseconds> kernel_stamp(const JournalLane& lane) {
  const auto text = lane.field("_SOURCE_MONOTONIC_TIMESTAMP");
  const auto stamp = text ? parse_number<std::int64_t>(*text) : std::nullopt;
  return stamp && *stamp >= 0 ? std::optional(std::chrono::microseconds(*stamp)) : std::nullopt;
}

Side side_of(const JournalLane& lane, const JournalQuery& query) {
  // The kernel's stamp is not later than the journal's, and costs more to get.
  if (!query.after && (!query.until || lane.stamp() < *query.until)) {
    return Side::kInside;
  }
  const bool kernel = lane.content() == LaneContent::kKernel;
  const auto stamp = kernel ? kernel_stamp(lane).value_or(lane.stamp()) : lane.stamp();
  if (query.after && stamp <= *query.after) {
    return Side::kOutside;
  }
  if (!query.until || stamp < *query.until) {
    return Side::kInside;
  }
  if (stamp == *query.until) {
    return Side::kAtEnd;
  }
  return stamp > *query.until + kStampSlack ? Side::kFarBehind : Side::kOutside;
}

LogRecord to_kernel_record(const JournalLane& lane, std::string_view message) {
  LogRecord record;
  const auto facility = lane.field("SYSLOG_FACILITY");
  record.origin = !facility || *facility == "0" ? Origin::kKernel : Origin::kUserspace;
  record.level = level_of(lane);
  record.since_boot = kernel_stamp(lane);
  record.time = time_of(lane);
  record.message = message;
  return record;
}

LogRecord to_other_record(const JournalLane& lane, std::string_view message, std::string& user) {
  LogRecord record;
  record.time = time_of(lane);
  record.message = message;
  if (is(lane, "_TRANSPORT", "driver")) {
    record.origin = Origin::kJournald;
  } else if (is(lane, "_TRANSPORT", "journal") && is(lane, "_PID", "1")) {
    record.origin = Origin::kServiceManager;
  } else if (const auto id = managing_user(lane); id && is(lane, "_TRANSPORT", "journal")) {
    user = *id;
    record.origin = Origin::kServiceManager;
    record.user = user;
  }
  return record;
}

}  // namespace apu
