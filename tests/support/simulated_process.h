#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>

#include "collectors/seat_tasks/sample.h"

namespace apu {

/// What one thread does.
struct ThreadDoing {
  double user = 0;                ///< cores
  double system = 0;              ///< cores
  double voluntary_switches = 0;  ///< a second
  double wait_to_run = 0;         ///< of a second
  char state = 'S';
  std::optional<TaskWait> wait{};  ///< with state D
};

/// What a process does for a while. Threads that are not named sleep.
struct ProcessDoing {
  std::map<int, ThreadDoing> threads;  ///< by number; 0 is the main thread
  double resident_growth = 0;          ///< bytes a second
  double reads = 0;                    ///< bytes a second
  double faults = 0;                   ///< a second
};

/// A process as /proc would show it, by what it is told to do.
class SimulatedProcess {
 public:
  using Seconds = std::chrono::duration<double>;

  static constexpr std::int64_t kPid = 4242;

  /// `age`: how old it is at time 0.
  explicit SimulatedProcess(Seconds age = Seconds(1)) : age_(age) {
    sample_.key = {kPid, 8675309};
    sample_.comm = "start-seat";
    sample_.status.anon_bytes = 4 << 20;
    sample_.status.file_bytes = 0;
    sample_.status.shmem_bytes = 0;
    sample_.read_bytes = 0;
  }

  void run(Seconds length, const ProcessDoing& doing) {
    constexpr double kTicks = 100;
    time_ += length;
    const double seconds = length.count();
    anon_ += doing.resident_growth * seconds;
    reads_ += doing.reads * seconds;
    faults_ += doing.faults * seconds;
    for (const auto& [number, thread] : doing.threads) {
      Thread& counts = threads_[number];
      counts.user += thread.user * seconds;
      counts.system += thread.system * seconds;
      counts.wait += thread.wait_to_run * seconds;
      counts.switches += thread.voluntary_switches * seconds;
    }
    sample_.tasks.clear();
    for (const auto& [number, counts] : threads_) {
      TaskSample task;
      task.key = {kPid + number, 8675309U + static_cast<std::uint64_t>(number)};
      task.user_ticks = static_cast<std::uint64_t>(counts.user * kTicks);
      task.system_ticks = static_cast<std::uint64_t>(counts.system * kTicks);
      task.sched = SchedStat{static_cast<std::uint64_t>((counts.user + counts.system) * 1e9),
                             static_cast<std::uint64_t>(counts.wait * 1e9)};
      task.voluntary_switches = static_cast<std::uint64_t>(counts.switches);
      task.involuntary_switches = 0;
      const auto found = doing.threads.find(number);
      task.state = found == doing.threads.end() ? 'S' : found->second.state;
      task.wait = found == doing.threads.end() ? std::nullopt : found->second.wait;
      sample_.tasks.push_back(task);
    }
    sample_.time = std::chrono::duration_cast<std::chrono::nanoseconds>(time_);
    sample_.age = age_ + time_;
    sample_.status.anon_bytes = (4U << 20U) + static_cast<std::uint64_t>(anon_);
    sample_.read_bytes = static_cast<std::uint64_t>(reads_);
    sample_.stat.minor_faults = static_cast<std::uint64_t>(faults_);
  }

  /// It is new in its seat, which was watched before.
  void join() { sample_.joined = true; }

  /// exec(): one thread, no memory, the same identity.
  void become(const std::string& comm) {
    sample_.comm = comm;
    anon_ = 0;
    std::erase_if(threads_, [](const auto& thread) { return thread.first != 0; });
  }

  [[nodiscard]] const ProcessSample& sample() const { return sample_; }

  [[nodiscard]] std::chrono::nanoseconds time() const { return sample_.time; }

 private:
  struct Thread {
    double user = 0;
    double system = 0;
    double wait = 0;
    double switches = 0;
  };

  Seconds age_;
  Seconds time_{0};
  double anon_ = 0;
  double reads_ = 0;
  double faults_ = 0;
  std::map<int, Thread> threads_;
  ProcessSample sample_;
};

// --- what processes of the record do

constexpr double kGigabyte = 1e9;

/// The main thread reads a model, and the GPU's memory grows with it.
inline ProcessDoing loading_doing(double bytes_per_second = 0.3 * kGigabyte) {
  return {{{0, {0.6, 0.3, 200, 0, 'R', {}}}, {1, {}}}, bytes_per_second, bytes_per_second, 2000};
}

/// The main thread waits in a loop for a signal of the GPU.
inline ProcessDoing spinning_doing() {
  return {{{0, {0.997, 0.001, 0.2, 0, 'R', {}}}}, 0, 0, 0};
}

/// A thread of the GPU's runtime polls, all else sleeps.
inline ProcessDoing polling_doing() {
  return {{{0, {}}, {1, {0.998, 0.001, 0, 0, 'R', {}}}}, 0, 0, 0};
}

/// The main thread polls for the GPU, and another one sends tokens.
inline ProcessDoing decoding_doing() {
  return {{{0, {0.97, 0.02, 5, 0, 'R', {}}}, {2, {0.01, 0.01, 25, 0, 'S', {}}}}, 0, 0, 3};
}

inline ProcessDoing idle_doing() {
  return {{{0, {0.001, 0.001, 2, 0, 'S', {}}}, {2, {0, 0, 1, 0, 'S', {}}}}, 0, 0, 0};
}

/// As a shell that waits.
inline ProcessDoing idle_doing_alone() {
  return {{{0, {0.001, 0.001, 2, 0, 'S', {}}}}, 0, 0, 0};
}

/// The main thread sleeps in the kernel.
inline ProcessDoing asleep_doing(TaskWait wait, double switches = 0) {
  return {{{0, {0, 0, switches, 0, 'D', wait}}}, 0, 0, 0};
}

}  // namespace apu
