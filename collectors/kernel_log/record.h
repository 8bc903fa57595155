#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "exporter/clock.h"
#include "exporter/result.h"

namespace apu {

/// Who wrote a record. Text that user space wrote never counts, whatever it says.
enum class Origin { kKernel, kUserspace };

/// One record of a kernel log. `message` points into the text it was parsed from.
struct LogRecord {
  Origin origin = Origin::kUserspace;
  std::optional<std::uint64_t> sequence;                ///< of /dev/kmsg: contiguous
  std::optional<std::chrono::microseconds> since_boot;  ///< the kernel's monotonic stamp
  std::optional<TimePoint> time;  ///< by the text's own stamp; see resolve_time
  std::string_view message;
};

/// What a line of a kernel log is.
enum class LineKind {
  kRecord,
  kContinuation,  ///< belongs to the record above: " KEY=value" of /dev/kmsg
  kUnknown,       ///< no format that is known
};

struct ParsedLine {
  LineKind kind = LineKind::kUnknown;
  LogRecord record;
};

/// Parses one line of a kernel log, in any of these formats:
///   /dev/kmsg   "4,1234,5678901,-;text"; the facility in the first number says who wrote it
///   dmesg       "[    5.678901] text", with or without a "<4>" before it
///   syslog      "Jul  4 18:18:52 host kernel: [    5.678901] text"; the bracket may be missing,
///               any tag but "kernel:" is user space
///   RFC 3339    "2026-07-04T18:18:52.123456+00:00 host kernel: text", likewise
/// Source: info_print_ext_header and msg_print_ext_body in kernel/printk/printk.c; rsyslog's
/// traditional and default file formats.
/// `now` gives the year that syslog's stamps lack: the newest that is not later than a day ahead.
ParsedLine parse_log_line(std::string_view line, TimePoint now);

/// The time of `record`: by the kernel's stamp on top of `boot_time` where both are known, else by
/// the text's stamp.
std::optional<TimePoint> resolve_time(const LogRecord& record,
                                      const std::optional<TimePoint>& boot_time);

}  // namespace apu
