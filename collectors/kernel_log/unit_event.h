#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace apu {

/// What a service manager says of a unit.
enum class UnitEventKind {
  kSigkill,      ///< it sent SIGKILL to a process that did not stop
  kStopTimeout,  ///< the unit did not stop in its time
};

struct UnitEvent {
  UnitEventKind kind = UnitEventKind::kSigkill;
  /// As the `unit` label has it, "UID/name" from a user's manager; empty where the line has none.
  std::string unit;
};

/// Parses a message of a service manager: "UNIT: Killing process 41001 (llama-server) with signal
/// SIGKILL." or "UNIT: State 'stop-sigterm' timed out. Killing.". `user` is the id of the user
/// whose manager wrote it, empty for PID 1. Whether a manager wrote it is for the caller to know.
///
/// Source: unit_log_process_signal and service_dispatch_timer in systemd's src/core.
std::optional<UnitEvent> parse_unit_event(std::string_view message, std::string_view user);

}  // namespace apu
