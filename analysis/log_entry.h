#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collectors/kernel_log/record.h"
#include "exporter/clock.h"
#include "exporter/result.h"

namespace apu {

/// Whether the kernel's stamp went back from `last` to `stamp` as by a reboot alone: lines of
/// several CPUs stand out of order by far less.
inline bool stamp_falls(std::optional<std::chrono::microseconds> stamp,
                        std::optional<std::chrono::microseconds> last) {
  constexpr std::chrono::seconds kJitter{10};
  return stamp && last && *stamp + kJitter < *last;
}

/// A record of a saved log that may stand for something, and where it stood.
struct LogEntry {
  std::uint64_t line = 0;  ///< of its file, from 1
  Origin origin = Origin::kUserspace;
  std::optional<int> level;
  std::optional<std::uint64_t> sequence;                ///< of /dev/kmsg
  std::optional<std::chrono::microseconds> since_boot;  ///< the kernel's stamp
  std::optional<TimePoint> time;                        ///< by the text's own stamp
  bool year_missing = false;                            ///< `time` is right but for its year
  std::string tag;       ///< who wrote it, of user space's records that tell something
  std::string user;      ///< see LogRecord
  std::string message;   ///< empty for a mark: the last line of the file, which stands for nothing
  std::string boot_id;   ///< of the journal; empty where it is not told
  unsigned segment = 0;  ///< a line that separates boots raises it
  std::uint64_t plain_kernel_before = 0;  ///< records since the entry before that tell nothing
  std::uint64_t plain_user_before = 0;
  std::uint64_t lost_before = 0;  ///< by the gaps in the sequence

  [[nodiscard]] LogRecord record() const {
    return {origin, level, sequence, since_boot, time, year_missing, user, message};
  }
};

/// What one file held.
struct LogFile {
  std::string name;
  std::string format;  ///< for a person: "dmesg", "journalctl -o json"
  std::uint64_t lines = 0;
  std::vector<LogEntry> entries;      ///< in the log's own order, the oldest first
  bool newest_first = false;          ///< it stood the other way round
  std::uint64_t out_of_order = 0;     ///< entries that stood before an older one
  std::uint64_t unreadable = 0;       ///< lines
  std::vector<std::string> problems;  ///< the first of those, "file:line: what"
  Status failure;                     ///< why it could not be read to its end, or at all
};

}  // namespace apu
