#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace apu {

/// A line of the kernel log that stands for something. Each kind is one value of the `event` label.
enum class EventKind {
  kSvmMappingFailed,  ///< a refusal by KFD's memory accounting: no evidence of thrashing
};

std::span<const EventKind> all_event_kinds();

std::string_view to_label(EventKind kind);

struct KernelEvent {
  EventKind kind = EventKind::kSvmMappingFailed;
  std::string_view gpu;  ///< PCI address, empty where the line names none; points into the message
};

/// What a message of the kernel stands for. Anchored at the start of the message: names that users
/// choose (processes, cgroups) appear further on in genuine lines.
std::optional<KernelEvent> classify(std::string_view message);

/// A message of the amdgpu driver or of KFD without its prefix.
struct DriverMessage {
  std::string_view gpu;  ///< PCI address, empty where the prefix has none
  std::string_view text;
};

/// Removes the prefixes that the driver has had over the years: "amdgpu: ",
/// "amdgpu 0000:c5:00.0: amdgpu: ", the same with "[drm] " or "[drm] *ERROR* " or nothing in place
/// of the second, and "kfd kfd: amdgpu: ". nullopt for a message of anyone else.
std::optional<DriverMessage> strip_driver_prefix(std::string_view message);

}  // namespace apu
