#include "exporter/runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/fake_collectors.h"
#include "tests/support/wait.h"

namespace apu {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::SizeIs;

CollectorSpec refreshed(CollectorSpec spec) {
  spec.on_scrape = OnScrape::kRefresh;
  return spec;
}

CollectorSpec with_deadline(CollectorSpec spec, milliseconds deadline) {
  spec.deadline = deadline;
  return spec;
}

Runner runner_of(const std::vector<CollectorSpec>& specs) {
  std::vector<EnabledCollector> enabled;
  for (const CollectorSpec& spec : specs) {
    enabled.push_back({spec, spec.period});
  }
  return {enabled, fake_runner_context(from_unix_seconds(100))};
}

CollectorView view_of(const Runner& runner, std::string_view name) {
  for (const CollectorView& view : runner.view()) {
    if (view.name == name) {
      return view;
    }
  }
  ADD_FAILURE() << "no " << name;
  return {};
}

TEST(Runner, ShowsEveryCollectorInTheOrderGiven) {
  const CountingCollector counting;
  Runner runner = runner_of(
      {fake_spec("r_good", counting.function()), fake_spec("r_bad", failing_collector("gone"))});
  runner.start();
  ASSERT_TRUE(runner.wait_ready(kLongWait));
  const std::vector<CollectorView> views = runner.view();
  ASSERT_THAT(views, SizeIs(2));
  EXPECT_EQ(views[0].name, "r_good");
  EXPECT_EQ(value_of(views[0].snapshot), 1);
  EXPECT_TRUE(views[0].age.has_value());
  EXPECT_FALSE(views[0].stale);
  EXPECT_EQ(views[1].name, "r_bad");
  EXPECT_EQ(views[1].snapshot, nullptr);
  EXPECT_FALSE(views[1].age.has_value());
  EXPECT_EQ(views[1].status.passes_failed, 1U);
}

TEST(Runner, GivesCollectorsWhatTheOthersFound) {
  const CountingCollector counting;
  const auto derive = [](const CollectorContext& context) -> Result<Snapshot> {
    const StoredSnapshot newest = context.store->newest("r_source");
    return newest.snapshot ? Result<Snapshot>(fake_snapshot(10 * value_of(newest.snapshot)))
                           : Error{ErrorKind::kNotFound, "not yet"};
  };
  Runner runner =
      runner_of({fake_spec("r_source", counting.function()), fake_spec("r_derived", derive)});
  runner.start();
  ASSERT_TRUE(runner.wait_ready(kLongWait));
  const int source = value_of(view_of(runner, "r_source").snapshot);
  ASSERT_TRUE(runner.pass_all(kLongWait));
  EXPECT_GE(value_of(view_of(runner, "r_derived").snapshot), 10 * source);
}

TEST(Runner, IsReadyWhenEveryCollectorHasEndedAPass) {
  BlockingCollector blocking;
  Runner runner = runner_of(
      {fake_spec("r_bad", failing_collector("gone")), fake_spec("r_slow", blocking.function())});
  EXPECT_FALSE(runner.ready());
  runner.start();
  ASSERT_TRUE(blocking.wait_begun());
  EXPECT_FALSE(runner.ready());
  EXPECT_FALSE(runner.wait_ready(milliseconds(1)));
  blocking.release();
  EXPECT_TRUE(runner.wait_ready(kLongWait));
  EXPECT_TRUE(runner.ready());
}

TEST(Runner, IsReadyWhenTheLastCollectorIsOverdue) {
  const BlockingCollector blocking;
  Runner runner =
      runner_of({with_deadline(fake_spec("r_stuck", blocking.function()), milliseconds(1))});
  runner.start();
  EXPECT_LT(time_of([&] { EXPECT_TRUE(runner.wait_ready(kLongWait)); }), kLongWait / 2);
  EXPECT_TRUE(runner.ready());
}

TEST(Runner, RefreshesCheapCollectorsOverASecondOld) {
  const CountingCollector cheap;
  const CountingCollector other;
  Runner runner = runner_of(
      {refreshed(fake_spec("r_cheap", cheap.function())), fake_spec("r_other", other.function())});
  runner.start();
  ASSERT_TRUE(runner.wait_ready(kLongWait));
  ASSERT_TRUE(eventually([&] { return view_of(runner, "r_cheap").age > milliseconds(1001); }));
  runner.refresh(kLongWait);
  EXPECT_EQ(value_of(view_of(runner, "r_cheap").snapshot), 2);
  EXPECT_LT(view_of(runner, "r_cheap").age, kLongWait);
  EXPECT_EQ(other.passes(), 1);
}

TEST(Runner, DoesNotRefreshWhatIsFresh) {
  const CountingCollector cheap;
  Runner runner = runner_of({refreshed(fake_spec("r_fresh", cheap.function()))});
  runner.start();
  ASSERT_TRUE(runner.wait_ready(kLongWait));
  runner.refresh(kLongWait);  // it would wait for a pass that it had asked for
  if (view_of(runner, "r_fresh").age < seconds(1)) {
    EXPECT_EQ(cheap.passes(), 1);
  }
}

TEST(Runner, RefreshesACollectorThatHasNothingYet) {
  Runner runner = runner_of({refreshed(fake_spec("r_empty", failing_collector("gone")))});
  runner.start();
  ASSERT_TRUE(runner.wait_ready(kLongWait));
  runner.refresh(kLongWait);
  EXPECT_EQ(view_of(runner, "r_empty").status.passes_failed, 2U);
}

TEST(Runner, RefreshWaitsABoundedTimeForAStuckCollector) {
  const BlockingCollector blocking;
  const CountingCollector counting;
  Runner runner = runner_of({refreshed(fake_spec("r_stuck", blocking.function())),
                             refreshed(fake_spec("r_good", counting.function()))});
  runner.start();
  ASSERT_TRUE(blocking.wait_begun());
  const auto took = time_of([&] { runner.refresh(milliseconds(20)); });
  EXPECT_GE(took, milliseconds(20));
  EXPECT_LT(took, kLongWait / 2);
  EXPECT_EQ(blocking.begun(), 1);
}

TEST(Runner, RefreshNeverWaitsForAnOverdueCollector) {
  const BlockingCollector blocking;
  Runner runner = runner_of(
      {with_deadline(refreshed(fake_spec("r_stuck", blocking.function())), milliseconds(1))});
  runner.start();
  ASSERT_TRUE(eventually([&] { return view_of(runner, "r_stuck").status.overdue; }));
  EXPECT_LT(time_of([&] { runner.refresh(kLongWait); }), kLongWait / 2);
}

TEST(Runner, PassAllHasEveryCollectorDoAPass) {
  const CountingCollector one;
  const CountingCollector two;
  Runner runner =
      runner_of({fake_spec("r_one", one.function()), fake_spec("r_two", two.function())});
  runner.start();
  ASSERT_TRUE(runner.wait_ready(kLongWait));
  ASSERT_TRUE(runner.pass_all(kLongWait));
  EXPECT_EQ(one.passes(), 2);
  EXPECT_EQ(two.passes(), 2);
}

TEST(Runner, PassAllAsksForAPassThatStartsAfterTheCall) {
  BlockingCollector blocking;
  Runner runner = runner_of({fake_spec("r_slow", blocking.function())});
  runner.start();
  ASSERT_TRUE(blocking.wait_begun());
  EXPECT_FALSE(runner.pass_all(milliseconds(1))) << "it is stuck in the pass before";
  blocking.release();
  EXPECT_TRUE(blocking.wait_begun(2)) << "the pass that was running does not count";
}

TEST(Runner, PassAllCountsFailedPasses) {
  Runner runner = runner_of({fake_spec("r_bad", failing_collector("gone"))});
  runner.start();
  EXPECT_TRUE(runner.pass_all(kLongWait));
  EXPECT_GE(view_of(runner, "r_bad").status.passes_failed, 1U);
}

TEST(Runner, StopEndsEveryWorker) {
  const CountingCollector counting;
  Runner runner = runner_of(
      {fake_spec("r_end_a", counting.function()), fake_spec("r_end_b", failing_collector("gone"))});
  runner.start();
  EXPECT_TRUE(runner.stop(kLongWait));
  EXPECT_TRUE(view_of(runner, "r_end_a").status.ended);
  EXPECT_TRUE(
      eventually([] { return threads_named("r_end_a") == 0 && threads_named("r_end_b") == 0; }));
}

TEST(Runner, StopSaysThatAWorkerIsStuck) {
  BlockingCollector blocking;
  Runner runner = runner_of({fake_spec("r_stuck", blocking.function())});
  runner.start();
  ASSERT_TRUE(blocking.wait_begun());
  EXPECT_FALSE(runner.stop(milliseconds(1)));
  blocking.release();
  EXPECT_TRUE(runner.stop(kLongWait));
}

TEST(Runner, IsDestroyedAtOnceWhileAWorkerIsStuck) {
  BlockingCollector blocking;
  auto runner = std::make_unique<Runner>(runner_of({fake_spec("r_left", blocking.function())}));
  runner->start();
  ASSERT_TRUE(blocking.wait_begun());
  EXPECT_LT(time_of([&] { runner.reset(); }), kLongWait / 2);
  blocking.release();
  EXPECT_TRUE(eventually([] { return threads_named("r_left") == 0; }));
}

TEST(Runner, IsReadyWithoutCollectors) {
  Runner runner = runner_of({});
  runner.start();
  EXPECT_TRUE(runner.ready());
  EXPECT_TRUE(runner.pass_all(milliseconds(0)));
  EXPECT_TRUE(runner.stop(milliseconds(0)));
}

}  // namespace
}  // namespace apu
