#include "collectors/seat_tasks/activity.h"

#include <algorithm>
#include <utility>

namespace apu {
namespace {

using Seconds = std::chrono::duration<double>;

/// How much a counter rose; 0 for one that fell, which none of these does.
double rise(std::uint64_t before, std::uint64_t after) {
  return after > before ? static_cast<double>(after - before) : 0;
}

std::optional<double> rate(const std::optional<std::uint64_t>& before,
                           const std::optional<std::uint64_t>& after, Seconds length) {
  return before && after ? std::optional(rise(*before, *after) / length.count()) : std::nullopt;
}

struct ThreadInterval {
  CpuShare cpu;
  double wanted = 0;  // running, or waiting to run
  std::optional<double> voluntary_switches;

  [[nodiscard]] bool is_pegged() const {
    return cpu.total() >= kPegged || (wanted >= kPegged && cpu.total() >= kPeggedOnBusyHost);
  }
};

ThreadInterval thread_between(const TaskSample& before, const TaskSample& after, Seconds length) {
  ThreadInterval thread;
  const double seconds = length.count();
  thread.cpu.user = rise(before.user_ticks, after.user_ticks) / ticks_per_second() / seconds;
  thread.cpu.system = rise(before.system_ticks, after.system_ticks) / ticks_per_second() / seconds;
  thread.wanted = thread.cpu.total();
  if (before.sched && after.sched && after.sched->run_ns > 0) {
    constexpr double kNanoseconds = 1e-9;
    const double run = rise(before.sched->run_ns, after.sched->run_ns) * kNanoseconds / seconds;
    const double wait = rise(before.sched->wait_ns, after.sched->wait_ns) * kNanoseconds / seconds;
    // Exact, where ticks are coarse; these tell only how it parts.
    const double ticks = thread.cpu.total();
    const double scale = ticks > 0 ? run / ticks : 0;
    thread.cpu = {thread.cpu.user * scale, thread.cpu.system * scale};
    thread.wanted = run + wait;
  }
  thread.voluntary_switches = rate(before.voluntary_switches, after.voluntary_switches, length);
  return thread;
}

using TasksByKey = std::map<ProcessIdentity, const TaskSample*>;

TasksByKey by_key(const ProcessSample& sample) {
  TasksByKey tasks;
  for (const TaskSample& task : sample.tasks) {
    tasks[task.key] = &task;
  }
  return tasks;
}

/// The sample of the thread `key`; that of a thread that has done nothing yet if there is none.
TaskSample task_in(const TasksByKey& tasks, const ProcessIdentity& key) {
  const auto found = tasks.find(key);
  if (found != tasks.end()) {
    return *found->second;
  }
  TaskSample fresh;
  fresh.key = key;
  fresh.sched = SchedStat{};
  fresh.voluntary_switches = 0;
  fresh.involuntary_switches = 0;
  return fresh;
}

std::optional<std::int64_t> growth(const std::optional<std::uint64_t>& before,
                                   const std::optional<std::uint64_t>& after) {
  return before && after ? std::optional(static_cast<std::int64_t>(*after - *before))
                         : std::nullopt;
}

/// The memory of a program that has just begun.
PidStatus no_memory() {
  PidStatus status;
  status.anon_bytes = 0;
  status.file_bytes = 0;
  status.shmem_bytes = 0;
  return status;
}

/// A process that has just been made.
ProcessSample newborn(const ProcessSample& first) {
  ProcessSample sample;
  sample.key = first.key;
  sample.time =
      first.time - std::chrono::duration_cast<std::chrono::nanoseconds>(first.age.value());
  sample.status = no_memory();
  sample.read_bytes = 0;
  return sample;
}

/// exec() ends all threads but one and keeps what makes the process the same. One with more threads
/// has only renamed itself.
bool is_other_program(const ProcessSample& before, const ProcessSample& now) {
  return before.comm != now.comm && before.tasks.size() <= 1;
}

bool is_stopped(const ProcessSample& sample) {
  return !sample.tasks.empty() &&
         std::all_of(sample.tasks.begin(), sample.tasks.end(),
                     [](const TaskSample& task) { return task.state == 'T' || task.state == 't'; });
}

}  // namespace

bool ProcessInterval::is_spin() const {
  return pegged.size() == 1 && spinning_threads == 1 && process.system <= kSpinSystem &&
         hottest_switches && *hottest_switches <= kSpinVoluntarySwitches && others_sleep() &&
         faults <= kSpinFaults && (!read_bytes || *read_bytes < kSpinReadBytes);
}

bool ProcessInterval::others_sleep() const {
  return other_switches && *other_switches <= kSpinOtherSwitches;
}

ProcessInterval interval_between(const ProcessSample& before, const ProcessSample& after) {
  ProcessInterval interval;
  interval.length = after.time - before.time;
  const double seconds = interval.length.count();
  double switches = 0;
  bool switches_known = true;
  const TasksByKey earlier = by_key(before);
  for (const TaskSample& task : after.tasks) {
    const ThreadInterval thread = thread_between(task_in(earlier, task.key), task, interval.length);
    interval.process.user += thread.cpu.user;
    interval.process.system += thread.cpu.system;
    interval.cpu[task.key] = thread.cpu.total() * seconds;
    if (thread.cpu.total() > interval.hottest.total()) {
      interval.hottest = thread.cpu;
      interval.hottest_switches = thread.voluntary_switches;
      interval.hottest_thread = task.key;
    }
    if (thread.is_pegged()) {
      interval.pegged.insert(task.key);
      interval.spinning_threads += thread.cpu.system <= kSpinSystem ? 1 : 0;
    }
    switches += thread.voluntary_switches.value_or(0);
    switches_known = switches_known && thread.voluntary_switches;
  }
  if (switches_known) {
    interval.other_switches = switches - interval.hottest_switches.value_or(0);
  }
  interval.faults = (rise(before.stat.minor_faults, after.stat.minor_faults) +
                     rise(before.stat.major_faults, after.stat.major_faults)) /
                    seconds;
  interval.read_bytes = rate(before.read_bytes, after.read_bytes, interval.length);
  return interval;
}

void ProcessHistory::add(ProcessSample sample) {
  if (!samples_.empty() && sample.time <= samples_.back().time) {
    return;
  }
  if (!samples_.empty() && is_other_program(samples_.back(), sample)) {
    begin_anew(sample);
  }
  const bool first = samples_.empty();
  samples_.push_back(std::move(sample));
  if (first) {
    begin();
  }
  bool gap = true;
  if (samples_.size() > 1) {
    const ProcessSample& before = samples_[samples_.size() - 2];
    activity_.last = interval_between(before, samples_.back());
    gap = activity_.last->length > kLongestSleepGap;
    follow_load(before, *activity_.last);
    follow_runs(*activity_.last, gap);
  }
  follow_sleeps(gap);
  look_back();
  activity_.stopped = is_stopped(samples_.back());
  activity_.age = samples_.back().age;
}

void ProcessHistory::begin() {
  const ProcessSample& sample = samples_.back();
  activity_.watched_from_birth = sample.age && *sample.age > Seconds(0) && *sample.age <= kBirth;
  if (activity_.watched_from_birth) {
    samples_.push_front(newborn(sample));
  }
  // One that opens the GPU late begins to load then.
  activity_.watched_from_birth = activity_.watched_from_birth || sample.joined;
}

/// Starts over with the program that `first` is of, which began after the last sample.
void ProcessHistory::begin_anew(const ProcessSample& first) {
  ProcessSample start = samples_.back();
  start.status = no_memory();
  start.comm = first.comm;
  const unsigned program = activity_.program + 1;
  *this = ProcessHistory();
  activity_.program = program;
  activity_.watched_from_birth = first.time - start.time <= kBirth;
  samples_.push_back(std::move(start));
}

void ProcessHistory::follow_load(const ProcessSample& before, const ProcessInterval& interval) {
  const ProcessSample& now = samples_.back();
  const auto grew = [](const std::optional<std::int64_t>& bytes) {
    return bytes.value_or(0) >= kLoadStep;
  };
  if (!grew(growth(before.status.resident_bytes(), now.status.resident_bytes())) &&
      !grew(growth(before.read_bytes, now.read_bytes))) {
    return;
  }
  for (const auto& [thread, seconds] : interval.cpu) {
    load_cpu_[thread] += seconds;
  }
  std::erase_if(load_cpu_, [&](const auto& entry) { return !interval.cpu.contains(entry.first); });
}

bool ProcessHistory::has_loaded(const ProcessIdentity& thread) const {
  double most = 0;
  for (const auto& [each, seconds] : load_cpu_) {
    most = std::max(most, seconds);
  }
  const auto found = load_cpu_.find(thread);
  const double own = found == load_cpu_.end() ? 0 : found->second;
  return own >= kLoaderShare * most;
}

void ProcessHistory::follow_runs(const ProcessInterval& interval, bool gap) {
  const auto& tasks = samples_.back().tasks;
  const bool was_in_kfd = std::exchange(
      in_kfd_, std::any_of(tasks.begin(), tasks.end(),
                           [](const TaskSample& task) { return task.wait == TaskWait::kKfd; }));
  activity_.loader_pegged = std::any_of(interval.pegged.begin(), interval.pegged.end(),
                                        [&](const auto& thread) { return has_loaded(thread); });
  const bool asleep = in_kfd_ && !gap;
  if ((activity_.loader_pegged && interval.others_sleep()) || (asleep && was_in_kfd)) {
    activity_.pegged_or_in_kfd += interval.length;
  } else if (!asleep) {  // when it fell asleep is not known
    activity_.pegged_or_in_kfd = Seconds(0);
  }
}

void ProcessHistory::follow_sleeps(bool gap) {
  std::map<ProcessIdentity, Sleep> sleeps;
  activity_.blocked = Seconds(0);
  activity_.blocked_threads = {};
  for (const TaskSample& task : samples_.back().tasks) {
    if (!task.wait) {
      continue;
    }
    ++activity_.blocked_threads.at(static_cast<size_t>(*task.wait));
    Sleep sleep{samples_.back().time, task.voluntary_switches, *task.wait};
    const auto known = sleeps_.find(task.key);
    const bool woken = known == sleeps_.end() || known->second.switches != sleep.switches;
    if (known != sleeps_.end() && !gap && (!woken || sleep.wait == TaskWait::kKfd)) {
      sleep.since = known->second.since;
    }
    const Seconds length = samples_.back().time - sleep.since;
    if (length > activity_.blocked) {
      activity_.blocked = length;
      activity_.blocked_on = sleep.wait;
    }
    sleeps[task.key] = sleep;
  }
  sleeps_ = std::move(sleeps);
}

/// The newest sample that is at least `window` old.
const ProcessSample* ProcessHistory::sample_before(Seconds window) const {
  const auto found = std::find_if(
      samples_.rbegin(), samples_.rend(),
      [&](const ProcessSample& sample) { return samples_.back().time - sample.time >= window; });
  return found == samples_.rend() ? nullptr : &*found;
}

void ProcessHistory::look_back() {
  const ProcessSample& now = samples_.back();
  const ProcessSample* start = sample_before(kSpinWindow);
  activity_.window = start != nullptr ? std::optional(interval_between(*start, now)) : std::nullopt;
  activity_.loader_spins = activity_.window && has_loaded(activity_.window->hottest_thread);
  while (start != nullptr && &samples_.front() != start) {
    samples_.pop_front();
  }
  const auto waits =
      std::count_if(samples_.begin(), samples_.end(), [](const ProcessSample& sample) {
        return std::any_of(sample.tasks.begin(), sample.tasks.end(),
                           [](const TaskSample& task) { return task.wait == TaskWait::kIo; });
      });
  activity_.io_wait_share = static_cast<double>(waits) / static_cast<double>(samples_.size());
  const ProcessSample* growth_start = sample_before(kGrowthWindow);
  if (growth_start == nullptr && activity_.watched_from_birth) {
    growth_start = &samples_.front();  // since its birth
  }
  activity_.resident_growth.reset();
  activity_.read_growth.reset();
  if (growth_start != nullptr && growth_start != &now) {
    activity_.resident_growth =
        growth(growth_start->status.resident_bytes(), now.status.resident_bytes());
    activity_.read_growth = growth(growth_start->read_bytes, now.read_bytes);
  }
}

}  // namespace apu
