#include "collectors/seats/states.h"

#include <algorithm>
#include <set>

#include "verdict/log_verdict.h"

namespace apu {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr Seconds kGrowthWindow{30};
constexpr Seconds kEvictedWindow{60};
constexpr Seconds kKworkerWindow{30};
constexpr Seconds kIoWindow{60};

const KfdProcess* kfd_process(const KfdFacts* kfd, const ProcessKey& key) {
  if (kfd == nullptr) {
    return nullptr;
  }
  const auto found = std::find_if(kfd->processes.begin(), kfd->processes.end(),
                                  [&](const KfdProcess& process) { return is_of(process, key); });
  return found == kfd->processes.end() ? nullptr : &*found;
}

/// What KFD gave a process on all GPUs; nullopt where a part is not known.
std::optional<std::uint64_t> allocated(const KfdProcess& process) {
  std::optional<std::uint64_t> sum;
  for (const KfdProcessGpu& gpu : process.gpus) {
    if (!gpu.vram_bytes) {
      return std::nullopt;
    }
    sum = sum.value_or(0) + *gpu.vram_bytes;
  }
  return sum;
}

void add(RecentSeries& series, std::chrono::nanoseconds time,
         const std::optional<std::uint64_t>& value) {
  if (value) {
    series.add(time, static_cast<double>(*value));
  }
}

bool is_loaded(const RecentSeries& bytes) {
  return bytes.last().value_or(0) >= kLoadedGpuBytes;
}

bool has_grown(const RecentSeries& bytes) {
  return bytes.rise(kGrowthWindow).value_or(0) >= static_cast<double>(kGpuGrowth);
}

/// The share of the last minute in which queues were evicted. An eviction that lasted long is added
/// when it ends: one such step is over, and is none that goes on.
std::optional<double> evicted_share(const RecentSeries& series) {
  constexpr double kMilliseconds = 1e-3;
  const auto rate = series.rate(kEvictedWindow);
  const auto recent = series.rise(kEvictedWindow / 2);
  const auto whole = series.rise(kEvictedWindow);
  if (!rate || !recent || !whole || *recent <= 0 || *whole <= *recent) {
    return std::nullopt;
  }
  return *rate * kMilliseconds;
}

bool resume_failed_since(const KernelLogFacts* log, const std::optional<TimePoint>& start) {
  if (log == nullptr || !start) {
    return false;
  }
  const auto found = log->log.events().find(EventKind::kKfdResumeFailed);
  return found != log->log.events().end() && found->second.last_time &&
         *found->second.last_time >= *start;
}

std::optional<std::uint64_t> io_full_us(const CgroupFacts* cgroup, const std::string& seat) {
  if (cgroup == nullptr || !cgroup->memory.contains(seat)) {
    return std::nullopt;
  }
  for (const NamedPressure& named : cgroup->memory.at(seat).pressure) {
    if (named.resource == "io" && named.pressure.full) {
      return named.pressure.full->total_us;
    }
  }
  return std::nullopt;
}

std::optional<HealthEvidence> health_of(const SeatHealthFacts* health, const ProcessKey& key) {
  if (health == nullptr || !health->evidence.contains(key)) {
    return std::nullopt;
  }
  return health->evidence.at(key);
}

}  // namespace

double restore_kworker_seconds(const KworkersFacts& kworkers) {
  const auto& seconds = kworkers.seconds_by_workqueue;
  const auto of = [&](const char* queue) {
    const auto found = seconds.find(queue);
    return found == seconds.end() ? 0 : found->second;
  };
  // Every driver uses events: it tells something where there is nothing better.
  const double workers =
      seconds.contains("events_freezable") ? of("events_freezable") : of("events");
  return workers + of("kfd_restore_wq");
}

std::optional<double> restore_hog_rate(const KernelLogFacts& log, TimePoint now) {
  std::optional<double> sum;
  for (const auto& [key, series] : log.log.hogs()) {
    const auto rate =
        is_restore_worker(key) ? live_hog_rate(log, series, now) : std::optional<double>();
    if (rate) {
      sum = sum.value_or(0) + *rate;
    }
  }
  return sum;
}

std::map<std::string, SeatStateFacts> SeatStates::update(const StateInputs& inputs, TimePoint now,
                                                         std::chrono::nanoseconds monotonic) {
  std::map<std::string, SeatStateFacts> states;
  if (inputs.cgroup == nullptr || inputs.tasks == nullptr) {
    return states;
  }
  const StormEvidence storm = storm_evidence(inputs, now, monotonic);
  for (const Seat& seat : inputs.cgroup->index->seats) {
    SeatHistory& history = seats_[seat.name];
    add(history.io_full_us, monotonic, io_full_us(inputs.cgroup, seat.name));
    const auto processes = inputs.tasks->seats.find(seat.name);
    if (seat.processes.empty() || processes == inputs.tasks->seats.end()) {
      if (seat.processes.empty() && seat.hidden == 0) {
        states[seat.name] = take_state(history, SeatState::kDown, now, monotonic);
      }
      history.counted = monotonic;  // else what it did in this time is not known
      continue;
    }
    for (const SeatProcessFacts& process : processes->second) {
      follow_process(inputs, seat.name, process, storm, inputs.tasks->time);
    }
    if (const SeatProcessFacts* process = worst(processes->second)) {
      const ProcessStateTracker& tracker = processes_.at(process->key).tracker;
      SeatStateFacts facts = take_state(history, *tracker.state(), now, monotonic);
      facts.reasons = tracker.reasons();
      facts.serves = tracker.phase() == LoadPhase::kServed;
      facts.process = process->key;
      facts.command = process->comm;
      states[seat.name] = std::move(facts);
    }
  }
  forget_all_but(inputs);
  return states;
}

