#include "verdict/advice.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/report.h"
#include "collectors/kernel_log/oom.h"
#include "exporter/text.h"
#include "verdict/log_verdict.h"

namespace apu {
namespace {

/// Whether a kernel is older than 6.5, the first that reports hogs.
bool reports_no_hogs(std::string_view kernel) {
  constexpr std::uint64_t kFirstMajor = 6;
  constexpr std::uint64_t kFirstMinor = 5;
  const auto major = take_unsigned(kernel);
  const bool point = consume(kernel, ".");
  const auto minor = take_unsigned(kernel);
  return major && point && minor &&
         (*major < kFirstMajor || (*major == kFirstMajor && *minor < kFirstMinor));
}

void add_hog_limits(const BootAnalysis& boot, std::vector<std::string>& limits) {
  if (boot.log.hogs().empty()) {
    limits.push_back(
        reports_no_hogs(boot.kernel)
            ? fmt::format("Kernel {} reports no hogs at all: the first that does is 6.5",
                          to_valid_utf8(boot.kernel))
            : "No hog report stands in it. That proves little: kernels before 6.5, and those built "
              "without CONFIG_WQ_CPU_INTENSIVE_REPORT, print none, and restore passes that sleep "
              "are never counted");
  }
  for (const auto& [key, series] : boot.log.hogs()) {
    const std::uint64_t count = series.count(boot.rule);
    const auto bound = series.upper_bound(boot.rule);
    if (!is_restore_worker(key)) {
      continue;
    }
    limits.push_back(
        bound ? fmt::format("{}: after the report of {} up to {} more hogs leave no line",
                            key.first, count, *bound - 1 - count)
              : fmt::format("{}: records were lost after the report of {}, so later ones may be "
                            "missing",
                            key.first, count));
  }
}

void add_loss_limits(const BootAnalysis& boot, std::vector<std::string>& limits) {
  for (const auto& [by, count] : boot.log.lost()) {
    limits.push_back(by == "hung_task_limit"
                         ? "The kernel stopped reporting hung tasks: more may have hung"
                         : fmt::format("{} records were lost ({})", count, by));
  }
}

std::vector<std::string> no_fault_advice() {
  return {
      "If a load hangs all the same, the log may not tell: look at the live host with "
      "apu_exporter --once (pressure, swap, kworker CPU), and save the whole log of the boot with "
      "journalctl -b -o export > log"};
}

}  // namespace

std::vector<std::string> limits_of(const BootAnalysis& boot) {
  std::vector<std::string> limits;
  if (!boot.begins_here) {
    limits.emplace_back(
        "It does not reach back to the start of the boot: what came before is not counted");
  }
  add_hog_limits(boot, limits);
  add_loss_limits(boot, limits);
  if (boot.hogs_without_count > 0) {
    limits.push_back(
        fmt::format("{} hog reports are cut off before their count", boot.hogs_without_count));
  }
  if (!boot.has_manager_lines) {
    limits.emplace_back(
        "It has no lines of the service manager: units that had to be killed, and whether the boot "
        "ended in order, cannot be seen (journalctl -b without -k has them)");
  }
  if (!boot.last_time) {
    limits.emplace_back("Its lines have no stamps: it gives no rate and no time");
  } else if (boot.times_are_uptime) {
    limits.emplace_back("Its stamps count from the boot: the time of day is not in it");
  }
  return limits;
}

std::vector<std::string> advice_for(const Analysis& analysis) {
  const BootAnalysis* worst = analysis.worst();
  const Verdict verdict = worst == nullptr ? Verdict::kUnknown : worst->judgement.verdict;
  return is_fault(verdict) ? advice_for(verdict) : no_fault_advice();
}

}  // namespace apu
