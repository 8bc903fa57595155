#include "collectors/seat_tasks/activity.h"

#include <gtest/gtest.h>

#include "tests/support/collector_files.h"
#include "tests/support/simulated_process.h"

namespace apu {
namespace {

using std::chrono::seconds;
using Seconds = std::chrono::duration<double>;

// --- cases

ProcessSample sample_of_case(const std::string& moment, int time) {
  const auto directory = case_path("87-spin-true-positive") / moment / "4242";
  const auto stat = parse_pid_stat(read_file(directory / "task/4242/stat"));
  const PidStatus status = parse_pid_status(read_file(directory / "status"));
  ProcessSample sample;
  sample.key = {stat->pid, stat->start_ticks};
  sample.time = seconds(time);
  sample.stat = *stat;
  TaskSample task;
  task.key = sample.key;
  task.state = stat->state;
  task.user_ticks = stat->user_ticks;
  task.system_ticks = stat->system_ticks;
  task.voluntary_switches = status.voluntary_switches;
  task.involuntary_switches = status.involuntary_switches;
  sample.tasks.push_back(task);
  return sample;
}

TEST(ProcessIntervalCase, RecordedSpinIsOne) {
  const ProcessInterval interval =
      interval_between(sample_of_case("t0", 0), sample_of_case("t10", 10));
  EXPECT_NEAR(interval.hottest.total(), 0.997, 1e-9);
  EXPECT_NEAR(interval.hottest.user / interval.hottest.total(), 0.999, 1e-3);
  EXPECT_NEAR(*interval.hottest_switches, 0.2, 1e-9);
  EXPECT_TRUE(interval.is_spin());
}

TEST(ProcessIntervalCase, SeatThatIdlesBesideASpinningKworkerIsNone) {
  const auto sample = [](const char* name, int time) {
    const auto stat = parse_pid_stat(read_file(case_path("89-idle-seat-kworker-spins") / name));
    ProcessSample made;
    made.key = {stat->pid, stat->start_ticks};
    made.time = seconds(time);
    TaskSample task;
    task.key = made.key;
    task.user_ticks = stat->user_ticks;
    task.system_ticks = stat->system_ticks;
    made.tasks = {task};
    return made;
  };
  const auto seat = interval_between(sample("t0/llama.stat", 0), sample("t60/llama.stat", 60));
  EXPECT_EQ(seat.hottest.total(), 0);
  EXPECT_FALSE(seat.is_spin());
  const auto worker =
      interval_between(sample("t0/kworker.stat", 0), sample("t60/kworker.stat", 60));
  EXPECT_NEAR(worker.hottest.system, 0.99, 1e-9);
  EXPECT_FALSE(worker.is_spin());
}

// --- simulated

/// Runs `doing` for `length`, a sample each 5 s.
void play(ProcessHistory& history, SimulatedProcess& process, Seconds length,
          const ProcessDoing& doing) {
  constexpr Seconds kStep{5};
  for (Seconds done{0}; done < length; done += kStep) {
    process.run(kStep, doing);
    history.add(process.sample());
  }
}

bool spins_after(const ProcessDoing& doing) {
  SimulatedProcess process;
  ProcessHistory history;
  play(history, process, seconds(40), loading_doing());
  play(history, process, seconds(90), doing);
  return history.activity().window->is_spin() && history.activity().loader_spins;
}

TEST(ProcessHistory, SpinIsAThreadThatLoadedAndDoesNothingElse) {
  EXPECT_TRUE(spins_after(spinning_doing()));
  EXPECT_FALSE(spins_after(polling_doing()));   // a thread that did not load
  EXPECT_FALSE(spins_after(decoding_doing()));  // tokens are sent
  EXPECT_FALSE(spins_after(idle_doing()));
  EXPECT_FALSE(spins_after(loading_doing()));
  ProcessDoing checked = spinning_doing();
  checked.threads[2] = {0.001, 0.001, 3, 0, 'S', {}};
  EXPECT_TRUE(spins_after(checked));
  ProcessDoing two = spinning_doing();
  two.threads[1] = two.threads[0];
  EXPECT_FALSE(spins_after(two));
  ProcessDoing in_kernel = spinning_doing();
  in_kernel.threads[0] = {0.5, 0.497, 0, 0, 'R', {}};
  EXPECT_FALSE(spins_after(in_kernel));
  ProcessDoing faulting = spinning_doing();
  faulting.faults = 100;
  EXPECT_FALSE(spins_after(faulting));
  ProcessDoing reading = spinning_doing();
  reading.reads = 1e6;
  EXPECT_FALSE(spins_after(reading));
}

TEST(ProcessHistory, SpinThatMustWaitForACpuIsOne) {
  ProcessDoing crowded = spinning_doing();
  crowded.threads[0] = {0.6, 0.001, 0.1, 0.399, 'R', {}};
  EXPECT_TRUE(spins_after(crowded));
  crowded.threads[0].wait_to_run = 0.1;
  EXPECT_FALSE(spins_after(crowded));
}

TEST(ProcessHistory, BirthIsKnownIfItWasSeenYoung) {
  for (const int age : {1, 29, 31, 100000}) {
    SimulatedProcess process{Seconds(age - 5)};
    ProcessHistory history;
    play(history, process, seconds(5), idle_doing());
    EXPECT_EQ(history.activity().watched_from_birth, age <= 30) << age;
    EXPECT_EQ(history.activity().last.has_value(), age <= 30) << age;
  }
}

TEST(ProcessHistory, GrowthIsThatOfTheLastHalfMinute) {
  SimulatedProcess process;
  ProcessHistory history;
  play(history, process, seconds(60), loading_doing(1e8));
  EXPECT_NEAR(static_cast<double>(*history.activity().resident_growth), 3e9, 1e6);
  EXPECT_NEAR(static_cast<double>(*history.activity().read_growth), 3e9, 1e6);
  play(history, process, seconds(30), idle_doing());
  EXPECT_EQ(history.activity().resident_growth, 0);
}

TEST(ProcessHistory, SleepLastsWhileEverySampleHasIt) {
  SimulatedProcess process;
  ProcessHistory history;
  play(history, process, seconds(40), asleep_doing(TaskWait::kKfd));
  EXPECT_EQ(history.activity().blocked, Seconds(35));
  EXPECT_EQ(history.activity().blocked_on, TaskWait::kKfd);
  EXPECT_EQ(history.activity().blocked_threads.at(0), 1U);
  EXPECT_EQ(history.activity().pegged_or_in_kfd, Seconds(35));
  play(history, process, seconds(5), idle_doing());
  EXPECT_EQ(history.activity().blocked, Seconds(0));
  EXPECT_EQ(history.activity().pegged_or_in_kfd, Seconds(0));
}

TEST(ProcessHistory, ReaderThatStorageWakesIsNotBlocked) {
  SimulatedProcess process;
  ProcessHistory history;
  play(history, process, seconds(60), asleep_doing(TaskWait::kIo, 100));
  EXPECT_EQ(history.activity().blocked, Seconds(0));
  EXPECT_GE(history.activity().io_wait_share, 0.8);
  play(history, process, seconds(60), asleep_doing(TaskWait::kIo));
  EXPECT_GE(history.activity().blocked, Seconds(50));
}

TEST(ProcessHistory, SampleThatIsNotLaterIsIgnored) {
  SimulatedProcess process;
  ProcessHistory history;
  play(history, process, seconds(10), spinning_doing());
  const auto before = history.activity().pegged_or_in_kfd;
  history.add(process.sample());
  EXPECT_EQ(history.activity().pegged_or_in_kfd, before);
}

TEST(ProcessHistory, LongGapShowsNoSleep) {
  SimulatedProcess process;
  ProcessHistory history;
  play(history, process, seconds(10), asleep_doing(TaskWait::kOther));
  process.run(seconds(300), asleep_doing(TaskWait::kOther));
  history.add(process.sample());
  EXPECT_EQ(history.activity().blocked, Seconds(0));
}

}  // namespace
}  // namespace apu
