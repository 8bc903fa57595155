#include "exporter/worker.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <stdexcept>
#include <thread>
#include <vector>

#include "exporter/descriptor.h"
#include "tests/support/fake_collectors.h"
#include "tests/support/wait.h"

namespace apu {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

class WorkerTest : public testing::Test {
 protected:
  [[nodiscard]] Worker start(const CollectorSpec& spec, milliseconds period = hours(1)) const {
    Worker worker(spec, period, fake_context(store_, from_unix_seconds(100)), store_, signal_);
    worker.start();
    return worker;
  }

  template <typename Condition>
  bool wait_until(Condition condition) {
    return signal_->wait_until(std::chrono::steady_clock::now() + kLongWait, condition);
  }

  bool wait_passes(const Worker& worker, std::uint64_t passes) {
    return wait_until([&] { return worker.status().passes() >= passes; });
  }

  [[nodiscard]] int newest(std::string_view name) const {
    return value_of(store_->newest(name).snapshot);
  }

  std::shared_ptr<Store> store_ = std::make_shared<Store>();
  std::shared_ptr<PassSignal> signal_ = std::make_shared<PassSignal>();
};

TEST_F(WorkerTest, DoesAPassAtOnceAndStoresWhatItFound) {
  const CountingCollector counting;
  const auto before = std::chrono::steady_clock::now();
  const Worker worker = start(fake_spec("w_first", counting.function()));
  ASSERT_TRUE(wait_passes(worker, 1));
  const StoredSnapshot stored = store_->newest("w_first");
  EXPECT_EQ(value_of(stored.snapshot), 1);
  EXPECT_EQ(stored.time, from_unix_seconds(100));
  EXPECT_GE(stored.taken, before);
  EXPECT_EQ(stored.period, hours(1));
  const WorkerStatus status = worker.status();
  EXPECT_EQ(status.passes_ok, 1U);
  EXPECT_EQ(status.passes_failed, 0U);
  EXPECT_TRUE(status.last_pass_ok);
  EXPECT_TRUE(status.last_duration.has_value());
  EXPECT_FALSE(status.pass_started.has_value());
  EXPECT_FALSE(status.overdue);
}

TEST_F(WorkerTest, KnowsNothingBeforeItsFirstPass) {
  const BlockingCollector blocking;
  const Worker worker = start(fake_spec("w_none", blocking.function()));
  ASSERT_TRUE(blocking.wait_begun());
  const WorkerStatus status = worker.status();
  EXPECT_EQ(status.passes(), 0U);
  EXPECT_FALSE(status.last_pass_ok);
  EXPECT_FALSE(status.last_duration.has_value());
  EXPECT_TRUE(status.pass_started.has_value());
  EXPECT_EQ(newest("w_none"), -1);
}

TEST_F(WorkerTest, DoesAPassEachPeriod) {
  const CountingCollector counting;
  const Worker worker = start(fake_spec("w_period", counting.function()), milliseconds(1));
  EXPECT_TRUE(wait_passes(worker, 3));
}

TEST_F(WorkerTest, DoesAPassThatIsAskedFor) {
  const CountingCollector counting;
  Worker worker = start(fake_spec("w_asked", counting.function()));
  ASSERT_TRUE(wait_passes(worker, 1));
  EXPECT_EQ(worker.request_pass(), 2U);
  ASSERT_TRUE(wait_passes(worker, 2));
  EXPECT_EQ(newest("w_asked"), 2);
}

TEST_F(WorkerTest, ARunningPassCountsForWhoeverAsksOnlyIfItMayHaveBegunBefore) {
  BlockingCollector blocking;
  Worker worker = start(fake_spec("w_running", blocking.function()));
  ASSERT_TRUE(blocking.wait_begun());
  EXPECT_EQ(worker.request_pass(), 1U);
  EXPECT_EQ(worker.request_pass(/*from_start=*/true), 2U);
  blocking.release();
  ASSERT_TRUE(wait_passes(worker, 2)) << "the pass from the start follows the running one";
}

TEST_F(WorkerTest, KeepsTheLastGoodSnapshotOverAFailedPass) {
  CountingCollector counting;
  const auto collect = [good = counting.function(), bad = failing_collector("gone"),
                        first = true](const CollectorContext& context) mutable {
    return std::exchange(first, false) ? good(context) : bad(context);
  };
  Worker worker = start(fake_spec("w_keeps", collect));
  ASSERT_TRUE(wait_passes(worker, 1));
  worker.request_pass();
  ASSERT_TRUE(wait_passes(worker, 2));
  EXPECT_EQ(newest("w_keeps"), 1);
  EXPECT_EQ(worker.status().passes_failed, 1U);
  EXPECT_FALSE(worker.status().last_pass_ok);
}

TEST_F(WorkerTest, RecoversFromAFailedPass) {
  CountingCollector counting;
  const auto collect = [good = counting.function(), bad = failing_collector("not yet"),
                        first = true](const CollectorContext& context) mutable {
    return std::exchange(first, false) ? bad(context) : good(context);
  };
  Worker worker = start(fake_spec("w_recovers", collect));
  ASSERT_TRUE(wait_passes(worker, 1));
  EXPECT_FALSE(worker.status().last_pass_ok);
  worker.request_pass();
  ASSERT_TRUE(wait_passes(worker, 2));
  EXPECT_TRUE(worker.status().last_pass_ok);
  EXPECT_EQ(newest("w_recovers"), 1);
}

TEST_F(WorkerTest, AnExceptionIsAFailedPass) {
  Worker worker = start(fake_spec("w_throws", throwing_collector("out of luck")));
  ASSERT_TRUE(wait_passes(worker, 1));
  worker.request_pass();
  ASSERT_TRUE(wait_passes(worker, 2)) << "the thread goes on";
  EXPECT_EQ(worker.status().passes_failed, 2U);
}

TEST_F(WorkerTest, AnExceptionOfNoStandardTypeIsAFailedPass) {
  const auto collect = [](const CollectorContext&) -> Result<Snapshot> { throw 42; };
  const Worker worker = start(fake_spec("w_throws_int", collect));
  ASSERT_TRUE(wait_passes(worker, 1));
  EXPECT_EQ(worker.status().passes_failed, 1U);
}

TEST_F(WorkerTest, ACollectorThatCannotBeMadeIsAFailedPass) {
  CollectorSpec spec = fake_spec("w_unmade", {});
  spec.make = [](const CollectorContext&) -> std::unique_ptr<Collector> {
    throw std::runtime_error("no room");
  };
  const Worker worker = start(spec);
  ASSERT_TRUE(wait_passes(worker, 1));
  EXPECT_EQ(worker.status().passes_failed, 1U);
}

TEST_F(WorkerTest, HasOnePassInFlightAtMost) {
  struct InFlight {
    std::atomic<int> now = 0;
    std::atomic<int> most = 0;
  };

  const auto in_flight = std::make_shared<InFlight>();
  const auto collect = [in_flight](const CollectorContext&) -> Result<Snapshot> {
    in_flight->most = std::max<int>(in_flight->most, ++in_flight->now);
    std::this_thread::yield();
    --in_flight->now;
    return fake_snapshot(1);
  };
  Worker worker = start(fake_spec("w_one", collect), milliseconds(1));
  std::vector<std::thread> askers;
  for (int i = 0; i < 4; ++i) {
    askers.emplace_back([&worker] {
      for (int j = 0; j < 200; ++j) {
        worker.request_pass(/*from_start=*/true);
      }
    });
  }
  for (std::thread& asker : askers) {
    asker.join();
  }
  ASSERT_TRUE(wait_passes(worker, 10));
  EXPECT_EQ(in_flight->most, 1);
}

TEST_F(WorkerTest, IsOverdueFromItsDeadlineUntilThePassEnds) {
  BlockingCollector blocking;
  CollectorSpec spec = fake_spec("w_overdue", blocking.function());
  spec.deadline = milliseconds(1);
  const Worker worker = start(spec);
  ASSERT_TRUE(eventually([&] { return worker.status().overdue; }));
  EXPECT_EQ(worker.status().passes(), 0U);
  blocking.release();
  ASSERT_TRUE(wait_passes(worker, 1));
  EXPECT_FALSE(worker.status().overdue);
  EXPECT_TRUE(worker.status().last_pass_ok);
}

TEST_F(WorkerTest, IsNotOverdueBeforeItsDeadline) {
  const BlockingCollector blocking;
  const Worker worker = start(fake_spec("w_in_time", blocking.function()));
  ASSERT_TRUE(blocking.wait_begun());
  EXPECT_FALSE(worker.status().overdue);
}

TEST_F(WorkerTest, MakesNoSecondThreadBehindAStuckOne) {
  const BlockingCollector blocking;
  CollectorSpec spec = fake_spec("w_stuck", blocking.function());
  spec.deadline = milliseconds(1);
  Worker worker = start(spec, milliseconds(1));
  ASSERT_TRUE(eventually([&] { return worker.status().overdue; }));
  for (int i = 0; i < 20; ++i) {
    worker.request_pass(/*from_start=*/true);
  }
  EXPECT_EQ(threads_named("w_stuck"), 1);
  EXPECT_EQ(blocking.begun(), 1);
}

TEST_F(WorkerTest, IsDestroyedAtOnceWhileItsPassIsStuck) {
  BlockingCollector blocking;
  {
    auto worker = std::make_unique<Worker>(start(fake_spec("w_left", blocking.function())));
    ASSERT_TRUE(blocking.wait_begun());
    EXPECT_LT(time_of([&] { worker.reset(); }), kLongWait / 2);
  }
  EXPECT_EQ(threads_named("w_left"), 1) << "the stuck thread is left behind";
  blocking.release();
  EXPECT_TRUE(eventually([] { return threads_named("w_left") == 0; }));
  EXPECT_EQ(newest("w_left"), 1) << "what it shares was still there";
}

TEST_F(WorkerTest, EndsItsThreadOnStop) {
  const CountingCollector counting;
  Worker worker = start(fake_spec("w_stop", counting.function()));
  ASSERT_TRUE(wait_passes(worker, 1));
  EXPECT_FALSE(worker.status().ended);
  worker.stop();
  ASSERT_TRUE(wait_until([&] { return worker.status().ended; }));
  EXPECT_EQ(counting.passes(), 1);
}

TEST_F(WorkerTest, EndsAfterThePassThatWasRunningAtTheStop) {
  BlockingCollector blocking;
  Worker worker = start(fake_spec("w_last", blocking.function()));
  ASSERT_TRUE(blocking.wait_begun());
  worker.stop();
  EXPECT_FALSE(worker.status().ended);
  blocking.release();
  ASSERT_TRUE(wait_until([&] { return worker.status().ended; }));
  EXPECT_EQ(blocking.begun(), 1);
}

TEST_F(WorkerTest, KnowsItsRowAndItsPeriod) {
  const CountingCollector counting;
  const Worker worker = start(fake_spec("w_row", counting.function()), milliseconds(1500));
  EXPECT_EQ(worker.spec().name, "w_row");
  EXPECT_EQ(worker.period(), milliseconds(1500));
}

/// What fcntl says of `descriptor` in the calling thread's table: 0, or errno.
int errno_of(int descriptor) {
  return ::fcntl(descriptor, F_GETFD) < 0 ? errno : 0;
}

TEST_F(WorkerTest, HasADescriptorTableOfItsOwn) {
  const Descriptor opened_before(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_TRUE(opened_before.valid());
  BlockingCollector blocking;
  const auto found = std::make_shared<std::vector<int>>();
  const auto opened_later = std::make_shared<std::atomic<int>>(-1);
  const auto collect = [=, before = opened_before.get(), block = blocking.function()](
                           const CollectorContext& context) -> Result<Snapshot> {
    auto snapshot = block(context);  // until the main thread has opened another
    *found = {errno_of(STDERR_FILENO), errno_of(before), errno_of(*opened_later)};
    return snapshot;
  };
  const Worker worker = start(fake_spec("w_table", collect));
  ASSERT_TRUE(blocking.wait_begun());
  const Descriptor later(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_TRUE(later.valid());
  *opened_later = later.get();
  blocking.release();
  ASSERT_TRUE(wait_passes(worker, 1));
  EXPECT_EQ(*found, (std::vector<int>{0, EBADF, EBADF}));
  EXPECT_EQ(errno_of(opened_before.get()), 0) << "still open here";
}

TEST(PassSignal, GivesUpAtItsDeadline) {
  PassSignal signal;
  EXPECT_FALSE(signal.wait_until(std::chrono::steady_clock::now(), [] { return false; }));
}

TEST(PassSignal, WakesOnNotify) {
  PassSignal signal;
  std::atomic<bool> done = false;
  std::thread notifier([&] {
    done = true;
    signal.notify();
  });
  EXPECT_TRUE(
      signal.wait_until(std::chrono::steady_clock::now() + kLongWait, [&] { return done.load(); }));
  notifier.join();
}

}  // namespace
}  // namespace apu
