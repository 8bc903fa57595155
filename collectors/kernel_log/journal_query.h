#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "exporter/result.h"

namespace apu {

/// Where journal files are.
struct JournalPlace {
  /// A directory of journal files; or, with `is_root`, the root of a host, whose journal is in
  /// var/log/journal and run/log/journal.
  std::filesystem::path directory;
  bool is_root = false;
};

/// The directories of `place`.
std::vector<std::filesystem::path> directories_of(const JournalPlace& place);

/// How far a reader has come in one of its sequences.
struct JournalPosition {
  std::string cursor;   ///< of libsystemd; empty: at the start
  bool unread = false;  ///< the entry at `cursor` is the next one, not the last one
};

/// What a reader of the journal is asked for.
struct JournalQuery {
  JournalPlace place;
  std::string boot;       ///< boot id, 32 hex digits; empty: that of the newest entry
  bool kernel = false;    ///< what came through /dev/kmsg
  bool managers = false;  ///< what service managers say of the end of a unit
  bool journald = false;  ///< what journald says of records that it missed
  /// Bounds of the kernel's own stamp, and of the journal's for other records. With a bound a
  /// reader ends where the journal does.
  std::optional<std::chrono::microseconds> after;  ///< exclusive
  std::optional<std::chrono::microseconds> until;  ///< inclusive
  JournalPosition kernel_position;
  JournalPosition other_position;
};

/// The first argument of the command line that makes this program a reader.
constexpr std::string_view kJournalReaderOption = "--internal.journal-reader";

/// The command line of a reader, from its first argument on.
std::vector<std::string> to_arguments(const JournalQuery& query);

/// The inverse. Errors: an argument that is none of a reader.
Result<JournalQuery> parse_journal_query(std::span<const char* const> arguments);

}  // namespace apu
