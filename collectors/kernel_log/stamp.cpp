#include "collectors/kernel_log/stamp.h"

#include <algorithm>
#include <array>
#include <ctime>

#include "exporter/text.h"

namespace apu {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

constexpr std::uint64_t kMicrosPerSecond = 1'000'000;

// --- pieces

/// Removes a number up to `max` and then `separator`; -1 if that is not what stands there.
int take_up_to(unsigned max, std::string_view& text, std::string_view separator) {
  const auto number = take_unsigned(text);
  return number && *number <= max && consume(text, separator) ? static_cast<int>(*number) : -1;
}

/// Removes ".123456" or ",123456" and returns it; zero if there is no fraction.
nanoseconds take_fraction(std::string_view& text) {
  constexpr std::uint64_t kNanosPerSecond = 1'000'000'000;
  std::uint64_t nanos = 0;
  if (consume(text, ".") || consume(text, ",")) {
    std::uint64_t unit = kNanosPerSecond;
    while (!text.empty() && text[0] >= '0' && text[0] <= '9') {
      unit /= 10;
      nanos += unit * static_cast<std::uint64_t>(text[0] - '0');
      text.remove_prefix(1);
    }
  }
  return nanoseconds(nanos);
}

/// Removes "18:18:52" into `calendar`; a second of 60 is a leap second.
bool take_time_of_day(std::string_view& text, std::tm& calendar) {
  calendar.tm_hour = take_up_to(23, text, ":");
  calendar.tm_min = take_up_to(59, text, ":");
  calendar.tm_sec = take_up_to(60, text, "");
  return calendar.tm_hour >= 0 && calendar.tm_min >= 0 && calendar.tm_sec >= 0;
}

/// Removes a year into `calendar`. The clock ends in 2262.
bool take_year(std::string_view& text, std::tm& calendar) {
  constexpr int kTmYears = 1900;
  const auto year = take_unsigned(text);
  if (!year || *year < 1970 || *year > 2200) {
    return false;
  }
  calendar.tm_year = static_cast<int>(*year) - kTmYears;
  return true;
}

/// Removes "YYYY-MM-DD" into `calendar`.
bool take_date(std::string_view& text, std::tm& calendar) {
  if (!take_year(text, calendar) || !consume(text, "-")) {
    return false;
  }
  calendar.tm_mon = take_up_to(12, text, "-") - 1;
  calendar.tm_mday = take_up_to(31, text, "");
  return calendar.tm_mon >= 0 && calendar.tm_mday >= 1;
}

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || static_cast<unsigned char>(c) >= 0x80;
}

/// Removes a word of letters.
std::string_view take_word(std::string_view& text) {
  const auto end = std::find_if_not(text.begin(), text.end(), is_letter);
  const auto word = text.substr(0, static_cast<size_t>(end - text.begin()));
  text.remove_prefix(word.size());
  return word;
}

/// The month of an English name of three letters, from 0; journals in some languages write them
/// in lower case.
std::optional<int> month_of(std::string_view word) {
  constexpr std::array<std::string_view, 12> kMonths{"jan", "feb", "mar", "apr", "may", "jun",
                                                     "jul", "aug", "sep", "oct", "nov", "dec"};
  std::string lower(word);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  const auto* const found = std::find(kMonths.begin(), kMonths.end(), lower);
  return found == kMonths.end() ? std::nullopt
                                : std::optional(static_cast<int>(found - kMonths.begin()));
}

TimePoint local_time(std::tm calendar) {
  calendar.tm_isdst = -1;
  return std::chrono::system_clock::from_time_t(std::mktime(&calendar));
}

