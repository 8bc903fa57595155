#include "collectors/kernel_log/record.h"

#include <algorithm>
#include <array>
#include <ctime>

#include "exporter/text.h"

namespace apu {
namespace {

using std::chrono::microseconds;

constexpr std::uint64_t kLevels = 8;  // PRIO is facility * 8 + level; the kernel's facility is 0
constexpr std::uint64_t kMicrosPerSecond = 1'000'000;

// No host runs for a century. Larger stamps would not fit the clock's type.
constexpr std::uint64_t kMaxStampSeconds = 100ULL * 366 * 24 * 3600;

// --- /dev/kmsg

std::optional<LogRecord> parse_kmsg(std::string_view line) {
  const size_t semicolon = line.find(';');
  if (semicolon == std::string_view::npos) {
    return std::nullopt;
  }
  std::string_view head = line.substr(0, semicolon);
  const auto priority = take_unsigned(head);
  const bool first = consume(head, ",");
  const auto sequence = take_unsigned(head);
  const bool second = consume(head, ",");
  const auto stamp = take_unsigned(head);
  const bool flagged = head.starts_with(',');  // then "-" or "c", then fields of newer kernels
  if (!priority || !sequence || !stamp || !first || !second || !flagged ||
      *stamp > kMaxStampSeconds * kMicrosPerSecond) {
    return std::nullopt;
  }
  LogRecord record;
  record.origin = *priority < kLevels ? Origin::kKernel : Origin::kUserspace;
  record.sequence = sequence;
  record.since_boot = microseconds(*stamp);
  record.message = line.substr(semicolon + 1);
  return record;
}

// --- "[    5.678901] text"

/// Removes a leading "[seconds.micros] " from `text` and returns its stamp.
std::optional<microseconds> take_bracket_stamp(std::string_view& text) {
  std::string_view rest = text;
  if (!consume(rest, "[")) {
    return std::nullopt;
  }
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  const auto seconds = take_unsigned(rest);
  const bool point = consume(rest, ".");
  const std::string_view before = rest;
  const auto fraction = take_unsigned(rest);
  constexpr size_t kFractionDigits = 6;
  const bool whole = before.size() - rest.size() == kFractionDigits;
  if (!seconds || !point || !fraction || !whole || !consume(rest, "]") ||
      *seconds > kMaxStampSeconds) {
    return std::nullopt;
  }
  consume(rest, " ");
  text = rest;
  return microseconds(*seconds * kMicrosPerSecond + *fraction);
}

std::optional<LogRecord> parse_dmesg(std::string_view line) {
  std::string_view rest = line;
  std::uint64_t priority = 0;
  if (consume(rest, "<")) {
    priority = take_unsigned(rest).value_or(0);
    if (!consume(rest, ">")) {
      return std::nullopt;
    }
  }
  const auto stamp = take_bracket_stamp(rest);
  if (!stamp) {
    return std::nullopt;
  }
  LogRecord record;
  record.origin = priority < kLevels ? Origin::kKernel : Origin::kUserspace;
  record.since_boot = stamp;
  record.message = rest;
  return record;
}

// --- syslog files

std::optional<int> take_month(std::string_view& text) {
  constexpr std::array<std::string_view, 12> kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  for (size_t month = 0; month < kMonths.size(); ++month) {
    if (consume(text, kMonths.at(month))) {
      return static_cast<int>(month);
    }
  }
  return std::nullopt;
}

/// Removes a number up to `max` and then `separator`; -1 if that is not what stands there.
int take_up_to(unsigned max, std::string_view& text, std::string_view separator) {
  const auto number = take_unsigned(text);
  return number && *number <= max && consume(text, separator) ? static_cast<int>(*number) : -1;
}

/// Removes "18:18:52" and returns whether it was there; a second of 60 is a leap second.
bool take_time_of_day(std::string_view& text, std::tm& calendar) {
  calendar.tm_hour = take_up_to(23, text, ":");
  calendar.tm_min = take_up_to(59, text, ":");
  calendar.tm_sec = take_up_to(60, text, "");
  return calendar.tm_hour >= 0 && calendar.tm_min >= 0 && calendar.tm_sec >= 0;
}

int year_of(TimePoint time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm calendar{};
  ::localtime_r(&seconds, &calendar);
  return calendar.tm_year;
}

/// The newest time up to `latest` that `calendar`, local time without a year, can be: one of
/// December if `latest` is in January, one of the last leap year for February 29.
std::optional<TimePoint> newest_not_after(TimePoint latest, const std::tm& calendar) {
  constexpr int kYearsBetweenLeapDays = 8;
  const int newest_year = year_of(latest);
  for (int year = newest_year; year >= newest_year - kYearsBetweenLeapDays; --year) {
    std::tm dated = calendar;
    dated.tm_year = year;
    dated.tm_isdst = -1;
    const auto time = std::chrono::system_clock::from_time_t(std::mktime(&dated));
    if (dated.tm_mon == calendar.tm_mon && time <= latest) {
      return time;
    }
  }
  return std::nullopt;
}

/// "Jul  4 18:18:52 ", local time without a year.
std::optional<TimePoint> take_traditional_stamp(std::string_view& text, TimePoint now) {
  std::string_view rest = text;
  std::tm calendar{};
  const auto month = take_month(rest);
  if (!month || !consume(rest, " ")) {
    return std::nullopt;
  }
  consume(rest, " ");  // days before the 10th are padded
  calendar.tm_mon = *month;
  calendar.tm_mday = take_up_to(31, rest, " ");
  if (calendar.tm_mday < 1 || !take_time_of_day(rest, calendar) || !consume(rest, " ")) {
    return std::nullopt;
  }
  const auto time = newest_not_after(now + std::chrono::hours(24), calendar);
  if (time) {
    text = rest;
  }
  return time;
}

/// Removes "Z" or "+02:00" and returns the offset from UTC.
std::optional<std::chrono::minutes> take_zone(std::string_view& text) {
  if (consume(text, "Z")) {
    return std::chrono::minutes(0);
  }
  const int sign = text.starts_with('-') ? -1 : 1;
  if (!consume(text, "+") && !consume(text, "-")) {
    return std::nullopt;
  }
  const int hours = take_up_to(23, text, ":");
  const int minutes = take_up_to(59, text, "");
  if (hours < 0 || minutes < 0) {
    return std::nullopt;
  }
  return sign * (std::chrono::hours(hours) + std::chrono::minutes(minutes));
}

/// Removes ".123456" and returns it; zero if there is no fraction.
std::chrono::nanoseconds take_fraction(std::string_view& text) {
  constexpr std::uint64_t kNanosPerSecond = 1'000'000'000;
  std::uint64_t nanos = 0;
  if (consume(text, ".")) {
    std::uint64_t unit = kNanosPerSecond;
    while (!text.empty() && text[0] >= '0' && text[0] <= '9') {
      unit /= 10;
      nanos += unit * static_cast<std::uint64_t>(text[0] - '0');
      text.remove_prefix(1);
    }
  }
  return std::chrono::nanoseconds(nanos);
}

/// "2026-07-04T18:18:52.123456+00:00 ".
std::optional<TimePoint> take_rfc3339_stamp(std::string_view& text) {
  std::string_view rest = text;
  std::tm calendar{};
  const auto year = take_unsigned(rest);
  if (!year || *year < 1970 || *year > 2200 || !consume(rest, "-")) {  // the clock ends in 2262
    return std::nullopt;
  }
  calendar.tm_year = static_cast<int>(*year) - 1900;
  calendar.tm_mon = take_up_to(12, rest, "-") - 1;
  calendar.tm_mday = take_up_to(31, rest, "T");
  const bool timed = take_time_of_day(rest, calendar);
  const std::chrono::nanoseconds fraction = take_fraction(rest);
  const auto zone = take_zone(rest);
  if (calendar.tm_mon < 0 || calendar.tm_mday < 1 || !timed || !zone || !consume(rest, " ")) {
    return std::nullopt;
  }
  text = rest;
  return std::chrono::system_clock::from_time_t(::timegm(&calendar)) - *zone + fraction;
}

std::optional<LogRecord> parse_syslog(std::string_view line, TimePoint now) {
  std::string_view rest = line;
  LogRecord record;
  record.time = take_rfc3339_stamp(rest);
  if (!record.time) {
    record.time = take_traditional_stamp(rest, now);
  }
  if (!record.time || take_field(rest).empty()) {  // the host
    return std::nullopt;
  }
  consume(rest, " ");
  if (consume(rest, "kernel: ")) {
    record.origin = Origin::kKernel;
    record.since_boot = take_bracket_stamp(rest);
  }
  record.message = rest;
  return record;
}

}  // namespace

ParsedLine parse_log_line(std::string_view line, TimePoint now) {
  if (line.starts_with(' ')) {
    return {LineKind::kContinuation, {}};
  }
  if (const auto record = parse_kmsg(line)) {
    return {LineKind::kRecord, *record};
  }
  if (const auto record = parse_dmesg(line)) {
    return {LineKind::kRecord, *record};
  }
  if (const auto record = parse_syslog(line, now)) {
    return {LineKind::kRecord, *record};
  }
  return {};
}

std::optional<TimePoint> resolve_time(const LogRecord& record,
                                      const std::optional<TimePoint>& boot_time) {
  return record.since_boot && boot_time ? *boot_time + *record.since_boot : record.time;
}

}  // namespace apu
