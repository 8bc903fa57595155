#include "verdict/seat_state.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "tests/support/simulated_process.h"

namespace apu {
namespace {

using std::chrono::seconds;
using Seconds = std::chrono::duration<double>;

/// What is known beside the process's own doings.
using Circumstances = std::function<void(ProcessEvidence&)>;

void nothing_else(ProcessEvidence& /*evidence*/) {}

/// A process that is looked at each 5 s.
class Watch {
 public:
  explicit Watch(Seconds age = Seconds(1)) : process_(age) {}

  void play(Seconds length, const ProcessDoing& doing,
            const Circumstances& circumstances = nothing_else) {
    constexpr Seconds kStep{5};
    for (Seconds done{0}; done < length; done += kStep) {
      process_.run(kStep, doing);
      history_.add(process_.sample());
      ProcessEvidence evidence;
      evidence.activity = history_.activity();
      circumstances(evidence);
      tracker_.update(std::move(evidence), process_.time());
      if (const auto state = tracker_.state()) {
        seen_.insert(*state);
        first_.try_emplace(*state, process_.time());
      }
    }
  }

  /// It became one of the seat while the seat was watched.
  void join() { process_.join(); }

  /// exec(): the process is another program from now on.
  void become(const std::string& comm) { process_.become(comm); }

  /// Nobody looks at it for so long.
  void look_away(Seconds length, const ProcessDoing& doing) { process_.run(length, doing); }

  [[nodiscard]] std::optional<SeatState> state() const { return tracker_.state(); }

  [[nodiscard]] const ProcessStateTracker& tracker() const { return tracker_; }

  [[nodiscard]] std::optional<SeatState> worst() const {
    return seen_.empty() ? std::nullopt : std::optional(*seen_.begin());
  }

  /// When it was first in `state`.
  [[nodiscard]] Seconds first(SeatState state) const { return first_.at(state); }

