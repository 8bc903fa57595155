#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace apu {

/// A line of the kernel log that stands for something. Each kind is one value of the `event` label.
enum class EventKind {
  kSvmMappingFailed,       ///< a refusal by KFD's memory accounting: no evidence of thrashing
  kSvmRestoreRescheduled,  ///< a restore pass failed; printed with dynamic debug alone
  kUserptrGetPagesFailed,
  kUserptrInitFailed,
  kUserptrRestoreFailed,
  kKfdQuiesceFailed,
  kKfdResumeFailed,   ///< one alone can be harmless in a large load
  kQueueBufferFreed,  ///< normal at the exit of a process
  kQueueEvictFailed,
  kQueueRestoreFailed,
  kProcessEvictFailed,
  kProcessRestoreFailed,
  kMesTimeout,
  kMesRingFull,
  kGpuPageFault,
  kGpuRingTimeout,
  kGpuRingReset,
  kGpuReset,
  kGpuResetFailed,
  kGpuVramLost,
  kGpuLost,
  kGpuBufferEvictionFailed,
  kHungTask,
  kHungTaskGpu,  ///< the stack of the hung task names amdgpu, kfd or svm_range
  kOomReaperFailed,
  kKfdOther,  ///< an error-level line of the driver of no kind above: shown, alerted on by nothing
};

std::span<const EventKind> all_event_kinds();

std::string_view to_label(EventKind kind);

struct KernelEvent {
  EventKind kind = EventKind::kKfdOther;
  std::string_view gpu;  ///< PCI address, empty where the line names none; points into the message
};

/// The kernel's levels, of printk: 3 is an error, 4 a warning.
constexpr int kErrorLevel = 3;

/// What a message of the kernel stands for. Anchored at the start of the message: names that users
/// choose (processes, cgroups) appear further on in genuine lines. `level` is the kernel's, where
/// the log tells it; without one no line is kKfdOther unless it says *ERROR* itself. kHungTaskGpu
/// is not told from one line: see KernelLogState.
std::optional<KernelEvent> classify(std::string_view message,
                                    std::optional<int> level = std::nullopt);

/// A message of the amdgpu driver or of KFD without its prefix.
struct DriverMessage {
  std::string_view gpu;   ///< PCI address, empty where the prefix has none
  bool is_error = false;  ///< the prefix says *ERROR*
  std::string_view text;
};

/// Removes the prefixes that the driver has had over the years:
///   "amdgpu: ", "kfd2kgd: ", "kfd kfd: amdgpu: " and the last without its second part;
///   "amdgpu 0000:c5:00.0: " and then "amdgpu: " or nothing, and then "[drm] ", "[drm] *ERROR* ",
///   "[drm:function [amdgpu]] *ERROR* " or nothing; the last of these alone; and after each
///   "[pid 4711] ", which debug lines of newer kernels have.
/// nullopt for a message of anyone else.
std::optional<DriverMessage> strip_driver_prefix(std::string_view message);

/// Whether a line after the first of a hung task's report puts the GPU's driver into its stack.
bool names_gpu_driver(std::string_view stack_line);

/// Whether a line can belong to the report that a hung-task line begins.
bool continues_hung_task_report(std::string_view message);

}  // namespace apu
