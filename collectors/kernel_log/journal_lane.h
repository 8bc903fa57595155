#pragma once

#include <systemd/sd-journal.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "collectors/kernel_log/journal_query.h"
#include "exporter/result.h"

namespace apu {

struct CloseJournal {
  void operator()(sd_journal* journal) const { sd_journal_close(journal); }
};

using JournalHandle = std::unique_ptr<sd_journal, CloseJournal>;

/// Opens the files of `place`. Errors: what libsystemd says; a place without files is none.
Result<JournalHandle> open_journal(const JournalPlace& place);

/// The boot of the newest entry; empty if there is none.
std::string newest_boot(sd_journal* journal);

/// The cursor of the first entry of `boot`, whatever it is; empty if there is none.
std::string first_entry_of_boot(const JournalPlace& place, const std::string& boot);

/// What a lane lets through.
enum class LaneContent {
  kKernel,  ///< what came through /dev/kmsg
  kOthers,  ///< service managers, and journald where it is wanted
};

/// One sequence of entries of one boot, read once and in the journal's order. Not safe outside a
/// process that may end: a file that is truncated while it is read raises SIGBUS.
class JournalLane {
 public:
  JournalLane(const JournalQuery& query, std::string boot, LaneContent content);

  /// Opens the files, to go on after what was read. Errors: as open_journal; a broken cursor.
  Status open();

  [[nodiscard]] LaneContent content() const { return content_; }

  /// Goes to the next unread entry, if it is not there already. False at the end, from then on
  /// until wake().
  bool load();

  /// More entries may have come.
  void wake() { ended_ = false; }

  /// Nothing of what follows is wanted.
  void finish() { finished_ = true; }

  /// Ends the stay at the loaded entry: it was read.
  void consume();

  /// Stamp of the journal of the loaded entry, since boot.
  [[nodiscard]] std::chrono::microseconds stamp() const { return stamp_; }

  /// When journald took the loaded entry; since 1970.
  [[nodiscard]] std::chrono::microseconds realtime() const;

  /// A field of the loaded entry, into memory that the next call may reuse; nullopt without it.
  /// `error`, where given, gets the errno of what failed.
  [[nodiscard]] std::optional<std::string_view> field(const char* name, int* error = nullptr) const;

  /// What decides on an entry of the kernel's, in one pass over its fields: that costs no more than
  /// to get its text alone.
  struct KernelText {
    std::string_view message;
    bool of_user_space = false;  ///< by SYSLOG_FACILITY, which is 0 for the kernel alone
  };

  /// Of the loaded entry, into memory that the next call may reuse; nullopt, and the errno in
  /// `error`, where it has no text.
  [[nodiscard]] std::optional<KernelText> kernel_text(int& error);

  [[nodiscard]] JournalPosition position() const;

  /// Reads the changes of the directories. What to wait for them with: see sd_journal_get_fd.
  void process_changes() { sd_journal_process(journal_.get()); }

  [[nodiscard]] int descriptor() const { return sd_journal_get_fd(journal_.get()); }

  /// Whether a file was left in the middle, as it is damaged: libsystemd says nothing of it.
  [[nodiscard]] bool lost_a_file() const;

  /// At the end: goes behind what cannot be read in the middle of a file, to where entries can be
  /// reached from the end. False if there is nothing behind.
  bool skip_damage();

 private:
  [[nodiscard]] Result<JournalHandle> open_filtered() const;
  [[nodiscard]] Status go_to(const JournalPosition& position);
  [[nodiscard]] int seek_start();
  bool note_entry();

  JournalQuery query_;
  std::string boot_;
  sd_id128_t boot_id_{};
  LaneContent content_;
  // By a match, or by a look at each entry: that is faster where most are of the boot.
  bool matches_boot_;
  JournalHandle journal_;
  std::string message_;    // where it has to outlive another field
  JournalPosition start_;  // where to go on; used while nothing was read since it was opened
  bool loaded_ = false;
  bool ended_ = false;
  bool finished_ = false;
  bool read_any_ = false;
  std::chrono::microseconds stamp_{0};
};

}  // namespace apu