TimePoint utc_time(std::tm calendar) {
  return std::chrono::system_clock::from_time_t(::timegm(&calendar));
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

/// Removes "Z", "+02:00" or "+0200" and returns the offset from UTC.
std::optional<std::chrono::minutes> take_zone(std::string_view& text) {
  if (consume(text, "Z")) {
    return std::chrono::minutes(0);
  }
  const int sign = text.starts_with('-') ? -1 : 1;
  if ((!consume(text, "+") && !consume(text, "-")) || text.size() < 4) {
    return std::nullopt;
  }
  std::string_view hours_text = text.substr(0, 2);
  text.remove_prefix(2);
  consume(text, ":");
  std::string_view minutes_text = text.substr(0, 2);
  text.remove_prefix(std::min<size_t>(2, text.size()));
  const int hours = take_up_to(23, hours_text, "");
  const int minutes = take_up_to(59, minutes_text, "");
  if (hours < 0 || minutes < 0 || !hours_text.empty() || !minutes_text.empty()) {
    return std::nullopt;
  }
  return sign * (std::chrono::hours(hours) + std::chrono::minutes(minutes));
}

// --- forms; each leaves `text` as it was if it is another

/// "[    5.678901] ", "[    5.678901][ T9185] ".
std::optional<LogStamp> take_monotonic(std::string_view& text) {
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
  constexpr std::uint64_t kMaxSeconds = 10ULL * 366 * 24 * 3600;  // of uptime
  if (!seconds || *seconds > kMaxSeconds || !point || !fraction ||
      before.size() - rest.size() != kFractionDigits || !consume(rest, "]")) {
    return std::nullopt;
  }
  if (rest.starts_with('[')) {  // the caller: a thread or a CPU
    const size_t close = rest.find(']');
    rest.remove_prefix(close == std::string_view::npos ? 0 : close + 1);
  }
  consume(rest, " ");
  text = rest;
  return LogStamp{microseconds(*seconds * kMicrosPerSecond + *fraction), std::nullopt, false, true};
}

/// "[Tue Feb 10 19:23:31 2026] ".
std::optional<LogStamp> take_ctime(std::string_view& text) {
  std::string_view rest = text;
  std::tm calendar{};
  if (!consume(rest, "[") || take_word(rest).empty() || !consume(rest, " ")) {
    return std::nullopt;
  }
  const auto month = month_of(take_word(rest));
  consume(rest, " ");
  consume(rest, " ");
  calendar.tm_mday = take_up_to(31, rest, " ");
  if (!month || calendar.tm_mday < 1 || !take_time_of_day(rest, calendar) || !consume(rest, " ") ||
      !take_year(rest, calendar) || !consume(rest, "]")) {
    return std::nullopt;
  }
  consume(rest, " ");
  calendar.tm_mon = *month;
  text = rest;
  return LogStamp{std::nullopt, local_time(calendar), false, true};
}

/// "2026-07-05T13:04:41.123456+02:00 ".
std::optional<LogStamp> take_rfc3339(std::string_view& text) {
  std::string_view rest = text;
  std::tm calendar{};
  if (!take_date(rest, calendar) || !consume(rest, "T") || !take_time_of_day(rest, calendar)) {
    return std::nullopt;
  }
  const bool comma = rest.starts_with(',');
  const nanoseconds fraction = take_fraction(rest);
  const auto zone = take_zone(rest);
  if (!zone || !consume(rest, " ")) {
    return std::nullopt;
  }
  text = rest;
  return LogStamp{std::nullopt, utc_time(calendar) - *zone + fraction, false, comma};
}

/// "Jul  4 18:18:52 ", local time without a year.
std::optional<LogStamp> take_traditional(std::string_view& text, TimePoint now) {
  std::string_view rest = text;
  std::tm calendar{};
  const std::string_view word = take_word(rest);
  if (word.empty() || !consume(rest, " ")) {
    return std::nullopt;
  }
  consume(rest, " ");  // days before the 10th are padded
  calendar.tm_mday = take_up_to(31, rest, " ");
  if (calendar.tm_mday < 1 || !take_time_of_day(rest, calendar)) {
    return std::nullopt;
  }
  const nanoseconds fraction = take_fraction(rest);
  if (!consume(rest, " ")) {
    return std::nullopt;
  }
  LogStamp stamp;
  stamp.year_missing = true;
  if (const auto month = month_of(word)) {
    calendar.tm_mon = *month;
    stamp.time = newest_not_after(now + std::chrono::hours(24), calendar);
    if (!stamp.time) {
      return std::nullopt;  // April 31
    }
    *stamp.time += fraction;
  }
  text = rest;
  return stamp;
}

/// "Sun 2026-07-05 13:04:41 CEST ".
std::optional<LogStamp> take_full(std::string_view& text) {
  std::string_view rest = text;
  std::tm calendar{};
  if (take_word(rest).empty() || !consume(rest, " ") || !take_date(rest, calendar) ||
      !consume(rest, " ") || !take_time_of_day(rest, calendar)) {
    return std::nullopt;
  }
  const nanoseconds fraction = take_fraction(rest);
  if (!consume(rest, " ")) {
    return std::nullopt;
  }
  const std::string_view zone = take_field(rest);
  consume(rest, " ");
  text = rest;
  return LogStamp{std::nullopt,
                  (zone == "UTC" ? utc_time(calendar) : local_time(calendar)) + fraction, false,
                  false};
}

/// "1783249481.123456 ".
std::optional<LogStamp> take_unix(std::string_view& text) {
  constexpr std::uint64_t kLastSecond = 9'000'000'000;
  std::string_view rest = text;
  const auto seconds = take_unsigned(rest);
  if (!seconds || *seconds > kLastSecond || !rest.starts_with('.')) {
    return std::nullopt;
  }
  const nanoseconds fraction = take_fraction(rest);
  if (!consume(rest, " ")) {
    return std::nullopt;
  }
  text = rest;
  return LogStamp{
      std::nullopt,
      std::chrono::system_clock::from_time_t(static_cast<std::time_t>(*seconds)) + fraction, false,
      false};
}

}  // namespace

std::optional<LogStamp> take_stamp(std::string_view& text, TimePoint now) {
  if (text.starts_with('[')) {
    const auto monotonic = take_monotonic(text);
    return monotonic ? monotonic : take_ctime(text);
  }
  if (!text.empty() && text[0] >= '0' && text[0] <= '9') {
    const auto rfc3339 = take_rfc3339(text);
    return rfc3339 ? rfc3339 : take_unix(text);
  }
  const auto traditional = take_traditional(text, now);
  return traditional ? traditional : take_full(text);
}

TimePoint with_newest_year(TimePoint time, TimePoint latest) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm calendar{};
  ::localtime_r(&seconds, &calendar);
  const auto fraction = time - std::chrono::system_clock::from_time_t(seconds);
  const auto dated = newest_not_after(latest, calendar);
  return dated ? *dated + fraction : time;
}

}  // namespace apu
