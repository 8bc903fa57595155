#include <array>

#include "collectors/kernel_log/kernel_log.h"

namespace apu {
namespace {

using prometheus::MetricType;

constexpr MetricInfo kHogs{
    "apu_workqueue_hog_events_total", MetricType::Counter, "function,module",
    "Last reported count of work items of this function that held a CPU too long, since boot; the "
    "true count is not lower (kernel log, workqueue: ... hogged CPU)"};
constexpr MetricInfo kUpperBound{
    "apu_workqueue_hog_events_upper_bound", MetricType::Gauge, "function,module",
    "The true count is below this, since the kernel would have printed; absent after lost records "
    "(kernel log)"};
constexpr MetricInfo kDoublings{
    "apu_workqueue_hog_doublings_total", MetricType::Counter, "function,module",
    "Binary logarithm of the count above the warning threshold: one for each report that the "
    "kernel makes of this function (kernel log)"};
constexpr MetricInfo kReports{"apu_workqueue_hog_reports_total", MetricType::Counter,
                              "function,module",
                              "Hog report lines seen; not a count of hogs (kernel log)"};
constexpr MetricInfo kLastReport{"apu_workqueue_hog_last_report_timestamp_seconds",
                                 MetricType::Gauge, "function,module",
                                 "Unix time of the last hog report (kernel log)"};
constexpr MetricInfo kDoublingInterval{
    "apu_workqueue_hog_doubling_interval_seconds", MetricType::Gauge, "function,module",
    "Time in which the count doubles, or the time since the last report if that is longer; from "
    "count 35 on (kernel log)"};
constexpr MetricInfo kRate{
    "apu_workqueue_hog_events_per_second", MetricType::Gauge, "function,module",
    "Hogs per second between the last two reports, or the most that the silence since then or the "
    "CPU time of kworkers allows; absent below two reports (kernel log, /proc/PID/stat)"};
constexpr MetricInfo kThreshold{"apu_workqueue_hog_threshold_seconds", MetricType::Gauge, "",
                                "CPU time from which a work item is a hog "
                                "(/sys/module/workqueue/parameters/cpu_intensive_thresh_us)"};
constexpr MetricInfo kWarningThreshold{
    "apu_workqueue_hog_warning_threshold", MetricType::Gauge, "",
    "Count from which the kernel reports hogs; 0 if it does not "
    "(/sys/module/workqueue/parameters/cpu_intensive_warning_thresh)"};
constexpr MetricInfo kEvents{"apu_kernel_events_total", MetricType::Counter, "event,gpu",
                             "Lines of the kernel log that stand for the event (kernel log)"};
constexpr MetricInfo kBursts{"apu_kernel_event_bursts_total", MetricType::Counter, "event",
                             "Groups of such lines that are at most 5 seconds apart (kernel log)"};
constexpr MetricInfo kLastEvent{"apu_kernel_event_last_timestamp_seconds", MetricType::Gauge,
                                "event", "Unix time of the last such line (kernel log)"};
constexpr MetricInfo kOomEvents{
    "apu_oom_events_total", MetricType::Counter, "scope",
    "Times that the OOM killer chose a victim, for want of memory of the host or of a memory "
    "cgroup (kernel log, oom-kill:)"};
constexpr MetricInfo kOomKills{
    "apu_oom_kills_total", MetricType::Counter, "scope,unit",
    "Processes that the OOM killer killed, by the unit or container they were in (kernel log)"};
constexpr MetricInfo kLastOomKill{"apu_oom_kill_last_timestamp_seconds", MetricType::Gauge,
                                  "scope,unit", "Unix time of the last such kill (kernel log)"};
constexpr MetricInfo kSigkills{
    "apu_unit_sigkills_total", MetricType::Counter, "unit",
    "Processes that the service manager killed by SIGKILL as they did not stop (service manager's "
    "log)"};
constexpr MetricInfo kLastSigkill{"apu_unit_sigkill_last_timestamp_seconds", MetricType::Gauge,
                                  "unit",
                                  "Unix time of the last such kill (service manager's log)"};
constexpr MetricInfo kStopTimeouts{
    "apu_unit_stop_timeouts_total", MetricType::Counter, "unit",
    "Times that the unit did not stop in its time (service manager's log)"};
constexpr MetricInfo kLastStopTimeout{"apu_unit_stop_timeout_last_timestamp_seconds",
                                      MetricType::Gauge, "unit",
                                      "Unix time of the last such timeout (service manager's log)"};
constexpr MetricInfo kLines{"apu_kernel_log_lines_total", MetricType::Counter, "",
                            "Records of the kernel read, this boot (kernel log)"};
constexpr MetricInfo kIgnored{
    "apu_kernel_log_ignored_total", MetricType::Counter, "reason",
    "Records read that count nothing: written by user space, or of an earlier boot (kernel log)"};
constexpr MetricInfo kLost{"apu_kernel_log_lost_total", MetricType::Counter, "by",
                           "Records known to be lost before they could be read (kernel log)"};
constexpr MetricInfo kCoversBoot{"apu_kernel_log_covers_boot", MetricType::Gauge, "",
                                 "1 if the log, or the log and what --state.file kept, reaches "
                                 "back to the start of this boot, so "
                                 "that its counts are whole, else 0 (kernel log)"};
constexpr std::array kMetrics{kHogs,
                              kUpperBound,
                              kDoublings,
                              kReports,
                              kLastReport,
                              kDoublingInterval,
                              kRate,
                              kThreshold,
                              kWarningThreshold,
                              kEvents,
                              kBursts,
                              kLastEvent,
                              kOomEvents,
                              kOomKills,
                              kLastOomKill,
                              kSigkills,
                              kLastSigkill,
                              kStopTimeouts,
                              kLastStopTimeout,
                              kLines,
                              kIgnored,
                              kLost,
                              kCoversBoot};

// The work functions of the fault: their counters exist from 0 on.
constexpr std::array kRestoreWorkers{"amdgpu_amdkfd_restore_userptr_worker",
                                     "svm_range_restore_work"};

std::optional<double> unix_seconds(const std::optional<TimePoint>& time) {
  return time ? std::optional(to_unix_seconds(*time)) : std::nullopt;
}

void add_hogs(MetricWriter& metrics, const KernelLogFacts& facts, TimePoint now) {
  const HogRule rule = hog_rule(facts);
  for (const auto& [key, series] : facts.log.hogs()) {
    const auto& [function, module] = key;
    const std::uint64_t count = series.count(rule);
    metrics.set(kHogs, {function, module}, static_cast<double>(count));
    metrics.set(kUpperBound, {function, module}, series.upper_bound(rule));
    metrics.set(kDoublings, {function, module}, rule.doublings(count));
    metrics.set(kReports, {function, module}, static_cast<double>(series.lines()));
    metrics.set(kLastReport, {function, module}, unix_seconds(series.last_time()));
    metrics.set(kDoublingInterval, {function, module}, series.doubling_interval(rule, now));
    metrics.set(kRate, {function, module}, live_hog_rate(facts, series, now));
  }
}

void add_silent_restore_workers(MetricWriter& metrics, const KernelLogFacts& facts) {
  if (!facts.driver_module || !reports_hogs(facts)) {
    return;
  }
  const std::string& module = *facts.driver_module;
  for (const char* function : kRestoreWorkers) {
    if (!facts.log.hogs().contains({function, module})) {
      metrics.set(kHogs, {function, module}, 0);
      metrics.set(kDoublings, {function, module}, 0);
      metrics.set(kReports, {function, module}, 0);
    }
  }
}

void add_events(MetricWriter& metrics, const KernelLogState& log) {
  for (const EventKind kind : all_event_kinds()) {
    const std::string_view event = to_label(kind);
    const auto found = log.events().find(kind);
    if (found == log.events().end()) {
      metrics.set(kEvents, {event, ""}, 0);
      metrics.set(kBursts, {event}, 0);
      continue;
    }
    const EventCounts& counts = found->second;
    for (const auto& [gpu, lines] : counts.lines) {
      metrics.set(kEvents, {event, gpu}, static_cast<double>(lines));
    }
    metrics.set(kBursts, {event}, static_cast<double>(counts.bursts));
    metrics.set(kLastEvent, {event}, unix_seconds(counts.last_time));
  }
}

void add_oom(MetricWriter& metrics, const OomState& oom) {
  for (const OomScope scope : {OomScope::kHost, OomScope::kMemcg}) {
    const auto found = oom.events().find(scope);
    metrics.set(kOomEvents, {to_label(scope)},
                found == oom.events().end() ? 0 : static_cast<double>(found->second));
  }
  for (const auto& [key, counts] : oom.kills()) {
    const auto& [scope, unit] = key;
    metrics.set(kOomKills, {to_label(scope), unit}, static_cast<double>(counts.kills));
    metrics.set(kLastOomKill, {to_label(scope), unit}, unix_seconds(counts.last_time));
  }
}

void add_units(MetricWriter& metrics, const KernelLogState& log) {
  for (const auto& [key, counts] : log.units()) {
    const auto& [kind, unit] = key;
    const bool sigkill = kind == UnitEventKind::kSigkill;
    metrics.set(sigkill ? kSigkills : kStopTimeouts, {unit}, static_cast<double>(counts.events));
    metrics.set(sigkill ? kLastSigkill : kLastStopTimeout, {unit}, unix_seconds(counts.last_time));
  }
}

void add_coverage(MetricWriter& metrics, const KernelLogState& log) {
  metrics.set(kLines, static_cast<double>(log.lines()));
  metrics.set(kIgnored, {"userspace"}, static_cast<double>(log.ignored()));
  metrics.set(kIgnored, {"earlier_boot"}, static_cast<double>(log.of_earlier_boots()));
  for (const char* by :
       {"kmsg_overrun", "journald_missed", "journal_unreadable", "ratelimit", "hung_task_limit"}) {
    const auto found = log.lost().find(by);
    metrics.set(kLost, {by}, found == log.lost().end() ? 0 : static_cast<double>(found->second));
  }
  metrics.set(kCoversBoot, log.covers_boot() ? 1 : 0);
}

}  // namespace

Families to_families(const KernelLogFacts& facts, TimePoint now) {
  constexpr double kMicroseconds = 1e-6;
  MetricWriter metrics;
  add_hogs(metrics, facts, now);
  add_silent_restore_workers(metrics, facts);
  if (facts.hog_threshold_us) {
    metrics.set(kThreshold, static_cast<double>(*facts.hog_threshold_us) * kMicroseconds);
  }
  metrics.set(kWarningThreshold, facts.hog_warning_threshold);
  add_events(metrics, facts.log);
  add_oom(metrics, facts.log.oom());
  add_units(metrics, facts.log);
  add_coverage(metrics, facts.log);
  return metrics.take();
}

std::span<const MetricInfo> kernel_log_metrics() {
  return kMetrics;
}

}  // namespace apu
