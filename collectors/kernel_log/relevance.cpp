#include "collectors/kernel_log/relevance.h"

#include <algorithm>
#include <array>

#include "collectors/kernel_log/event.h"
#include "collectors/kernel_log/unit_event.h"

namespace apu {
namespace {

// What hog reports, the driver's messages, hung tasks and the OOM killer's lines begin with.
constexpr std::array<std::string_view, 13> kStarts{
    "workqueue: ",     "amdgpu",      "kfd",           "[drm",
    "[TTM]",           "INFO: task ", "oom-kill:",     "oom_reaper:",
    "Out of memory",   "Tasks in ",   "Memory cgroup", "Linux version ",
    "Future hung task"};

constexpr std::string_view kSuppressed = "callbacks suppressed";

bool begins_like_one_that_counts(std::string_view message) {
  constexpr std::string_view kFirsts = "wak[IoOTMLF";  // most lines begin with none of these
  return !message.empty() && kFirsts.find(message.front()) != std::string_view::npos &&
         std::any_of(kStarts.begin(), kStarts.end(),
                     [&](std::string_view start) { return message.starts_with(start); });
}

/// "SITE: 12 callbacks suppressed", and blanks.
bool tells_of_suppression(std::string_view message) {
  const size_t last = message.find_last_not_of(" \t");
  return last != std::string_view::npos && message.substr(0, last + 1).ends_with(kSuppressed);
}

}  // namespace

bool may_matter(std::string_view message) {
  return begins_like_one_that_counts(message) || tells_of_suppression(message) ||
         (continues_hung_task_report(message) && names_gpu_driver(message));
}

bool may_matter_of_others(std::string_view message) {
  return message.starts_with("Missed ") || message.starts_with("/dev/kmsg buffer overrun") ||
         parse_unit_event(message, {}).has_value();
}

}  // namespace apu
