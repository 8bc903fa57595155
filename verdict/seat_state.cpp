#include "verdict/seat_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "verdict/log_verdict.h"

namespace apu {
namespace {

using Seconds = std::chrono::duration<double>;
using Reasons = std::vector<Evidence>;

constexpr double kRestoreKworkerCores = 0.5;
constexpr double kMebibyte = 1048576;

std::string seconds_text(Seconds duration) {
  return fmt::format("{:.0f} s", duration.count());
}

std::string share_text(double share) {
  constexpr double kPercent = 100;
  return fmt::format("{:.0f} %", share * kPercent);
}

void add(Reasons& reasons, std::string what, std::string value, std::string threshold,
         std::string source) {
  reasons.push_back(
      make_evidence(std::move(what), std::move(value), std::move(threshold), std::move(source)));
}

// --- thrashing

void add_smi(const ProcessEvidence& evidence, Reasons& reasons) {
  if (!evidence.smi) {
    return;
  }
  if (evidence.smi->rescheduled >= kRescheduleDuration) {
    add(reasons, "restores rescheduled without a success",
        "for " + seconds_text(evidence.smi->rescheduled),
        fmt::format("{:.0f}/s for {}", kReschedulesPerSecond, seconds_text(kRescheduleDuration)),
        "KFD SMI events");
  }
  if (evidence.smi->outstanding && *evidence.smi->outstanding >= kOutstandingEviction) {
    add(reasons, "queues evicted and not restored",
        "for " + seconds_text(*evidence.smi->outstanding),
        "at least " + seconds_text(kOutstandingEviction), "KFD SMI events");
  }
}

bool is_stuck(const ProcessEvidence& evidence) {
  return evidence.phase == LoadPhase::kCold && !evidence.grew() &&
         (evidence.activity.pegged_or_in_kfd >= kStuckLoad ||
          evidence.activity.blocked >= kBlockedSleep);
}

void add_storm(const ProcessEvidence& evidence, Reasons& reasons) {
  if (!evidence.storm.is_storm() || evidence.phase != LoadPhase::kCold || evidence.grew() ||
      evidence.activity.pegged_or_in_kfd < kStuckLoad) {
    return;  // a load that goes on may be slow, and ends
  }
  add(reasons, "load pegged, or asleep in KFD, in a restore storm",
      "for " + seconds_text(evidence.activity.pegged_or_in_kfd),
      "at least " + seconds_text(kStuckLoad), "/proc/PID/task");
  if (evidence.storm.hogs_per_second.value_or(0) > kStormRate) {
    add(reasons, "hogs of the restore workers", rate_text(*evidence.storm.hogs_per_second) + "/s",
        fmt::format("more than {}/s", kStormRate), "kernel log");
  }
  if (evidence.storm.kworker_cores.value_or(0) >= kRestoreKworkerCores) {
    add(reasons, "CPU of kworkers on the restore workers' queues",
        fmt::format("{:.2f} cores", *evidence.storm.kworker_cores),
        fmt::format("at least {} for 30 s", kRestoreKworkerCores), "/proc/PID/stat");
  }
}

Reasons thrashing(const ProcessEvidence& evidence) {
  Reasons reasons;
  add_smi(evidence, reasons);
  if (evidence.evicted_share.value_or(0) >= kEvictedShare) {
    add(reasons, "queues evicted", share_text(*evidence.evicted_share) + " of the last minute",
        "at least " + share_text(kEvictedShare), "evicted_ms");
  }
  if (evidence.resume_failed && is_stuck(evidence)) {
    add(reasons, "KFD failed to resume queues, and the load is stuck", "", "", "kernel log");
  }
  if (evidence.mmap_lock_held) {
    add(reasons, "mmap_lock held", "two probes in a row waited for it", "2", "/proc/PID/cmdline");
  }
  add_storm(evidence, reasons);
  return reasons;
}

// --- the other states

Reasons blocked(const ProcessEvidence& evidence) {
  Reasons reasons;
  const bool goes_on = evidence.activity.blocked_on == TaskWait::kKfd && evidence.grew();
  if (evidence.activity.blocked >= kBlockedSleep && !goes_on) {
    add(reasons,
        fmt::format("thread in disk sleep, waiting for {}",
                    evidence.activity.blocked_on == TaskWait::kOther
                        ? "something unknown"
                        : to_label(evidence.activity.blocked_on)),
        "for " + seconds_text(evidence.activity.blocked), "at least " + seconds_text(kBlockedSleep),
        "/proc/PID/task");
  }
  return reasons;
}

Reasons stalled(const ProcessEvidence& evidence) {
  Reasons reasons;
  if (!evidence.health || !evidence.health->ready) {
    return reasons;
  }
  const HealthEvidence& health = *evidence.health;
  if (health.without_token.value_or(Seconds(0)) >= kNoToken) {
    add(reasons, "slot busy without a token", "for " + seconds_text(*health.without_token),
        "at least " + seconds_text(kNoToken), "/slots");
  }
  if (health.unanswered.value_or(Seconds(0)) >= kNoAnswer) {
    add(reasons, "busy server does not tell of its slots",
        "for " + seconds_text(*health.unanswered), "at least " + seconds_text(kNoAnswer), "/slots");
  }
  return reasons;
}

Reasons spinning(const ProcessEvidence& evidence) {
  Reasons reasons;
  const auto& window = evidence.activity.window;
  if (evidence.phase == LoadPhase::kCold && window && window->is_spin() &&
      evidence.activity.loader_spins) {
    add(reasons, "one thread of a load in a loop without system calls",
        fmt::format("{:.2f} of a core, {:.1f} switches/s", window->hottest.user,
                    window->hottest_switches.value_or(0)),
        fmt::format("{} of a core for {}", kPegged, seconds_text(ProcessHistory::kSpinWindow)),
        "/proc/PID/task");
  }
  return reasons;
}

Reasons io_starved(const ProcessEvidence& evidence) {
  Reasons reasons;
  const auto& window = evidence.activity.window;
  const bool slow = window && window->read_bytes && *window->read_bytes < kStarvedReadRate;
  if (evidence.phase != LoadPhase::kCold || !slow) {
    return reasons;  // one that was there before may serve, and page its model in again
  }
  if (evidence.io_full.value_or(0) >= kIoFull && evidence.grew()) {
    add(reasons, "all tasks of the loading seat wait for storage",
        share_text(*evidence.io_full) + " of the last minute", "at least " + share_text(kIoFull),
        "io.pressure");
  }
  if (evidence.activity.io_wait_share >= kIoWaitShare) {
    add(reasons, "a thread of the loading seat waits for storage",
        "in " + share_text(evidence.activity.io_wait_share) + " of the samples of the last minute",
        "at least " + share_text(kIoWaitShare), "/proc/PID/task");
  }
  if (!reasons.empty()) {
    add(reasons, "reads", fmt::format("{:.1f} MB/s", *window->read_bytes * 1e-6),
        fmt::format("less than {:.0f} MB/s", kStarvedReadRate * 1e-6), "/proc/PID/io");
  }
  return reasons;
}

Reasons loading(const ProcessEvidence& evidence) {
  Reasons reasons;
  const bool grew = evidence.phase == LoadPhase::kCold
                        ? evidence.grew()
                        : evidence.gpu_memory_grew || evidence.memory_grew();
  if (evidence.phase == LoadPhase::kServed || !grew) {
    return reasons;
  }
  const auto& activity = evidence.activity;
  const auto mib = [](const std::optional<std::int64_t>& bytes) {
    return bytes ? fmt::format("{:.0f} MiB", static_cast<double>(*bytes) / kMebibyte)
                 : std::string("unknown");
  };
  add(reasons, "memory or reads grow since its start",
      fmt::format("resident {}, read {}{} in 30 s", mib(activity.resident_growth),
                  mib(activity.read_growth), evidence.gpu_memory_grew ? ", GPU memory too" : ""),
      "", "/proc/PID/status");
  return reasons;
}

Reasons computing(const ProcessEvidence& evidence) {
  Reasons reasons;
  const auto& last = evidence.activity.last;
  if (last && last->hottest.total() >= kComputing) {
    add(reasons, "busiest thread", fmt::format("{:.2f} of a core", last->hottest.total()),
        fmt::format("at least {}", kComputing), "/proc/PID/task");
  }
  return reasons;
}

/// A load that may be at the beginning of a spin, or of a storm: no spin is told from a server that
/// polls before it has lasted.
bool may_become_worse(const ProcessEvidence& evidence) {
  const auto& activity = evidence.activity;
  return evidence.phase == LoadPhase::kCold && activity.last &&
         activity.pegged_or_in_kfd > Seconds(0) &&
         (activity.last->is_spin() || evidence.storm.is_storm());
}

/// What is neither a fault nor a load. nullopt before the second sample.
std::optional<StateFinding> working_or_not(const ProcessEvidence& evidence) {
  if (!evidence.activity.last) {
    return std::nullopt;
  }
  Reasons reasons = computing(evidence);
  return StateFinding{reasons.empty() ? SeatState::kIdle : SeatState::kComputing,
                      std::move(reasons)};
}

/// Whether it was there before the watch, and is so old that what it loaded is loaded.
bool is_resident(const ProcessEvidence& evidence) {
  return evidence.phase == LoadPhase::kUnknown && evidence.holds_gpu_memory &&
         evidence.activity.age.value_or(Seconds(0)) >= kResident;
}

/// Whether it does nothing at all, and waits for nothing that a load waits for.
bool sleeps(const ProcessEvidence& evidence) {
  const ProcessActivity& activity = evidence.activity;
  return activity.last && activity.last->process.user + activity.last->process.system < kAsleep &&
         !activity.stopped && (!evidence.storm.is_storm() || is_resident(evidence)) &&
         std::all_of(activity.blocked_threads.begin(), activity.blocked_threads.end(),
                     [](unsigned threads) { return threads == 0; });
}

/// Whether it does what no load does that hangs: that one polls with a thread that loaded, and in a
/// storm it may sleep as well.
bool does_what_servers_do(const ProcessEvidence& evidence) {
  const ProcessActivity& activity = evidence.activity;
  if (!activity.last || activity.stopped || evidence.grew()) {
    return false;
  }
  if (activity.last->hottest.total() < kComputing) {
    return !evidence.storm.is_storm() && activity.blocked == Seconds(0);
  }
  const bool others_work = !activity.last->others_sleep();  // they send tokens
  return !activity.loader_pegged ||
         (!evidence.storm.is_storm() && (activity.last->pegged.size() > 1 || others_work));
}

struct Rule {
  SeatState state;
  Reasons (*reasons)(const ProcessEvidence&);
};

constexpr std::array kRules{
    Rule{SeatState::kThrashing, thrashing},  Rule{SeatState::kBlocked, blocked},
    Rule{SeatState::kStalled, stalled},      Rule{SeatState::kSpinning, spinning},
    Rule{SeatState::kIoStarved, io_starved}, Rule{SeatState::kLoading, loading}};

}  // namespace

std::string_view to_label(SeatState state) {
  constexpr std::array<std::string_view, kSeatStates> kLabels{"down",    "thrashing", "blocked",
                                                              "stalled", "spinning",  "io_starved",
                                                              "loading", "computing", "idle"};
  return kLabels.at(static_cast<size_t>(state));
}

bool is_fault(SeatState state) {
  return state >= SeatState::kThrashing && state <= SeatState::kIoStarved;
}

bool StormEvidence::is_storm() const {
  return hogs_per_second.value_or(0) > kStormRate ||
         kworker_cores.value_or(0) >= kRestoreKworkerCores;
}

bool ProcessEvidence::memory_grew() const {
  return activity.resident_growth.value_or(0) >= kLoadGrowth;
}

bool ProcessEvidence::grew() const {
  return gpu_memory_grew || memory_grew() || activity.read_growth.value_or(0) >= kLoadGrowth;
}

std::optional<StateFinding> classify(const ProcessEvidence& evidence) {
  for (const Rule& rule : kRules) {
    if (Reasons reasons = rule.reasons(evidence); !reasons.empty()) {
      return StateFinding{rule.state, std::move(reasons)};
    }
  }
  return may_become_worse(evidence) ? std::nullopt : working_or_not(evidence);
}

void ProcessStateTracker::update(ProcessEvidence evidence, Time now) {
  if (evidence.activity.program != program_) {
    *this = ProcessStateTracker();
    program_ = evidence.activity.program;
  }
  watched_from_birth_ = evidence.activity.watched_from_birth;
  if (evidence.health) {
    served_ = served_ || evidence.health->ready;
    watched_from_birth_ = watched_from_birth_ || !evidence.health->ready;
  }
  evidence.phase = phase();
  auto finding = classify(evidence);
  confirmed_ = confirmed_.value_or(now);
  if (!finding && now - *confirmed_ >= kLongestDoubt) {
    finding = working_or_not(evidence);
  }
  if (finding) {
    take(*std::move(finding), now);
  } else {
    better_since_.reset();
  }
  follow_service(evidence, now);
}

void ProcessStateTracker::take(StateFinding finding, Time now) {
  if (state_ && finding.state > *state_) {
    better_since_ = better_since_.value_or(now);
    if (now - *better_since_ < kLeaveAfter) {
      return;
    }
  }
  if (finding.state == state_) {
    better_since_.reset();
  } else {
    enter(finding.state, now);
  }
  confirmed_ = now;
  reasons_ = std::move(finding.evidence);
}

void ProcessStateTracker::follow_service(const ProcessEvidence& evidence, Time now) {
  loaded_ = loaded_ || evidence.holds_gpu_memory || state_ == SeatState::kLoading ||
            state_ == SeatState::kIoStarved;
  if (!sleeps(evidence)) {
    asleep_since_.reset();
  } else {
    // The sample before was of its sleep's start.
    asleep_since_ = asleep_since_.value_or(
        now - std::chrono::duration_cast<Time>(evidence.activity.last->length));
    served_ =
        served_ || ((loaded_ || is_resident(evidence)) && now - *asleep_since_ >= kServedAsleep);
  }
  const bool rests = state_ == SeatState::kComputing || state_ == SeatState::kIdle;
  if (!rests || !does_what_servers_do(evidence)) {
    serving_since_.reset();
    return;
  }
  serving_since_ = serving_since_.value_or(now);
  const auto needed = loaded_ || !watched_from_birth_ ? kServedAfter : kServedWithoutLoad;
  served_ = served_ || now - *serving_since_ >= needed;
}

void ProcessStateTracker::enter(SeatState state, Time now) {
  state_ = state;
  since_ = now;
  better_since_.reset();
}

LoadPhase ProcessStateTracker::phase() const {
  return served_               ? LoadPhase::kServed
         : watched_from_birth_ ? LoadPhase::kCold
                               : LoadPhase::kUnknown;
}

}  // namespace apu
