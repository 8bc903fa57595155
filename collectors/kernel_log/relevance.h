#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

namespace apu {

/// Whether a message of the kernel may be one that KernelLogState counts by itself: false proves
/// that it is not, but for the lines of a hung task's stack. A few comparisons, for logs of which
/// one line in a thousand matters.
bool may_matter(std::string_view message);

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
