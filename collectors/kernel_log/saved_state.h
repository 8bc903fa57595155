#pragma once

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

}  // namespace apu
