#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

namespace apu {

/// Whether KernelLogState, or an analysis of the log, can do more with a message of the kernel than
/// count it as a line. A few comparisons, for logs of which one line in a thousand matters; true
/// for some that stand for nothing. Holds for the first line that a kernel prints, too.
bool may_matter(std::string_view message);

/// The same for a message of a service manager or of journald.
bool may_matter_of_others(std::string_view message);

/// What a line of a text log is at first sight.
enum class LineTriage {
  kPlainKernel,  ///< the kernel's, and may_matter denies it
  kPlainUser,    ///< user space's, of no tag that anyone reads
  kLook,         ///< parse_log_line has to tell
};

struct TriagedLine {
  LineTriage triage = LineTriage::kLook;
  std::optional<std::uint64_t> sequence;                ///< of /dev/kmsg
  std::optional<std::chrono::microseconds> since_boot;  ///< the kernel's stamp at the line's start
};

/// Tells lines of no interest from the rest without reading their stamps whole: dmesg,
/// /dev/kmsg, syslog and RFC 3339 forms; any other is kLook. A stamp that no calendar has goes
/// unnoticed.
TriagedLine triage_line(std::string_view line);

}  // namespace apu
