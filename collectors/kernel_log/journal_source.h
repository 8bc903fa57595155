#pragma once

#include <chrono>
#include <filesystem>
#include <memory>

#include "collectors/kernel_log/journal_query.h"
#include "collectors/kernel_log/source.h"

namespace apu {

/// How the process that reads a journal is run.
struct JournalReaderSettings {
  std::filesystem::path program = "/proc/self/exe";
  std::chrono::milliseconds silence{10'000};   ///< a reader that says nothing for longer hangs
  std::chrono::milliseconds back_off{30'000};  ///< after one that hung, or crashed again and again
};

/// The systemd journal, read by a process of its own: a file that is truncated while it is read
/// ends that process, and one that hangs hangs it. Follows the journal, if the query has no bound.
/// Errors of drain(): kNotFound where there is no journal file, or no entry of the boot;
/// kPermissionDenied; kBlocked where the reader hangs; kMalformed where it crashes at the same
/// place again and again. After such a failure drain() does not wait for an answer.
std::unique_ptr<LogSource> make_journal_source(JournalQuery query,
                                               JournalReaderSettings settings = {});

}  // namespace apu