 private:
  SimulatedProcess process_;
  ProcessHistory history_;
  ProcessStateTracker tracker_;
  std::set<SeatState> seen_;
  std::map<SeatState, std::chrono::nanoseconds> first_;
};

void storm(ProcessEvidence& evidence) {
  evidence.storm.hogs_per_second = 1.02;
}

void kworker_storm(ProcessEvidence& evidence) {
  evidence.storm.kworker_cores = 0.99;
}

constexpr seconds kLong{52 * 60};  // that the recorded spin lasted

// --- the matrix: every kind of process, and what it must be taken for

struct Scenario {
  const char* name;
  SeatState expected;  ///< the worst it is ever taken for: a healthy one never for a fault
  std::function<void(Watch&)> play;
  Seconds age{1};
};

void load(Watch& watch, int length, double bytes_per_second = 0.3 * kGigabyte,
          const Circumstances& circumstances = nothing_else) {
  watch.play(seconds(length), loading_doing(bytes_per_second), circumstances);
}

std::vector<Scenario> scenarios() {
  using S = SeatState;
  std::vector<Scenario> all;
  const auto add = [&](const char* name, S expected, std::function<void(Watch&)> play,
                       Seconds age = Seconds(1)) {
    all.push_back({name, expected, std::move(play), age});
  };
  add("the recorded spin", S::kSpinning, [](Watch& watch) {
    load(watch, 40);
    watch.play(kLong, spinning_doing());
  });
  add("the recorded spin in a storm", S::kThrashing, [](Watch& watch) {
    load(watch, 40, 0.3 * kGigabyte, storm);
    watch.play(kLong, spinning_doing(), storm);
  });
  add("the same, by the CPU of kworkers alone", S::kThrashing, [](Watch& watch) {
    load(watch, 40, 0.3 * kGigabyte, kworker_storm);
    watch.play(kLong, spinning_doing(), kworker_storm);
  });
  add("spin on a host with too few CPUs", S::kSpinning, [](Watch& watch) {
    load(watch, 40);
    ProcessDoing crowded = spinning_doing();
    crowded.threads[0] = {0.6, 0.001, 0.1, 0.399, 'R', {}};
    watch.play(kLong, crowded);
  });
  add("the recorded spin in a storm, behind a wrapper that waited", S::kThrashing,
      [](Watch& watch) {
        watch.play(seconds(70), idle_doing_alone(), storm);
        watch.become("llama-server");
        load(watch, 40, 0.3 * kGigabyte, storm);
        watch.play(kLong, spinning_doing(), storm);
      });
  add("spin behind a wrapper that waited", S::kSpinning, [](Watch& watch) {
    watch.play(seconds(70), idle_doing_alone());
    watch.become("llama-server");
    load(watch, 40);
    watch.play(kLong, spinning_doing());
  });
  add("spin of a server that waited for its model", S::kSpinning, [](Watch& watch) {
    watch.play(seconds(300), idle_doing());
    load(watch, 40);
    watch.play(kLong, spinning_doing());
  });
  add("asleep in KFD's ioctl in a storm", S::kThrashing, [](Watch& watch) {
    load(watch, 20, 0.3 * kGigabyte, storm);
    watch.play(seconds(900), asleep_doing(TaskWait::kKfd), storm);
  });
  add("asleep in KFD's ioctl, nothing else known", S::kBlocked, [](Watch& watch) {
    load(watch, 20);
    watch.play(seconds(900), asleep_doing(TaskWait::kKfd));
  });
  add("queues evicted two thirds of the time", S::kThrashing, [](Watch& watch) {
    load(watch, 60);
    watch.play(seconds(300), decoding_doing(),
               [](ProcessEvidence& evidence) { evidence.evicted_share = 0.66; });
  });
  add("resume failed, and the load stuck", S::kThrashing, [](Watch& watch) {
    const auto failed = [](ProcessEvidence& evidence) { evidence.resume_failed = true; };
    load(watch, 40, 0.3 * kGigabyte, failed);
    watch.play(kLong, spinning_doing(), failed);
  });
  add("mmap_lock held", S::kThrashing, [](Watch& watch) {
    load(watch, 20);
    watch.play(seconds(300), asleep_doing(TaskWait::kMemory),
               [](ProcessEvidence& evidence) { evidence.mmap_lock_held = true; });
  });
  add("stopped, its eviction outstanding", S::kThrashing, [](Watch& watch) {
    load(watch, 60);
    watch.play(seconds(120), {}, [](ProcessEvidence& evidence) {
      evidence.smi = SmiEvidence{Seconds(0), Seconds(31)};
    });
  });
  add("restores rescheduled without end", S::kThrashing, [](Watch& watch) {
    load(watch, 60);
    watch.play(seconds(60), spinning_doing(), [](ProcessEvidence& evidence) {
      evidence.smi = SmiEvidence{Seconds(6), std::nullopt};
    });
  });
  add("file that never answers", S::kBlocked, [](Watch& watch) {
    load(watch, 20);
    watch.play(seconds(300), asleep_doing(TaskWait::kIo));
  });
  add("no token from a busy slot", S::kStalled, [](Watch& watch) {
    load(watch, 60);
    watch.play(seconds(300), polling_doing(), [](ProcessEvidence& evidence) {
      evidence.health = HealthEvidence{true, Seconds(121)};
    });
  });
  add("busy server that tells no more of its slots", S::kStalled, [](Watch& watch) {
    load(watch, 60);
    watch.play(seconds(300), polling_doing(), [](ProcessEvidence& evidence) {
      evidence.health = HealthEvidence{true, std::nullopt, Seconds(300)};
    });
  });
  add("load of 13 GB in 10 min from a busy disk", S::kIoStarved, [](Watch& watch) {
    ProcessDoing slow = loading_doing(13e9 / 600);
    slow.threads[0] = {0.05, 0.02, 300, 0, 'D', TaskWait::kIo};
    watch.play(seconds(600), slow, [](ProcessEvidence& evidence) { evidence.io_full = 0.7; });
  });
  add("the same, and then the spin", S::kSpinning, [](Watch& watch) {
    ProcessDoing slow = loading_doing(13e9 / 600);
    slow.threads[0] = {0.05, 0.02, 300, 0, 'D', TaskWait::kIo};
    watch.play(seconds(600), slow, [](ProcessEvidence& evidence) { evidence.io_full = 0.7; });
    watch.play(kLong, spinning_doing());
  });
  for (const int length : {38, 71, 195}) {
    add("healthy load, then decode and idle", S::kLoading, [length](Watch& watch) {
      load(watch, length);
      watch.play(seconds(600), decoding_doing());
      watch.play(seconds(600), idle_doing());
    });
  }
  add("healthy load in a storm of others", S::kLoading, [](Watch& watch) {
    load(watch, 195, 0.1 * kGigabyte, storm);
    watch.play(seconds(600), decoding_doing(), storm);
  });
  add("healthy load by a pegged thread while kworkers are busy", S::kLoading, [](Watch& watch) {
    ProcessDoing pegged = loading_doing(0.5 * kGigabyte);
    pegged.threads[0] = {0.5, 0.49, 0, 0, 'R', {}};
    watch.play(seconds(195), pegged, kworker_storm);
    watch.play(seconds(600), decoding_doing(), kworker_storm);
  });
  add("slow load of which the service may not see what it waits for", S::kLoading,
      [](Watch& watch) {
        ProcessDoing slow = loading_doing(90e6);
        slow.threads[0] = {0.05, 0.1, 300, 0, 'D', TaskWait::kOther};
        watch.play(seconds(195), slow);
        watch.play(seconds(600), decoding_doing());
      });
  add("load that is swapped in", S::kLoading, [](Watch& watch) {
    ProcessDoing slow = loading_doing(100e6);
    slow.threads[0] = {0.05, 0.1, 300, 0, 'D', TaskWait::kMemory};
    watch.play(seconds(195), slow);
  });
  add("load that sleeps in KFD and goes on", S::kLoading, [](Watch& watch) {
    ProcessDoing slow = loading_doing(100e6);
    slow.threads[0] = {0.05, 0.1, 300, 0, 'D', TaskWait::kKfd};
    watch.play(seconds(195), slow);
  });
  add(
      "server that pages its experts in, since before the watch", S::kComputing,
      [](Watch& watch) {
        ProcessDoing paging{{{0, {0.15, 0.06, 100, 0, 'D', TaskWait::kIo}}}, 0, 50e6, 100};
        watch.play(seconds(600), paging);
      },
      Seconds(1e6));
  add(
      "server that decodes for days", S::kComputing,
      [](Watch& watch) { watch.play(kLong, decoding_doing()); }, Seconds(1e6));
  add("runtime's thread polls after the load", S::kLoading, [](Watch& watch) {
    load(watch, 71);
    watch.play(kLong, polling_doing());
  });
  add("the same in a storm", S::kLoading, [](Watch& watch) {
    load(watch, 71);
    watch.play(kLong, polling_doing(), storm);
  });
  add(
      "runtime's thread polls since before the watch", S::kComputing,
      [](Watch& watch) { watch.play(kLong, polling_doing()); }, Seconds(1e6));
  add("main thread polls after a pause", S::kLoading, [](Watch& watch) {
    load(watch, 71);
    watch.play(seconds(120), idle_doing());
    watch.play(kLong, spinning_doing());
  });
  add("first prompt of some minutes, a moment after the load", S::kLoading, [](Watch& watch) {
    load(watch, 30);
    watch.play(seconds(20), idle_doing());
    ProcessDoing prompt = spinning_doing();
    prompt.threads[0].voluntary_switches = 0.4;
    watch.play(seconds(300), prompt);
  });
  add(
      "process that opens the GPU late, loads, and spins", S::kSpinning,
      [](Watch& watch) {
        watch.join();
        load(watch, 40);
        watch.play(kLong, spinning_doing());
      },
      Seconds(35));
  add("inference on sixteen CPUs", S::kLoading, [](Watch& watch) {
    load(watch, 40);
    ProcessDoing busy;
    for (int i = 0; i < 16; ++i) {
      busy.threads[i] = {0.99, 0.005, 0.01, 0, 'R', {}};
    }
    watch.play(kLong, busy);
  });
  add(
      "idle in a storm", S::kIdle,
      [](Watch& watch) { watch.play(kLong, idle_doing(), kworker_storm); }, Seconds(1e6));
  add("ready by its probe, main thread polls", S::kLoading, [](Watch& watch) {
    load(watch, 40);
    watch.play(kLong, spinning_doing(), [](ProcessEvidence& evidence) {
      evidence.health = HealthEvidence{true, std::nullopt};
    });
  });
  add("resume failed once in a load that ends", S::kLoading, [](Watch& watch) {
    const auto failed = [](ProcessEvidence& evidence) { evidence.resume_failed = true; };
    load(watch, 71, 0.3 * kGigabyte, failed);
    watch.play(seconds(600), decoding_doing(), failed);
  });
  add(
      "reader that a slow disk wakes", S::kComputing,
      [](Watch& watch) {
        watch.play(seconds(300), asleep_doing(TaskWait::kIo, 50));
        watch.play(seconds(60), decoding_doing());
      },
      Seconds(1e6));
  return all;
}

TEST(SeatState, IsRightForEveryKindOfProcess) {
  std::map<std::pair<SeatState, SeatState>, int> matrix;
  for (const Scenario& scenario : scenarios()) {
    Watch watch(scenario.age);
    scenario.play(watch);
    const SeatState got = watch.worst().value_or(SeatState::kDown);
    ++matrix[{scenario.expected, got}];
    EXPECT_EQ(to_label(got), to_label(scenario.expected)) << scenario.name;
  }
  std::string table = fmt::format("{:>12} |", "is \\ taken for");
  for (size_t i = 1; i < kSeatStates; ++i) {
    table += fmt::format(" {:>10}", to_label(static_cast<SeatState>(i)));
  }
  for (size_t row = 1; row < kSeatStates; ++row) {
    table += fmt::format("\n{:>15} |", to_label(static_cast<SeatState>(row)));
    for (size_t column = 1; column < kSeatStates; ++column) {
      table += fmt::format(" {:>10}",
                           matrix[{static_cast<SeatState>(row), static_cast<SeatState>(column)}]);
    }
  }
  fmt::print("{}\n", table);
}

// --- when

TEST(SeatState, SpinIsToldWithinThreeMinutes) {
  Watch alone;
  load(alone, 40);
  alone.play(seconds(180), spinning_doing());
  EXPECT_LE(alone.first(SeatState::kSpinning), Seconds(40 + 180));
  Watch in_storm;
  load(in_storm, 40, 0.3 * kGigabyte, storm);
  in_storm.play(seconds(180), spinning_doing(), storm);
  EXPECT_LE(in_storm.first(SeatState::kThrashing), Seconds(40 + 180));
}

TEST(SeatState, IsWorseAtOnceAndBetterAfterHalfAMinute) {
  Watch watch(Seconds(1e6));
  watch.play(seconds(10), idle_doing());
  EXPECT_EQ(watch.state(), SeatState::kIdle);
  watch.play(seconds(5), decoding_doing());
  EXPECT_EQ(watch.state(), SeatState::kComputing);
  watch.play(seconds(30), idle_doing());
  EXPECT_EQ(watch.state(), SeatState::kComputing);
  watch.play(seconds(5), idle_doing());
  EXPECT_EQ(watch.state(), SeatState::kIdle);
}

TEST(SeatState, ThatEndsAndComesBackIsNotLeft) {
  Watch watch(Seconds(1e6));
  const auto held = [](ProcessEvidence& evidence) { evidence.mmap_lock_held = true; };
  watch.play(seconds(5), idle_doing());
  watch.play(seconds(5), idle_doing(), held);
  for (int i = 0; i < 10; ++i) {
    watch.play(seconds(25), idle_doing());
    watch.play(seconds(5), idle_doing(), held);
  }
  EXPECT_EQ(watch.state(), SeatState::kThrashing);
  EXPECT_EQ(watch.tracker().since(), seconds(10));
  watch.play(seconds(40), idle_doing());
  EXPECT_EQ(watch.state(), SeatState::kIdle);
}

TEST(SeatState, IsServingByProofAlone) {
  const auto serves = [](Watch& watch) { return watch.tracker().phase() == LoadPhase::kServed; };
  Watch healthy;
  load(healthy, 71);
  healthy.play(seconds(120), decoding_doing());
  EXPECT_TRUE(serves(healthy));

  Watch spin(Seconds(1e6));  // since before the watch: it is taken for one that computes
  spin.play(seconds(600), spinning_doing(), storm);
  EXPECT_EQ(spin.state(), SeatState::kComputing);
  EXPECT_FALSE(serves(spin));
  spin.play(seconds(600), spinning_doing());
  EXPECT_FALSE(serves(spin));
  spin.play(seconds(120), idle_doing());
  EXPECT_TRUE(serves(spin));

  Watch asleep;  // a load that hangs without CPU
  load(asleep, 20, 0.3 * kGigabyte, storm);
  asleep.play(seconds(600), idle_doing(), storm);
  EXPECT_EQ(asleep.state(), SeatState::kIdle);
  EXPECT_FALSE(serves(asleep));

  Watch resident(Seconds(1e6));  // since before the watch, and it sleeps in a storm of others
  const auto holds = [](ProcessEvidence& evidence) {
    storm(evidence);
    evidence.holds_gpu_memory = true;
  };
  resident.play(seconds(30), idle_doing(), holds);
  EXPECT_TRUE(serves(resident));
  Watch young(Seconds(60));  // it may be a load that hangs asleep
  young.play(seconds(120), idle_doing(), holds);
  EXPECT_FALSE(serves(young));

  Watch stopped;
  load(stopped, 20);
  stopped.play(seconds(600), {{{0, {0, 0, 0, 0, 'T', {}}}, {1, {0, 0, 0, 0, 'T', {}}}}, 0, 0, 0});
  EXPECT_FALSE(serves(stopped));

  Watch polled;  // a load that hangs, behind a proxy that asks for its health all the time
  load(polled, 40, 0.3 * kGigabyte, storm);
  ProcessDoing spinning = spinning_doing();
  spinning.threads[1] = {0, 0, 30, 0, 'S', {}};
  polled.play(seconds(600), spinning, storm);
  EXPECT_FALSE(serves(polled));
}

TEST(SeatState, OneSampleAfterAGapIsNoSleepInKfd) {
  Watch watch;
  load(watch, 40, 0.3 * kGigabyte, storm);
  watch.look_away(seconds(300), idle_doing());
  watch.play(seconds(5), asleep_doing(TaskWait::kKfd), storm);
  EXPECT_NE(watch.state(), SeatState::kThrashing);
}

TEST(SeatState, LoadingEndsWhereNothingGrows) {
  Watch watch;
  load(watch, 40);
  ProcessDoing faulting = spinning_doing();
  faulting.faults = 500;
  for (int i = 0; i < 10; ++i) {
    watch.play(seconds(45), spinning_doing());
    watch.play(seconds(5), faulting);
  }
  EXPECT_EQ(watch.state(), SeatState::kComputing);
  EXPECT_EQ(watch.tracker().phase(), LoadPhase::kCold);
}

TEST(SeatState, HasItsReasons) {
  Watch watch;
  load(watch, 40, 0.3 * kGigabyte, storm);
  watch.play(seconds(120), spinning_doing(), storm);
  ASSERT_EQ(watch.tracker().reasons().size(), 2U);
  EXPECT_EQ(watch.tracker().reasons()[1].value, "1.02/s");
  EXPECT_EQ(watch.tracker().reasons()[1].threshold, "more than 0.2/s");
  EXPECT_EQ(watch.tracker().phase(), LoadPhase::kCold);
}

TEST(SeatState, IsNotKnownFromOneSampleOfAnOldProcess) {
  Watch watch(Seconds(1e6));
  watch.play(seconds(5), spinning_doing());
  EXPECT_FALSE(watch.state());
}

}  // namespace
}  // namespace apu
