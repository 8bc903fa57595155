#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "collectors/kernel_log/journal_query.h"
#include "collectors/kernel_log/record.h"

namespace apu {

class JournalLane;

/// The record that the loaded entry of a lane of the kernel's is. `message` is its text.
LogRecord to_kernel_record(const JournalLane& lane, std::string_view message);

/// The same of another entry. `user` keeps what the record's user points to.
LogRecord to_other_record(const JournalLane& lane, std::string_view message, std::string& user);

/// The stamp that the kernel gave the loaded entry; nullopt where it is not told.
std::optional<std::chrono::microseconds> kernel_stamp(const JournalLane& lane);

/// Where an entry stands to the bounds of a query.
enum class Side {
  kInside,
  kAtEnd,      ///< inside, with the very stamp of the last that is wanted
  kOutside,    ///< wanted entries may follow
  kFarBehind,  ///< none follow
};

Side side_of(const JournalLane& lane, const JournalQuery& query);

/// N of "user@N.service", the unit in which a user's manager runs; nullopt for any other.
std::optional<std::string_view> user_of_manager_unit(std::string_view unit);

}  // namespace apu
