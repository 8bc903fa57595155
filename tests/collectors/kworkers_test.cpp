#include "collectors/kworkers.h"

#include <gtest/gtest.h>

#include <memory>

#include "exporter/store.h"
#include "tests/support/temp_tree.h"

namespace apu {
namespace {

using std::chrono::seconds;

/// Of the monotonic clock.
std::chrono::nanoseconds at(int second) {
  return seconds(second);
}

KworkerSample kworker(std::int64_t pid, std::uint64_t ticks, std::string_view comm) {
  return {pid, 1000, ticks, *parse_kworker_name(comm)};
}

TEST(KworkerName, TellsPerCpuFromUnboundAndRescuers) {
  EXPECT_TRUE(parse_kworker_name("kworker/3:1")->per_cpu);
  EXPECT_TRUE(parse_kworker_name("kworker/12:0H-events_highpri")->per_cpu);
  EXPECT_FALSE(parse_kworker_name("kworker/u64:2-kfd_restore_wq")->per_cpu);
  EXPECT_FALSE(parse_kworker_name("kworker/R-mm_percpu_wq")->per_cpu);
  EXPECT_FALSE(parse_kworker_name("kworker/")->per_cpu);
  EXPECT_FALSE(parse_kworker_name("kthreadd").has_value());
  EXPECT_FALSE(parse_kworker_name("my kworker/3:1").has_value());
}

TEST(KworkerName, NamesTheWorkqueueThatRunsOrRanLast) {
  EXPECT_EQ(parse_kworker_name("kworker/3:1+events_freezable")->workqueue, "events_freezable");
  EXPECT_EQ(parse_kworker_name("kworker/u8:1-ext4-rsv-conversion")->workqueue,
            "ext4-rsv-conversion");
  EXPECT_EQ(parse_kworker_name("kworker/3:1")->workqueue, "");
  EXPECT_EQ(parse_kworker_name("kworker/R-events_freezable")->workqueue, "");
}

TEST(KworkerTotals, StartAtZeroAndCountWhatIsUsedBetweenPasses) {
  KworkerTotals totals;
  totals.add_pass(at(0), {kworker(1, 500, "kworker/0:1-events")});
  EXPECT_EQ(totals.per_cpu_ticks(), 0U);
  totals.add_pass(at(15), {kworker(1, 530, "kworker/0:1+events_freezable"),
                           kworker(2, 7, "kworker/1:0-events")});
  EXPECT_EQ(totals.per_cpu_ticks(), 37U);
  EXPECT_EQ(totals.by_workqueue().at("events_freezable"), 30U);
  EXPECT_EQ(totals.by_workqueue().at("events"), 7U);
}

TEST(KworkerTotals, NeverFall) {
  KworkerTotals totals;
  totals.add_pass(at(0), {kworker(1, 0, "kworker/0:1-events")});
  totals.add_pass(at(15), {kworker(1, 40, "kworker/0:1-events")});
  totals.add_pass(at(30), {});
  totals.add_pass(at(45), {{1, 2000, 5, {true, "events"}}});  // the process id is used again
  EXPECT_EQ(totals.per_cpu_ticks(), 45U);
}

TEST(KworkerTotals, KworkerThatWasNotReadForAWhileIsNoNewOne) {
  KworkerTotals totals;
  totals.add_pass(at(0), {kworker(1, 5000, "kworker/0:1-events")});
  totals.add_pass(at(15), {});
  totals.add_pass(at(30), {kworker(1, 5010, "kworker/0:1-events")});
  EXPECT_EQ(totals.per_cpu_ticks(), 10U);
}

TEST(KworkerTotals, LeaveUnboundKworkersOutOfThePerCpuSum) {
  KworkerTotals totals;
  totals.add_pass(at(0), {});
  totals.add_pass(at(15), {kworker(1, 0, "kworker/u8:1-kfd_restore_wq")});
  totals.add_pass(at(30), {kworker(1, 90, "kworker/u8:1-kfd_restore_wq")});
  EXPECT_EQ(totals.per_cpu_ticks(), 0U);
  EXPECT_EQ(totals.by_workqueue().at("kfd_restore_wq"), 90U);
}

TEST(KworkerTotals, PutUnknownQueuesTogether) {
  KworkerTotals totals;
  totals.add_pass(at(0), {kworker(1, 1, "kworker/0:1-mlx5_cmd"), kworker(2, 1, "kworker/1:1")});
  EXPECT_EQ(totals.by_workqueue().size(), 1U);
  EXPECT_TRUE(totals.by_workqueue().contains("other"));
}

TEST(KworkerTotals, HaveARateOnceAMinuteHasPassed) {
  KworkerTotals totals;
  for (int second = 0; second < 60; second += 15) {
    totals.add_pass(at(second), {kworker(1, static_cast<std::uint64_t>(second), "kworker/0:1")});
    EXPECT_FALSE(totals.per_cpu_rate().has_value());
  }
  totals.add_pass(at(60), {kworker(1, 60, "kworker/0:1")});
  EXPECT_DOUBLE_EQ(*totals.per_cpu_rate(), 1);
  // The window moves: a minute of silence ends the rate.
  for (int second = 75; second <= 120; second += 15) {
    totals.add_pass(at(second), {kworker(1, 60, "kworker/0:1")});
  }
  EXPECT_DOUBLE_EQ(*totals.per_cpu_rate(), 0);
}

class KworkersCollectorTest : public testing::Test {
 protected:
  void write_stat(int pid, std::string_view comm, std::uint64_t flags, int ticks) {
    tree_.write("proc/" + std::to_string(pid) + "/stat",
                std::to_string(pid) + " (" + std::string(comm) + ") I 2 0 0 0 -1 " +
                    std::to_string(flags) + " 0 0 0 0 0 " + std::to_string(ticks) +
                    " 0 0 20 0 1 0 24 0 0 18446744073709551615 0 0 0 0\n");
  }

