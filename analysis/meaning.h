#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "analysis/log_entry.h"

namespace apu {

/// How a line of the timeline is to be read.
enum class Weight {
  kDecisive,  ///< evidence of a fault
  kContext,   ///< tells what happened around it
};

/// What an entry stands for, for a person.
struct LineMeaning {
  std::string label;  ///< the event's name where it is one of apu_kernel_events_total
  Weight weight = Weight::kDecisive;
};

/// nullopt for an entry that stands for nothing.
std::optional<LineMeaning> meaning_of(const LogEntry& entry);

/// Whether a message of a service manager, of journald or of systemd-oomd tells something that is
/// counted or shown.
bool manager_matters(std::string_view message);

/// Whether an entry is written only while the host goes down in order.
bool tells_shutdown(const LogEntry& entry);

/// systemd-oomd killed a cgroup for memory pressure or for want of swap.
bool tells_oomd_kill(const LogEntry& entry);

/// The processes in "UNIT: systemd-oomd killed 12 process(es) in this unit."; 0 for any other.
std::uint64_t oomd_killed_processes(const LogEntry& entry);

}  // namespace apu
