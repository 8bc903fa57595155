#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "exporter/clock.h"

namespace apu {

/// The time stamp at the start of a line of a log.
struct LogStamp {
  std::optional<std::chrono::microseconds> since_boot;  ///< the kernel's monotonic stamp
  std::optional<TimePoint> time;
  bool year_missing = false;
  /// Only `dmesg` and its like write it: what follows is the kernel's text, without host and tag.
  bool of_dmesg = false;
};

/// Removes a stamp and the blank after it from the start of `text`. nullopt, and nothing removed,
/// if there is none. Forms:
///   "[    5.678901] "                          dmesg, journalctl -o short-monotonic; also with the
///                                              caller, "[    5.678901][ T9185] "
///   "[Tue Feb 10 19:23:31 2026] "              dmesg -T, local time
///   "2026-07-05T13:04:41,123456+02:00 "        dmesg --time-format=iso, by its comma
///   "2026-07-05T13:04:41.123456+02:00 "        RFC 3339; fraction and the zone's colon may be
///   missing "Jul  4 18:18:52 ", "Jul 04 18:18:52.123456 "   local time without a year; a month of
///   another
///                                              language leaves the time unknown
///   "Sun 2026-07-05 13:04:41 CEST "            journalctl -o short-full; UTC, else local time
///   "1783249481.123456 "                       journalctl -o short-unix
/// `now` gives the year where it is missing: the newest that is not later than a day ahead.
std::optional<LogStamp> take_stamp(std::string_view& text, TimePoint now);

/// `time` in the newest year in which it is not after `latest`, by local time: for stamps without a
/// year. `time` itself where there is none, which no calendar has.
TimePoint with_newest_year(TimePoint time, TimePoint latest);

}  // namespace apu
