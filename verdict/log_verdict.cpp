#include "verdict/log_verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "exporter/text.h"

namespace apu {
namespace {

double seconds_between(TimePoint from, TimePoint to) {
  return std::chrono::duration<double>(to - from).count();
}

/// Events that a burst of hogs leaves behind when it was no healthy load.
constexpr std::array kAftermathEvents{
    EventKind::kUserptrRestoreFailed, EventKind::kKfdResumeFailed, EventKind::kQueueRestoreFailed,
    EventKind::kProcessRestoreFailed, EventKind::kMesTimeout,      EventKind::kGpuPageFault,
    EventKind::kHungTaskGpu,          EventKind::kOomReaperFailed};

/// Events that mean a fault of the GPU or its firmware.
constexpr std::array kFaultEvents{EventKind::kMesTimeout,
                                  EventKind::kMesRingFull,
                                  EventKind::kGpuRingTimeout,
                                  EventKind::kGpuReset,
                                  EventKind::kGpuResetFailed,
                                  EventKind::kGpuVramLost,
                                  EventKind::kGpuLost,
                                  EventKind::kHungTaskGpu,
                                  EventKind::kQueueEvictFailed,
                                  EventKind::kQueueRestoreFailed,
                                  EventKind::kProcessEvictFailed,
                                  EventKind::kProcessRestoreFailed};

/// Events that mean that memory for the GPU was refused.
constexpr std::array kRefusalEvents{EventKind::kSvmMappingFailed,
                                    EventKind::kGpuBufferEvictionFailed};

/// Only the first report of a series can have hogs before it that no line tells of.
std::optional<TimePoint> estimate_start(const HogSeries& series, const HogRule& rule,
                                        const HogInterval& interval) {
  if (rule.snap(series.reports().front().printed) != interval.from_count) {
    return std::nullopt;
  }
  const std::chrono::duration<double> before(static_cast<double>(interval.from_count) /
                                             interval.rate());
  return interval.from - std::chrono::duration_cast<std::chrono::seconds>(before);
}

void add_storms_of(const KernelLogState::HogKey& key, const HogSeries& series, const HogRule& rule,
                   std::vector<Storm>& storms) {
  bool open = false;
  double rate_before = 0;
  for (const HogInterval& interval : hog_intervals(series, rule)) {
    const bool may_span_silence =
        interval.to - interval.from > kLongInterval && interval.rate() * kSlowedDown < rate_before;
    rate_before = interval.rate();
    const bool storms_here = interval.rate() > kStormRate && !may_span_silence &&
                             rule.doublings(interval.from_count) >= kStormDoublings;
    if (!storms_here) {
      open = false;
    } else if (open) {
      storms.back().to = interval.to;
      storms.back().to_count = interval.to_count;
    } else {
      storms.push_back({key, interval.from, interval.to, interval.from_count, interval.to_count,
                        estimate_start(series, rule, interval)});
      open = true;
    }
  }
}

std::optional<TimePoint> earliest(const std::optional<TimePoint>& a,
                                  const std::optional<TimePoint>& b) {
  return a && b ? std::min(*a, *b) : a ? a : b;
}

Evidence storm_evidence(const Storm& storm) {
  return {
      fmt::format("{} thrashes", storm.function.first),
      fmt::format("{} hogs/s, {} of them between the reports of {} and {}", rate_text(storm.rate()),
                  storm.to_count - storm.from_count, storm.from_count, storm.to_count),
      fmt::format("more than {}/s for {} min", kStormRate, kStormDuration.count()), storm.from};
}

/// What happened soon after a burst that no healthy load leaves behind; empty if nothing.
std::string aftermath_of(TimePoint from, TimePoint to, const LogFacts& facts) {
  for (const auto& [kind, time] : facts.aftermath) {
    if (time >= from && time <= to + kAftermath) {
      return std::string(to_label(kind));
    }
  }
  return {};
}

void judge_storms(const LogFacts& facts, Judgement& judgement) {
  std::vector<Storm> storms = find_storms(facts.log, facts.rule);
  for (const auto& [key, series] : facts.ended_series) {
    if (is_restore_worker(key)) {
      add_storms_of(key, series, facts.rule, storms);
    }
  }
  for (const Storm& storm : storms) {
    const std::string aftermath = aftermath_of(storm.from, storm.to, facts);
    if (storm.is_sustained() || !aftermath.empty()) {
      judgement.estimated_since = earliest(judgement.estimated_since, storm.estimated_start);
    }
    if (storm.is_sustained()) {
      convict(judgement, Verdict::kKfdThrash, storm_evidence(storm));
    } else if (!aftermath.empty()) {
      Evidence evidence = storm_evidence(storm);
      evidence.threshold = "a short burst, but followed by: " + aftermath;
      convict(judgement, Verdict::kKfdThrash, std::move(evidence));
    } else {
      judgement.doubts.push_back(fmt::format(
          "{}: a burst of at least {} hogs at {}/s, {:.0f} s long. A healthy load of a large "
          "model can do this; a storm that goes on looks the same until the next report, at {}",
          storm.function.first, storm.to_count - storm.from_count, rate_text(storm.rate()),
          seconds_between(storm.from, storm.to), facts.rule.next(storm.to_count)));
    }
  }
}

/// A large count of a worker that no two reports give a rate for: by the average since boot.
void judge_lone_report(const LogFacts& facts, const KernelLogState::HogKey& key,
                       const HogSeries& series, Judgement& judgement) {
  const std::uint64_t count = series.count(facts.rule);
  if (!is_restore_worker(key) || facts.rule.doublings(count) < kLargeDoublings ||
      !hog_intervals(series, facts.rule).empty()) {
    return;
  }
  const auto time = series.last_time();
  const bool dated = time && facts.boot_time && *time > *facts.boot_time;
  const double average =
      dated ? static_cast<double>(count) / seconds_between(*facts.boot_time, *time) : 0;
  if (average > kStormRate) {
    convict(judgement, Verdict::kKfdThrash,
            {fmt::format("{} thrashes", key.first),
             fmt::format("{} hogs at least, {}/s on average since boot", count, rate_text(average)),
             fmt::format("more than {}/s", kStormRate), facts.boot_time});
    return;
  }
  const std::string aftermath = time ? aftermath_of(*time, *time, facts) : std::string();
  if (!aftermath.empty()) {
    convict(judgement, Verdict::kKfdThrash,
            {fmt::format("{} thrashes", key.first), fmt::format("{} hogs at least", count),
             "followed by: " + aftermath, time});
    return;
  }
  judgement.doubts.push_back(
      fmt::format("{}: at least {} hogs since boot, which is far more than loads make; the rate is "
                  "unknown, since the log has one report only",
                  key.first, count));
}

void judge_lone_reports(const LogFacts& facts, Judgement& judgement) {
  for (const auto& [key, series] : facts.log.hogs()) {
    judge_lone_report(facts, key, series, judgement);
  }
  for (const auto& [key, series] : facts.ended_series) {
    judge_lone_report(facts, key, series, judgement);
  }
}

void judge_hung_workers(const LogFacts& facts, Judgement& judgement) {
  if (facts.hung_restore_workers > 0) {
    convict(judgement, Verdict::kKfdThrash,
            {"a restore worker hangs", number_of(facts.hung_restore_workers, "hung-task report"),
             "any", facts.first_hung_restore_worker});
  }
}

template <size_t N>
void judge_events(const KernelLogState& log, const std::array<EventKind, N>& kinds, Verdict verdict,
                  Judgement& judgement) {
  for (const EventKind kind : kinds) {
    const auto found = log.events().find(kind);
    if (found != log.events().end()) {
      const EventCounts& counts = found->second;
      convict(judgement, verdict,
              {std::string(to_label(kind)),
               fmt::format("{} in {}", number_of(lines_of(counts), "line"),
                           number_of(counts.bursts, "burst")),
               "any", counts.first_time});
    }
  }
}

void judge_oom(const KernelLogState& log, Judgement& judgement) {
  const auto found = log.oom().events().find(OomScope::kHost);
  if (found != log.oom().events().end()) {
    convict(judgement, Verdict::kMemoryPressure,
            {"the host ran out of memory", number_of(found->second, "OOM event"), "any",
             log.oom().first_host_event()});
  }
}

void doubt_resume_failures(const KernelLogState& log, Judgement& judgement) {
  for (const EventKind kind :
       {EventKind::kKfdResumeFailed, EventKind::kKfdQuiesceFailed, EventKind::kUserptrRestoreFailed,
        EventKind::kUserptrGetPagesFailed}) {
    const auto found = log.events().find(kind);
    if (found != log.events().end() && judgement.verdict < Verdict::kGpuFault) {
      judgement.doubts.push_back(
          fmt::format("{}: {}. Without hogs, resets or hung tasks beside them they can be "
                      "those of a process that ended",
                      to_label(kind), number_of(lines_of(found->second), "line")));
    }
  }
}

}  // namespace

bool is_aftermath(EventKind kind) {
  return std::find(kAftermathEvents.begin(), kAftermathEvents.end(), kind) !=
         kAftermathEvents.end();
}

std::string rate_text(double rate) {
  constexpr double kTens = 9.995;
  constexpr double kSmall = 0.095;
  if (rate >= kTens) {
    return fmt::format("{:.1f}", rate);
  }
  return rate < kSmall ? fmt::format("{:.1g}", rate) : fmt::format("{:.2f}", rate);
}

double HogInterval::rate() const {
  return static_cast<double>(to_count - from_count) / seconds_between(from, to);
}

double Storm::rate() const {
  return static_cast<double>(to_count - from_count) / seconds_between(from, to);
}

std::vector<HogInterval> hog_intervals(const HogSeries& series, const HogRule& rule) {
  using std::chrono::floor;
  using std::chrono::seconds;
  std::vector<HogInterval> intervals;
  std::optional<HogReportTime> begin;  // the last of its second
  for (const HogReportTime& report : series.reports()) {
    if (!report.time) {
      continue;
    }
    const auto same_second = [&](TimePoint time) {
      return floor<seconds>(time) == floor<seconds>(*report.time);
    };
    if (begin && *report.time < *begin->time) {
      begin = report;  // the clock was set back
      continue;
    }
    if (!intervals.empty() && same_second(intervals.back().to)) {
      intervals.back().to = *report.time;
      intervals.back().to_count = rule.snap(report.printed);
    } else if (begin && !same_second(*begin->time)) {
      intervals.push_back(
          {rule.snap(begin->printed), rule.snap(report.printed), *begin->time, *report.time});
    }
    begin = report;
  }
  return intervals;
}

std::span<const EventKind> fault_events() {
  return kFaultEvents;
}

std::span<const EventKind> refusal_events() {
  return kRefusalEvents;
}

std::uint64_t lines_of(const EventCounts& counts) {
  std::uint64_t lines = 0;
  for (const auto& [gpu, number] : counts.lines) {
    lines += number;
  }
  return lines;
}

bool is_restore_worker(const KernelLogState::HogKey& key) {
  const auto& [function, module] = key;
  const bool ours = module.empty() || module == "amdgpu";
  return ours && (function == "amdgpu_amdkfd_restore_userptr_worker" ||
                  function == "svm_range_restore_work");
}

std::vector<Storm> find_storms(const KernelLogState& log, const HogRule& rule) {
  std::vector<Storm> storms;
  for (const auto& [key, series] : log.hogs()) {
    if (is_restore_worker(key)) {
      add_storms_of(key, series, rule, storms);
    }
  }
  std::stable_sort(storms.begin(), storms.end(),
                   [](const Storm& a, const Storm& b) { return a.from < b.from; });
  return storms;
}

Judgement judge_log(const LogFacts& facts) {
  Judgement judgement;
  judge_oom(facts.log, judgement);
  judge_events(facts.log, kRefusalEvents, Verdict::kGpuMemoryExhausted, judgement);
  judge_events(facts.log, kFaultEvents, Verdict::kGpuFault, judgement);
  judge_hung_workers(facts, judgement);
  judge_lone_reports(facts, judgement);
  judge_storms(facts, judgement);
  doubt_resume_failures(facts.log, judgement);
  // The strongest evidence first.
  std::reverse(judgement.evidence.begin(), judgement.evidence.end());
  return judgement;
}

}  // namespace apu
