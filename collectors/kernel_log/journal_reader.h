#pragma once

#include <span>

namespace apu {

/// What this program does when it is executed as the reader of a journal: answers each sync on
/// stdin (8 bytes, little endian) when it has written to stdout, as frames, all that the journal
/// holds; between them it writes what is added. Ends with stdin. Returns the exit code.
///
/// Source: journal files, by libsystemd. Kernel records are told by _TRANSPORT, and by
/// SYSLOG_FACILITY=0 from text that user space wrote to /dev/kmsg; service managers by _PID or
/// _SYSTEMD_UNIT. No field that a sender chooses is believed.
int run_journal_reader(std::span<const char* const> arguments);

}  // namespace apu