void SeatStates::follow_process(const StateInputs& inputs, const std::string& seat,
                                const SeatProcessFacts& facts, const StormEvidence& storm,
                                Time now) {
  Process& process = processes_[facts.key];
  follow_gpu(inputs, facts.key, process, now);
  ProcessEvidence evidence;
  evidence.activity = facts.activity;
  for (const auto& [gpu, series] : process.evicted_ms) {
    const auto share = evicted_share(series);
    if (share && *share > evidence.evicted_share.value_or(0)) {
      evidence.evicted_share = share;
    }
  }
  evidence.resume_failed = resume_failed_since(inputs.kernel_log, facts.start);
  evidence.mmap_lock_held =
      inputs.mmap_lock != nullptr && inputs.mmap_lock->processes.contains(facts.key);
  evidence.gpu_memory_grew = has_grown(process.client_bytes) || has_grown(process.kfd_bytes);
  evidence.holds_gpu_memory = is_loaded(process.client_bytes) || is_loaded(process.kfd_bytes);
  constexpr double kMicroseconds = 1e-6;
  if (const auto full = seats_.at(seat).io_full_us.rate(kIoWindow)) {
    evidence.io_full = *full * kMicroseconds;
  }
  evidence.health = health_of(inputs.health, facts.key);
  evidence.storm = storm;
  process.tracker.update(std::move(evidence), now);
}

void SeatStates::follow_gpu(const StateInputs& inputs, const ProcessKey& key, Process& process,
                            Time now) {
  if (inputs.clients != nullptr) {
    add(process.client_bytes, now, held_by_clients(*inputs.clients, key));
  }
  const KfdProcess* kfd = kfd_process(inputs.kfd, key);
  if (kfd == nullptr) {
    return;
  }
  add(process.kfd_bytes, now, allocated(*kfd));
  for (const KfdProcessGpu& gpu : kfd->gpus) {
    add(process.evicted_ms[gpu.gpu], now, gpu.evicted_ms);
  }
}

StormEvidence SeatStates::storm_evidence(const StateInputs& inputs, TimePoint now, Time monotonic) {
  StormEvidence storm;
  if (inputs.kernel_log != nullptr) {
    storm.hogs_per_second = restore_hog_rate(*inputs.kernel_log, now);
  }
  if (inputs.kworkers != nullptr) {
    kworker_seconds_.add(monotonic, restore_kworker_seconds(*inputs.kworkers));
    storm.kworker_cores = kworker_seconds_.rate(kKworkerWindow);
  }
  return storm;
}

const SeatProcessFacts* SeatStates::worst(const std::vector<SeatProcessFacts>& processes) const {
  const bool any_on_gpu = std::any_of(processes.begin(), processes.end(),
                                      [](const auto& process) { return process.on_gpu; });
  const SeatProcessFacts* worst = nullptr;
  std::optional<SeatState> state;
  for (const SeatProcessFacts& process : processes) {
    const auto& of_process = processes_.at(process.key).tracker.state();
    if ((any_on_gpu && !process.on_gpu) || !of_process) {
      continue;
    }
    if (!state || *of_process < *state) {
      worst = &process;
      state = of_process;
    }
  }
  return worst;
}

SeatStateFacts SeatStates::take_state(SeatHistory& history, SeatState state, TimePoint now,
                                      Time monotonic) {
  if (history.state) {
    history.seconds[*history.state] += Seconds(monotonic - history.counted).count();
  }
  history.counted = monotonic;
  if (history.state != state) {
    history.state = state;
    history.since = monotonic;
  }
  SeatStateFacts facts;
  facts.state = state;
  facts.since = now - std::chrono::duration_cast<TimePoint::duration>(monotonic - history.since);
  facts.seconds = history.seconds;
  return facts;
}

void SeatStates::forget_all_but(const StateInputs& inputs) {
  keep_only(*inputs.cgroup->index, seats_);
  std::set<ProcessKey> living;
  for (const auto& [seat, processes] : inputs.tasks->seats) {
    for (const SeatProcessFacts& process : processes) {
      living.insert(process.key);
    }
  }
  std::erase_if(processes_, [&](const auto& entry) { return !living.contains(entry.first); });
}

}  // namespace apu
