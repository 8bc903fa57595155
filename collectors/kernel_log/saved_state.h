#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "collectors/kernel_log/position.h"
#include "collectors/kernel_log/state.h"
#include "exporter/result.h"

namespace apu {

/// What of a boot's log was counted, and how far: for a log that by the next start of the exporter
/// no longer reaches back to the boot.
struct SavedState {
  std::string boot_id;  ///< /proc/sys/kernel/random/boot_id, whose log it is
  LogPosition position;
  KernelLogState log;
};

/// The inverse of each other. Errors: kMalformed, for anything but what to_text wrote.
std::string to_text(const SavedState& state);
Result<SavedState> parse_saved_state(std::string_view text);

/// Reads `file`. Errors: kNotFound, kMalformed and what reading meets; `message` names the file.
Result<SavedState> load_state(const std::filesystem::path& file);

/// Replaces `file` as a whole: whoever reads it sees the old or the new state. It is not flushed to
/// the disk: a crash of the host begins another boot.
Status save_state(const std::filesystem::path& file, const SavedState& state);

/// Saves on a thread of its own, so that a disk that hangs holds up nobody; of several states that
/// wait the newest is saved, if it differs from the last. Errors are logged when they change.
class StateSaver {
 public:
  explicit StateSaver(const std::filesystem::path& file);

  void save(SavedState state);

 private:
  struct Mailbox;
  std::shared_ptr<Mailbox> mailbox_;  // the thread's too: it is never joined
};

}  // namespace apu
