#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "exporter/clock.h"
#include "exporter/result.h"

namespace apu {

/// Who wrote a record. Text of others never counts, whatever it says.
enum class Origin {
  kKernel,
  kServiceManager,  ///< systemd: PID 1, or a user's manager
  kJournald,
  kUserspace,
};

/// One record of a kernel log. `message` points into the text it was parsed from.
struct LogRecord {
  Origin origin = Origin::kUserspace;
  std::optional<int> level;               ///< of printk, 0 to 7; absent where the format lacks it
  std::optional<std::uint64_t> sequence;  ///< of /dev/kmsg: contiguous
  std::optional<std::chrono::microseconds> since_boot;  ///< the kernel's monotonic stamp
  std::optional<TimePoint> time;  ///< by the text's own stamp; see resolve_time
  bool year_missing = false;      ///< of `time`: the one that it has was guessed
  std::string_view user;          ///< id of the user whose manager wrote it; empty for PID 1
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
///   dmesg       "[    5.678901] text" and its variants, with or without "<4>" or "kern  :warn  : "
///               before it; a file cannot tell text of user space that came through /dev/kmsg
///   journalctl, syslog files   a stamp in any form of take_stamp, then "host kernel: text"; the
///               host may be missing, and the kernel's own stamp stand before the text. Any tag but
///               those of the kernel, of PID 1 and of journald is user space.
/// Source: info_print_ext_header and msg_print_ext_body in kernel/printk/printk.c; util-linux's
/// dmesg.c; systemd's output-mode.c; rsyslog's file formats.
/// `now` gives the year that a stamp may lack.
ParsedLine parse_log_line(std::string_view line, TimePoint now);

/// A message without the escapes of /dev/kmsg: "\\x09" stands for a TAB there, "\\x5c" for "\\".
/// Source: append_escaped in kernel/printk/printk.c (append_char in older ones).
std::string unescape_kmsg(std::string_view message);

/// The time of `record`: by the kernel's stamp on top of `boot_time` where both are known, else by
/// the text's stamp.
std::optional<TimePoint> resolve_time(const LogRecord& record,
                                      const std::optional<TimePoint>& boot_time);

}  // namespace apu
