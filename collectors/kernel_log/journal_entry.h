#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "collectors/kernel_log/record.h"

namespace apu {

class JournalLane;

/// The record that the loaded entry of a lane of the kernel's is. `message` is its text.
LogRecord to_kernel_record(const JournalLane& lane, std::string_view message);

/// The same of another entry. `user` keeps what the record's user points to.
LogRecord to_other_record(const JournalLane& lane, std::string_view message, std::string& user);

/// The stamp that the kernel gave the loaded entry; nullopt where it is not told.
std::optional<std::chrono::microseconds> kernel_stamp(const JournalLane& lane);

/// N of "user@N.service", the unit in which a user's manager runs; nullopt for any other.
std::optional<std::string_view> user_of_manager_unit(std::string_view unit);

}  // namespace apu
