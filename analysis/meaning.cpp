#include "analysis/meaning.h"

#include <algorithm>
#include <array>

#include "collectors/kernel_log/event.h"
#include "collectors/kernel_log/hog.h"
#include "collectors/kernel_log/oom.h"
#include "collectors/kernel_log/state.h"
#include "collectors/kernel_log/unit_event.h"
#include "exporter/text.h"
#include "verdict/log_verdict.h"

namespace apu {
namespace {

// What a service manager, journald or systemd-oomd says of a killed unit, lost records, a restart,
// the end of a boot. Anything else that they say tells nothing here.
constexpr std::array<std::string_view, 15> kNotes{": Killing process",
                                                  "timed out",
                                                  "systemd-oomd killed",
                                                  "killed by the OOM killer",
                                                  "Processes still around",
                                                  "Failed with result 'timeout'",
                                                  "Scheduled restart job",
                                                  "Shutting down",
                                                  "Reached target",
                                                  "Powering off",
                                                  "Rebooting",
                                                  "Missed ",
                                                  "buffer overrun",
                                                  "Syncing filesystems",
                                                  "Killed /"};

// systemd's names of the targets that it reaches on its way down.
constexpr std::array<std::string_view, 8> kShutdownTargets{
    "Shutdown",   "Reboot", "Power-Off",       "Power Off",
    "Final Step", "Halt",   "shutdown.target", "Late Shutdown"};

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

LineMeaning hog_meaning(const ParsedHog& hog) {
  if (hog.kind == ParsedHog::Kind::kMalformed) {
    return {"hog_without_count", Weight::kContext};
  }
  const bool restore = is_restore_worker({hog.report.function, hog.report.module});
  return {restore ? "restore_hog" : "hog", restore ? Weight::kDecisive : Weight::kContext};
}

/// Lines of the driver that no event counts, and that tell how a fault went on.
bool is_driver_note(std::string_view message) {
  constexpr std::array<std::string_view, 10> kStarts{"GPU reset",
                                                     "GPU mode",
                                                     "device wedged",
                                                     "Sending SIG",
                                                     "Queues reset",
                                                     "MES might be",
                                                     "queue id ",
                                                     "failed to suspend gangs",
                                                     "failed to resume gangs",
                                                     "SMU: I'm not done"};
  const auto driver = strip_driver_prefix(message);
  return driver && std::any_of(kStarts.begin(), kStarts.end(), [&](std::string_view start) {
           return driver->text.starts_with(start);
         });
}

Weight weight_of(EventKind kind) {
  return kind == EventKind::kQueueBufferFreed || kind == EventKind::kHungTask ||
                 kind == EventKind::kKfdOther || kind == EventKind::kSvmRestoreRescheduled
             ? Weight::kContext
             : Weight::kDecisive;
}

std::optional<LineMeaning> kernel_meaning(const LogEntry& entry) {
  const std::string_view message = entry.message;
  if (const ParsedHog hog = parse_hog_report(message); hog.kind != ParsedHog::Kind::kNone) {
    return hog_meaning(hog);
  }
  if (const auto event = classify(message, entry.level)) {
    if (!(event->kind == EventKind::kKfdOther && is_driver_note(message))) {
      return LineMeaning{std::string(to_label(event->kind)), weight_of(event->kind)};
    }
  }
  if (is_driver_note(message)) {
    return LineMeaning{"gpu_driver", Weight::kContext};
  }
  if (const auto event = parse_oom_event(message)) {
    return LineMeaning{event->scope == OomScope::kHost ? "oom_host" : "oom_memcg",
                       Weight::kDecisive};
  }
  if (parse_oom_kill(message)) {
    return LineMeaning{"oom_kill", Weight::kContext};
  }
  if (is_boot_banner(message)) {
    return LineMeaning{"boot", Weight::kContext};
  }
  return std::nullopt;
}

std::optional<LineMeaning> manager_meaning(const LogEntry& entry) {
  if (const auto event = parse_unit_event(entry.message, entry.user)) {
    return LineMeaning{
        event->kind == UnitEventKind::kSigkill ? "unit_sigkill" : "unit_stop_timeout",
        Weight::kDecisive};
  }
  if (contains(entry.message, "Processes still around")) {
    return LineMeaning{"unit_unkillable", Weight::kDecisive};
  }
  if (contains(entry.message, "Scheduled restart job")) {
    return LineMeaning{"unit_restart", Weight::kContext};
  }
  return std::nullopt;
}

}  // namespace

bool manager_matters(std::string_view message) {
  return std::any_of(kNotes.begin(), kNotes.end(),
                     [&](std::string_view note) { return contains(message, note); });
}

bool tells_shutdown(const LogEntry& entry) {
  const std::string_view message = entry.message;
  if (entry.origin == Origin::kKernel) {
    return message.starts_with("reboot: ") || message.starts_with("systemd-shutdown[1]: ");
  }
  if (entry.tag == "systemd-shutdown") {
    return true;
  }
  if (entry.origin != Origin::kServiceManager || !entry.user.empty()) {
    return false;
  }
  if (message.starts_with("Shutting down") || message.starts_with("Powering off") ||
      message.starts_with("Rebooting")) {
    return true;
  }
  return message.starts_with("Reached target") &&
         std::any_of(kShutdownTargets.begin(), kShutdownTargets.end(),
                     [&](std::string_view target) { return contains(message, target); });
}

bool tells_oomd_kill(const LogEntry& entry) {
  return entry.tag == "systemd-oomd" && entry.message.starts_with("Killed ");
}

std::uint64_t oomd_killed_processes(const LogEntry& entry) {
  if (entry.origin != Origin::kServiceManager && entry.tag != "systemd") {
    return 0;
  }
  constexpr std::string_view kText = ": systemd-oomd killed ";
  const size_t at = entry.message.find(kText);
  std::string_view rest = at == std::string::npos
                              ? std::string_view()
                              : std::string_view(entry.message).substr(at + kText.size());
  return take_unsigned(rest).value_or(0);
}

std::optional<LineMeaning> meaning_of(const LogEntry& entry) {
  if (entry.message.empty()) {
    return std::nullopt;
  }
  if (tells_oomd_kill(entry)) {
    return LineMeaning{"oomd_kill", Weight::kDecisive};
  }
  if (tells_shutdown(entry)) {
    return LineMeaning{"shutdown", Weight::kContext};
  }
  if (entry.origin == Origin::kKernel) {
    return kernel_meaning(entry);
  }
  return entry.origin == Origin::kServiceManager ? manager_meaning(entry) : std::nullopt;
}

}  // namespace apu