  std::unique_ptr<Collector> make() {
    PathOptions paths;
    paths.rootfs = tree_.path();
    return make_kworkers_collector({make_roots(paths),
                                    clock_,
                                    SourceReporter(board_, "kworkers"),
                                    std::make_shared<Store>(),
                                    "auto",
                                    {},
                                    {},
                                    {}});
  }

  static constexpr std::uint64_t kKernelFlags = 69238880;
  static constexpr std::uint64_t kUserFlags = 4194304;
  TempTree tree_;
  std::shared_ptr<FixedClock> clock_ = std::make_shared<FixedClock>(TimePoint{} + at(1000));
  std::shared_ptr<SourceBoard> board_ = std::make_shared<SourceBoard>();
};

TEST_F(KworkersCollectorTest, ReadsKernelThreadsAndNoProcessThatTakesSuchAName) {
  write_stat(7, "kworker/0:1-events", kKernelFlags, 100);
  write_stat(4711, "kworker/0:9", kUserFlags, 100);
  const auto collector = make();
  ASSERT_TRUE(collector->collect().ok());
  write_stat(7, "kworker/0:1-events", kKernelFlags, 150);
  write_stat(4711, "kworker/0:9", kUserFlags, 9000);
  const auto snapshot = collector->collect();
  ASSERT_TRUE(snapshot.ok());
  const auto& facts = std::any_cast<const KworkersFacts&>(snapshot->facts);
  EXPECT_DOUBLE_EQ(facts.per_cpu_seconds, 0.5);
}

TEST_F(KworkersCollectorTest, SaysThatANamespaceShowsNone) {
  write_stat(4711, "kworker/0:9", kUserFlags, 100);
  const auto snapshot = make()->collect();
  ASSERT_FALSE(snapshot.ok());
  EXPECT_EQ(snapshot.error().kind, ErrorKind::kNotFound);
}

}  // namespace
}  // namespace apu
