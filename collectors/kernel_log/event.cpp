#include "collectors/kernel_log/event.h"

#include <algorithm>
#include <array>

#include "exporter/text.h"

namespace apu {
namespace {

struct KindLabel {
  EventKind kind;
  std::string_view label;
};

constexpr std::array kLabels{
    KindLabel{EventKind::kSvmMappingFailed, "svm_mapping_failed"},
    KindLabel{EventKind::kSvmRestoreRescheduled, "svm_restore_rescheduled"},
    KindLabel{EventKind::kUserptrGetPagesFailed, "userptr_get_pages_failed"},
    KindLabel{EventKind::kUserptrInitFailed, "userptr_init_failed"},
    KindLabel{EventKind::kUserptrRestoreFailed, "userptr_restore_failed"},
    KindLabel{EventKind::kKfdQuiesceFailed, "kfd_quiesce_failed"},
    KindLabel{EventKind::kKfdResumeFailed, "kfd_resume_failed"},
    KindLabel{EventKind::kQueueBufferFreed, "queue_buffer_freed"},
    KindLabel{EventKind::kQueueEvictFailed, "queue_evict_failed"},
    KindLabel{EventKind::kQueueRestoreFailed, "queue_restore_failed"},
    KindLabel{EventKind::kProcessEvictFailed, "process_evict_failed"},
    KindLabel{EventKind::kProcessRestoreFailed, "process_restore_failed"},
    KindLabel{EventKind::kMesTimeout, "mes_timeout"},
    KindLabel{EventKind::kMesRingFull, "mes_ring_full"},
    KindLabel{EventKind::kGpuPageFault, "gpu_page_fault"},
    KindLabel{EventKind::kGpuRingTimeout, "gpu_ring_timeout"},
    KindLabel{EventKind::kGpuRingReset, "gpu_ring_reset"},
    KindLabel{EventKind::kGpuReset, "gpu_reset"},
    KindLabel{EventKind::kGpuResetFailed, "gpu_reset_failed"},
    KindLabel{EventKind::kGpuVramLost, "gpu_vram_lost"},
    KindLabel{EventKind::kGpuLost, "gpu_lost"},
    KindLabel{EventKind::kGpuBufferEvictionFailed, "gpu_buffer_eviction_failed"},
    KindLabel{EventKind::kHungTask, "hung_task"},
    KindLabel{EventKind::kHungTaskGpu, "hung_task_gpu"},
    KindLabel{EventKind::kOomReaperFailed, "oom_reaper_failed"},
    KindLabel{EventKind::kKfdOther, "kfd_other"},
};

constexpr auto kKinds = [] {
  std::array<EventKind, kLabels.size()> kinds{};
  for (size_t i = 0; i < kinds.size(); ++i) {
    kinds.at(i) = kLabels.at(i).kind;
  }
  return kinds;
}();

/// A text of the driver that begins a line.
struct KnownStart {
  std::string_view start;
  EventKind kind;
};

// The first that matches counts, so the special stands before the general. Texts by function are
// in the kernel's drivers/gpu/drm/amd; 6.12 and, where they differ, older and newer ones.
constexpr std::array kDriverTexts{
    KnownStart{"SVM mapping failed, exceeds resident system memory limit",
               EventKind::kSvmMappingFailed},
    KnownStart{"reschedule to restore svm range", EventKind::kSvmRestoreRescheduled},
    KnownStart{"init_user_pages: Failed to get user pages", EventKind::kUserptrGetPagesFailed},
    KnownStart{"init_user_pages: Failed", EventKind::kUserptrInitFailed},
    KnownStart{"init_user_pages: failed", EventKind::kUserptrInitFailed},
    KnownStart{"update_invalid_user_pages: Failed", EventKind::kUserptrRestoreFailed},
    KnownStart{"update_invalid_user_pages: failed", EventKind::kUserptrRestoreFailed},
    KnownStart{"validate_invalid_user_pages: Failed", EventKind::kUserptrRestoreFailed},
    KnownStart{"validate_invalid_user_pages: failed", EventKind::kUserptrRestoreFailed},
    KnownStart{"validate_invalid_user_pages: update PTE failed", EventKind::kUserptrRestoreFailed},
    KnownStart{"Failed to quiesce KFD", EventKind::kKfdQuiesceFailed},
    KnownStart{"amdgpu_amdkfd_restore_userptr_worker: Failed to resume KFD",
               EventKind::kKfdResumeFailed},
    KnownStart{"Freeing queue vital buffer ", EventKind::kQueueBufferFreed},
    KnownStart{"Failed to evict process queues", EventKind::kProcessEvictFailed},
    KnownStart{"Failed to evict queues of p", EventKind::kProcessEvictFailed},
    KnownStart{"Failed to evict queue ", EventKind::kQueueEvictFailed},
    KnownStart{"Failed to restore process queues", EventKind::kProcessRestoreFailed},
    KnownStart{"Failed to restore queues", EventKind::kProcessRestoreFailed},
    KnownStart{"Failed to restore queue ", EventKind::kQueueRestoreFailed},
    KnownStart{"MES failed to respon", EventKind::kMesTimeout},  // "to response" before 6.10
    KnownStart{"MES ring buffer is full", EventKind::kMesRingFull},
    KnownStart{"GPU Recovery Failed", EventKind::kGpuResetFailed},
    KnownStart{"VRAM is lost due to GPU reset", EventKind::kGpuVramLost},
    KnownStart{"device lost from bus", EventKind::kGpuLost},
    KnownStart{"[TTM] Buffer eviction failed", EventKind::kGpuBufferEvictionFailed},
};

// --- prefixes

/// Removes "0000:c5:00.0: " and returns the address; empty, and nothing removed, if there is none.
std::string_view take_pci_address(std::string_view& text) {
  constexpr std::string_view kShape = "hhhh:hh:hh.o";
  const auto fits = [](char shape, char c) {
    const bool hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
    return shape == 'h' ? hex : shape == 'o' ? c >= '0' && c <= '7' : c == shape;
  };
  const std::string_view address = text.substr(0, kShape.size());
  const bool matches = address.size() == kShape.size() &&
                       std::equal(kShape.begin(), kShape.end(), address.begin(), fits);
  std::string_view rest = text;
  rest.remove_prefix(std::min(kShape.size(), rest.size()));
  if (!matches || !consume(rest, ": ")) {
    return {};
  }
  text = rest;
  return address;
}

/// Removes "[drm:function.constprop.0 [amdgpu]] *ERROR* ".
bool take_drm_function(std::string_view& text) {
  std::string_view rest = text;
  if (!consume(rest, "[drm:")) {
    return false;
  }
  constexpr std::string_view kEnd = " [amdgpu]] *ERROR* ";
  const size_t blank = rest.find(' ');
  if (blank == std::string_view::npos || !rest.substr(blank).starts_with(kEnd)) {
    return false;
  }
  rest.remove_prefix(blank + kEnd.size());
  text = rest;
  return true;
}

/// Removes what may follow the device's name; returns whether it says that this is an error.
bool take_second_prefix(std::string_view& text) {
  consume(text, "amdgpu: ");
  return consume(text, "[drm] ") ? consume(text, "*ERROR* ") : take_drm_function(text);
}

/// Removes "[pid 4711] ".
void skip_pid(std::string_view& text) {
  std::string_view rest = text;
  if (consume(rest, "[pid ") && take_unsigned(rest) && consume(rest, "] ")) {
    text = rest;
  }
}

std::optional<DriverMessage> strip_prefix_before_pid(std::string_view message) {
  std::string_view rest = message;
  if (consume(rest, "amdgpu: ") || consume(rest, "kfd2kgd: ")) {
    return DriverMessage{{}, false, rest};
  }
  if (take_drm_function(rest)) {
    return DriverMessage{{}, true, rest};
  }
  if (consume(rest, "kfd kfd: ")) {
    const bool error = take_second_prefix(rest);
    return DriverMessage{{}, error, rest};
  }
  if (!consume(rest, "amdgpu ")) {
    return std::nullopt;
  }
  const std::string_view gpu = take_pci_address(rest);
  if (gpu.empty()) {
    return std::nullopt;
  }
  const bool error = take_second_prefix(rest);
  return DriverMessage{gpu, error, rest};
}

// --- texts with something variable in front

/// "[gfxhub] page fault (src_id:...", "[mmhub0] no-retry page fault (...".
bool is_page_fault(std::string_view text) {
  if (!text.starts_with("[gfxhub") && !text.starts_with("[mmhub")) {
    return false;
  }
  const size_t close = text.find("] ");
  if (close == std::string_view::npos) {
    return false;
  }
  text.remove_prefix(close + 2);
  consume(text, "no-");
  consume(text, "retry ");
  return text.starts_with("page fault (src_id");
}

/// The rest after "ring NAME ", of which NAME is one word.
std::string_view after_ring_name(std::string_view text, std::string_view word) {
  if (!consume(text, word)) {
    return {};
  }
  const size_t blank = text.find(' ');
  return blank == std::string_view::npos || blank == 0 ? std::string_view()
                                                       : text.substr(blank + 1);
}

/// The number after "GPU reset end with ret = ".
bool is_failed_reset_end(std::string_view text) {
  return consume(text, "GPU reset end with ret = ") && !text.starts_with('0');
}

/// "GPU reset(3) failed".
bool is_numbered_reset_failure(std::string_view text) {
  return consume(text, "GPU reset(") && take_unsigned(text) && text.starts_with(") failed");
}

std::optional<EventKind> classify_variable_text(std::string_view text) {
  if (is_page_fault(text)) {
    return EventKind::kGpuPageFault;
  }
  if (after_ring_name(text, "ring ").starts_with("timeout")) {
    return EventKind::kGpuRingTimeout;
  }
  if (after_ring_name(text, "Ring ").starts_with("reset succeeded")) {
    return EventKind::kGpuRingReset;
  }
  if (text.starts_with("GPU ") && after_ring_name(text, "GPU ").starts_with("begin!")) {
    return EventKind::kGpuReset;
  }
  if (is_numbered_reset_failure(text) || is_failed_reset_end(text)) {
    return EventKind::kGpuResetFailed;
  }
  return std::nullopt;
}

std::optional<EventKind> classify_driver_text(std::string_view text) {
  const auto* const known =
      std::find_if(kDriverTexts.begin(), kDriverTexts.end(),
                   [&](const KnownStart& candidate) { return text.starts_with(candidate.start); });
  return known != kDriverTexts.end() ? std::optional(known->kind) : classify_variable_text(text);
}

/// Whether a line tells more of the event that the line before it reported: the block of a page
/// fault, the process behind a ring's timeout.
bool is_detail(std::string_view text) {
  return text.starts_with(' ') || text.starts_with("Process information: ") ||
         text.find("VM_L2_PROTECTION_FAULT_STATUS:") != std::string_view::npos;
}

/// "INFO: task NAME:PID blocked for more than N seconds." NAME may hold anything, so the parts are
/// looked for from the right.
bool is_hung_task(std::string_view message) {
  if (!message.starts_with("INFO: task ") || !message.ends_with(" seconds.")) {
    return false;
  }
  for (const std::string_view middle :
       {" blocked for more than ", " blocked in I/O wait for more than "}) {
    const size_t at = message.rfind(middle);
    const size_t colon = at == std::string_view::npos ? at : message.rfind(':', at);
    if (colon != std::string_view::npos &&
        parse_number<unsigned>(message.substr(colon + 1, at - colon - 1))) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::span<const EventKind> all_event_kinds() {
  return kKinds;
}

std::string_view to_label(EventKind kind) {
  return std::find_if(kLabels.begin(), kLabels.end(),
                      [&](const KindLabel& candidate) { return candidate.kind == kind; })
      ->label;
}

std::optional<DriverMessage> strip_driver_prefix(std::string_view message) {
  auto stripped = strip_prefix_before_pid(message);
  if (stripped) {
    skip_pid(stripped->text);
  }
  return stripped;
}

std::optional<KernelEvent> classify(std::string_view message, std::optional<int> level) {
  if (message.starts_with("[TTM] Buffer eviction failed")) {
    return KernelEvent{EventKind::kGpuBufferEvictionFailed, {}};
  }
  if (message.starts_with("[drm] VRAM is lost due to GPU reset")) {
    return KernelEvent{EventKind::kGpuVramLost, {}};
  }
  if (is_hung_task(message)) {
    return KernelEvent{EventKind::kHungTask, {}};
  }
  if (message.starts_with("oom_reaper: unable to reap pid:")) {
    return KernelEvent{EventKind::kOomReaperFailed, {}};
  }
  const auto driver = strip_driver_prefix(message);
  if (!driver) {
    return std::nullopt;
  }
  if (const auto kind = classify_driver_text(driver->text)) {
    return KernelEvent{*kind, driver->gpu};
  }
  if (is_detail(driver->text)) {
    return std::nullopt;
  }
  const bool is_error = driver->is_error || (level && *level <= kErrorLevel);
  return is_error ? std::optional(KernelEvent{EventKind::kKfdOther, driver->gpu}) : std::nullopt;
}

bool names_gpu_driver(std::string_view stack_line) {
  return stack_line.find("[amdgpu]") != std::string_view::npos ||
         stack_line.find("svm_range_") != std::string_view::npos ||
         stack_line.find("amdgpu_") != std::string_view::npos ||
         stack_line.find(" kfd_") != std::string_view::npos;
}

bool continues_hung_task_report(std::string_view message) {
  return message.starts_with(' ') || message.starts_with("task:") ||
         message.starts_with("Workqueue: ") || message.starts_with("Call Trace:") ||
         message.starts_with("RIP: ") || message.starts_with("RSP: ") ||
         message.starts_with("RAX: ") || message.starts_with("RDX: ") ||
         message.starts_with("RBP: ") || message.starts_with("R10: ") ||
         message.starts_with("R13: ") || message.starts_with("\"echo 0 > /proc/sys/kernel/hung");
}

}  // namespace apu
