#include "verdict/host_verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "exporter/duration.h"
#include "exporter/text.h"
#include "verdict/log_verdict.h"

namespace apu {
namespace {

constexpr double kGibibyte = 1024.0 * 1024 * 1024;
constexpr double kPercent = 100;
constexpr size_t kNameWidth = 40;  // bytes of a seat's name in a sentence

bool any_resident(const HostEvidence& evidence) {
  return std::any_of(evidence.seats.begin(), evidence.seats.end(),
                     [](const auto& seat) { return seat.second.state != SeatState::kDown; });
}

void judge_memory(const HostEvidence& evidence, Judgement& judgement) {
  if (!any_resident(evidence)) {
    return;
  }
  if (evidence.memory_stalled.value_or(0) >= kMemoryStalled) {
    Evidence stalled = make_evidence(
        "tasks wait for memory",
        fmt::format("{:.1f} % of the last minute", *evidence.memory_stalled * kPercent),
        fmt::format("at least {:.0f} %", kMemoryStalled * kPercent), "/proc/pressure/memory");
    stalled.at = evidence.now;
    convict(judgement, Verdict::kMemoryPressure, std::move(stalled));
  }
  if (evidence.pages_taken.value_or(0) >= kPagesTaken) {
    Evidence taken =
        make_evidence("pages reclaimed, moved or swapped out",
                      fmt::format("{:.0f}/s over the last minute", *evidence.pages_taken),
                      fmt::format("at least {:.0f}/s", kPagesTaken), "/proc/vmstat");
    taken.at = evidence.now;
    convict(judgement, Verdict::kMemoryPressure, std::move(taken));
  }
}

void judge_limits(const HostEvidence& evidence, Judgement& judgement) {
  for (const GpuLimit& limit : evidence.limits) {
    if (limit.is_nearly_reached()) {
      Evidence reached = make_evidence(
          limit.what + " nearly full",
          fmt::format("{:.1f} of {:.1f} GiB", limit.used / kGibibyte, limit.size / kGibibyte),
          "less than 2 GiB or 2 % left", limit.source);
      reached.at = evidence.now;
      convict(judgement, Verdict::kGpuMemoryExhausted, std::move(reached));
    }
  }
}

/// After a step of the clock an event may be of the future, and how long ago it was is not known.
bool is_recent(const std::optional<TimePoint>& time, TimePoint now) {
  return time && now - *time <= kRecentEvent && *time - now <= kClockError;
}

void judge_events(const HostEvidence& evidence, std::span<const EventKind> kinds, Verdict verdict,
                  Judgement& judgement) {
  const auto& events = evidence.kernel_log->log.events();
  for (const EventKind kind : kinds) {
    const auto found = events.find(kind);
    if (found == events.end() || !is_recent(found->second.last_time, evidence.now)) {
      continue;
    }
    const EventCounts& counts = found->second;
    Evidence event =
        make_evidence(std::string(to_label(kind)),
                      fmt::format("{} in {} since boot", number_of(lines_of(counts), "line"),
                                  number_of(counts.bursts, "burst")),
                      fmt::format("any in the last {} min", kRecentEvent.count()), "kernel log");
    event.since = counts.bursts > 1 ? counts.last_time : counts.first_time;
    event.at = counts.last_time;
    convict(judgement, verdict, std::move(event));
  }
}

void judge_series(const HostEvidence& evidence, const KernelLogState::HogKey& key,
                  const HogSeries& series, Judgement& judgement) {
  const HogRule rule = hog_rule(*evidence.kernel_log);
  const double rate = live_hog_rate(*evidence.kernel_log, series, evidence.now).value_or(0);
  const std::uint64_t count = series.count(rule);
  if (rate <= kStormRate || rule.doublings(count) < kStormDoublings) {
    return;
  }
  Evidence hogs = make_evidence(
      fmt::format("{} thrashes", key.first),
      fmt::format("{}/s, {} hogs at least", rate_text(rate), count),
      fmt::format("more than {}/s with {} counted", kStormRate,
                  rule.warning_threshold ? *rule.warning_threshold - 1 + (1U << kStormDoublings)
                                         : 1U << kStormDoublings),
      "kernel log");
  // The last storm of this function is the one that goes on.
  const auto storms = find_storms(evidence.kernel_log->log, rule);
  const auto storm = std::find_if(storms.rbegin(), storms.rend(),
                                  [&](const Storm& each) { return each.function == key; });
  const bool found = storm != storms.rend();
  hogs.since = found ? std::optional(storm->from) : series.last_time();
  hogs.at = series.last_time();
  convict(judgement, Verdict::kKfdThrash, std::move(hogs));
  if (found && judgement.since == storm->from) {
    judgement.estimated_since = storm->estimated_start;
  }
}

void judge_hogs(const HostEvidence& evidence, Judgement& judgement) {
  for (const auto& [key, series] : evidence.kernel_log->log.hogs()) {
    if (is_restore_worker(key)) {
      judge_series(evidence, key, series, judgement);
    }
  }
}

std::optional<Verdict> verdict_of(SeatState state) {
  switch (state) {
    case SeatState::kThrashing:
      return Verdict::kKfdThrash;
    case SeatState::kIoStarved:
      return Verdict::kIoStarvation;
    default:
      return std::nullopt;
  }
}

void judge_seats(const HostEvidence& evidence, HostJudgement& host) {
  for (const auto& [name, seat] : evidence.seats) {
    if (is_fault(seat.state)) {
      host.concerned.push_back(name);
    } else if (seat.state == SeatState::kComputing || seat.state == SeatState::kIdle) {
      (seat.serves ? host.safe : host.unproven).push_back(name);
    }
    const auto verdict = verdict_of(seat.state);
    if (!verdict) {
      continue;
    }
    for (Evidence reason : seat.reasons) {
      reason.what = fmt::format("seat {}: {}", cut_text(name, kNameWidth), reason.what);
      reason.since = seat.since;
      reason.at = evidence.now;
      convict(host.judgement, *verdict, std::move(reason));
    }
  }
}

/// Seats that are at fault while nothing says what the host has to do with it.
void doubt_seats(const HostEvidence& evidence, Judgement& judgement) {
  for (const auto& [name, seat] : evidence.seats) {
    if (!is_fault(seat.state) || verdict_of(seat.state)) {
      continue;
    }
    const auto age = std::chrono::duration_cast<std::chrono::seconds>(evidence.now - seat.since);
    std::string doubt = fmt::format("seat {} is {} for {}", cut_text(name, kNameWidth),
                                    to_label(seat.state), format_duration(age));
    if (!seat.reasons.empty()) {
      doubt += ": " + seat.reasons[0].what;
      doubt += seat.reasons[0].value.empty() ? "" : ", " + seat.reasons[0].value;
    }
    judgement.doubts.push_back(std::move(doubt));
  }
}

bool can_tell_health(const HostEvidence& evidence) {
  return evidence.has_procfs &&
         (evidence.no_gpu || (evidence.kernel_log != nullptr && evidence.has_kfd));
}

void add_log_limits(const HostEvidence& evidence, std::vector<std::string>& not_known) {
  if (evidence.kernel_log == nullptr) {
    return;
  }
  if (!evidence.kernel_log->log.covers_boot()) {
    not_known.emplace_back(
        "what the kernel log said before it begins: it does not reach back to "
        "the boot");
  }
  if (!reports_hogs(*evidence.kernel_log)) {
    not_known.emplace_back("hogs of the restore workers: this kernel does not report them");
  }
  for (const auto& [by, count] : evidence.kernel_log->log.lost()) {
    not_known.push_back(
        fmt::format("{} of the kernel log were lost ({})", number_of(count, "record"), by));
  }
}

}  // namespace

bool GpuLimit::is_nearly_reached() const {
  // A limit of 0 is none: a card without that pool.
  return size > 0 && size - used < std::max(kHeadroomBytes, kHeadroomShare * size);
}

HostJudgement judge_host(const HostEvidence& evidence) {
  HostJudgement host;
  host.not_known = evidence.not_known;
  Judgement& judgement = host.judgement;
  judge_memory(evidence, judgement);
  judge_limits(evidence, judgement);
  if (evidence.kernel_log != nullptr) {
    judge_events(evidence, refusal_events(), Verdict::kGpuMemoryExhausted, judgement);
    judge_events(evidence, fault_events(), Verdict::kGpuFault, judgement);
    judge_hogs(evidence, judgement);
  }
  judge_seats(evidence, host);
  doubt_seats(evidence, judgement);
  add_log_limits(evidence, host.not_known);
  if (evidence.seats_omitted > 0) {
    host.not_known.push_back(
        fmt::format("{} beyond --seat.max", number_of(evidence.seats_omitted, "seat")));
  }
  if (judgement.verdict == Verdict::kUnknown && can_tell_health(evidence)) {
    judgement.verdict = Verdict::kHealthy;
  }
  sort_evidence(judgement);
  return host;
}

}  // namespace apu
