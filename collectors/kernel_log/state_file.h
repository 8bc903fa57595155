#pragma once

#include <filesystem>
#include <memory>

#include "collectors/kernel_log/saved_state.h"
#include "exporter/result.h"

namespace apu {

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
