#include "exporter/replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>

#include "exporter/file_root.h"
#include "tests/support/fake_collectors.h"
#include "tests/support/temp_tree.h"
#include "tests/support/wait.h"

namespace apu {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// Notes what stands in the root's file `name`, and the time, in each pass.
class Witness {
 public:
  struct Seen {
    std::mutex mutex;
    std::vector<std::string> frames;
    std::vector<double> times;
  };

  [[nodiscard]] CollectFunction function() const {
    return [seen = seen_](const CollectorContext& context) -> Result<Snapshot> {
      const auto name = FileRoot(context.roots.rootfs).read("name");
      const std::lock_guard lock(seen->mutex);
      seen->frames.push_back(name ? *name : name.error().message);
      seen->times.push_back(to_unix_seconds(context.clock->now()));
      return fake_snapshot(1);
    };
  }

  [[nodiscard]] std::vector<std::string> frames() const {
    const std::lock_guard lock(seen_->mutex);
    return seen_->frames;
  }

  [[nodiscard]] std::vector<double> times() const {
    const std::lock_guard lock(seen_->mutex);
    return seen_->times;
  }

 private:
  std::shared_ptr<Seen> seen_ = std::make_shared<Seen>();
};

class ReplayTest : public testing::Test {
 protected:
  void add_frame(const std::string& number, const std::string& time) const {
    tree_.write(number + "/name", number);
    tree_.write(number + "/time", time + "\n");
  }

  [[nodiscard]] Result<Replay> open(double speed = 1) const {
    return Replay::open(tree_.path(), speed);
  }

  [[nodiscard]] std::string refusal() const {
    const auto replay = open();
    return replay ? "" : replay.error().message;
  }

  TempTree tree_;
};

Runner runner_of(const CollectorSpec& spec, const Replay& replay) {
  RunnerContext context = fake_runner_context();
  PathOptions paths;
  paths.rootfs = replay.root();
  context.roots = make_roots(paths);
  context.clock = replay.clock();
  return {{{spec, spec.period}}, context};
}

TEST_F(ReplayTest, ShowsTheFirstFrameAtOnce) {
  add_frame("1", "100");
  add_frame("2", "160");
  const auto replay = open();
  ASSERT_TRUE(replay);
  EXPECT_EQ(*FileRoot(replay->root()).read("name"), "1");
  EXPECT_EQ(replay->clock()->now(), from_unix_seconds(100));
}

TEST_F(ReplayTest, OrdersFramesByNumber) {
  add_frame("10", "300");
  add_frame("2", "200");
  add_frame("0001", "100");
  auto replay = open();
  ASSERT_TRUE(replay);
  const Witness witness;
  Runner runner = runner_of(fake_spec("order", witness.function()), *replay);
  runner.start();
  ASSERT_EQ(replay->play(runner, /*wait=*/false), std::nullopt);
  EXPECT_THAT(witness.frames(), ElementsAre("0001", "2", "10"));
  EXPECT_THAT(witness.times(), ElementsAre(100, 200, 300));
}

TEST_F(ReplayTest, ShowsEachFrameOnceToACollectorThatHasSeenTheFirst) {
  add_frame("1", "100");
  add_frame("2", "160");
  auto replay = open();
  ASSERT_TRUE(replay);
  const Witness witness;
  Runner runner = runner_of(fake_spec("once", witness.function()), *replay);
  runner.start();
  ASSERT_TRUE(runner.wait_ready(kLongWait));
  ASSERT_EQ(replay->play(runner, /*wait=*/false), std::nullopt);
  EXPECT_THAT(witness.frames(), ElementsAre("1", "2"));
}

TEST_F(ReplayTest, LeavesTheLastFrame) {
  add_frame("1", "100");
  add_frame("2", "160");
  auto replay = open();
  ASSERT_TRUE(replay);
  const Witness witness;
  Runner runner = runner_of(fake_spec("last", witness.function()), *replay);
  runner.start();
  ASSERT_EQ(replay->play(runner, /*wait=*/false), std::nullopt);
  EXPECT_EQ(*FileRoot(replay->root()).read("name"), "2");
  EXPECT_EQ(replay->clock()->now(), from_unix_seconds(160));
}

TEST_F(ReplayTest, WaitsTheFramesTimeOverItsSpeed) {
  add_frame("1", "100");
  add_frame("2", "160");
  auto replay = open(/*speed=*/1200);
  ASSERT_TRUE(replay);
  const Witness witness;
  Runner runner = runner_of(fake_spec("speed", witness.function()), *replay);
  runner.start();
  const auto took = time_of([&] { EXPECT_EQ(replay->play(runner, /*wait=*/true), std::nullopt); });
  EXPECT_GE(took, std::chrono::milliseconds(50));
  EXPECT_LT(took, kLongWait);
}

TEST_F(ReplayTest, DoesNotWaitForAFrameBeforeTheOneShown) {
  add_frame("1", "100000");
  add_frame("2", "100");
  auto replay = open();
  ASSERT_TRUE(replay);
  const Witness witness;
  Runner runner = runner_of(fake_spec("back", witness.function()), *replay);
  runner.start();
  EXPECT_LT(time_of([&] { EXPECT_EQ(replay->play(runner, /*wait=*/true), std::nullopt); }),
            kLongWait);
  EXPECT_EQ(replay->clock()->now(), from_unix_seconds(100));
}

TEST_F(ReplayTest, IgnoresWhatIsNoNumber) {
  add_frame("1", "100");
  tree_.write("README.md", "not a frame");
  tree_.write("2.bak/name", "not a frame");
  const auto replay = open();
  ASSERT_TRUE(replay) << replay.error().message;
  EXPECT_EQ(*FileRoot(replay->root()).read("name"), "1");
}

TEST_F(ReplayTest, NeedsAFrame) {
  EXPECT_THAT(refusal(), HasSubstr("no numbered directory"));
  EXPECT_THAT(refusal(), HasSubstr(tree_.path().string()));
}

TEST_F(ReplayTest, NeedsADirectory) {
  EXPECT_FALSE(Replay::open("/nonexistent/frames", 1));
}

TEST_F(ReplayTest, NeedsATimeInEveryFrame) {
  add_frame("1", "100");
  tree_.write("2/name", "2");
  EXPECT_THAT(refusal(), HasSubstr("2/time"));
}

TEST_F(ReplayTest, NeedsATimeThatIsOne) {
  for (const char* time : {"", "soon", "100x", "nan", "inf", "1e300", "-1"}) {
    add_frame("1", time);
    EXPECT_THAT(refusal(), HasSubstr("1/time:1: not Unix seconds")) << time;
  }
}

TEST_F(ReplayTest, TakesItsLinkAwayWithIt) {
  add_frame("1", "100");
  std::filesystem::path directory;
  {
    auto replay = open();
    ASSERT_TRUE(replay);
    directory = replay->root().parent_path();
    const Replay moved = *std::move(replay);
    EXPECT_TRUE(std::filesystem::exists(moved.root())) << "it moves with the object";
  }
  EXPECT_FALSE(std::filesystem::exists(directory));
  EXPECT_TRUE(std::filesystem::exists(tree_.path() / "1/name")) << "the frames stay";
}

TEST_F(ReplayTest, TakesTheLinkOfAReplacedOneAwayToo) {
  add_frame("1", "100");
  auto first = open();
  auto second = open();
  ASSERT_TRUE(first);
  ASSERT_TRUE(second);
  const std::filesystem::path replaced = first->root().parent_path();
  const std::filesystem::path kept = second->root().parent_path();
  {
    Replay replay = *std::move(first);
    replay = *std::move(second);
    EXPECT_EQ(replay.root().parent_path(), kept);
  }
  second = Error{ErrorKind::kUnknown, "done"};
  EXPECT_FALSE(std::filesystem::exists(replaced));
  EXPECT_FALSE(std::filesystem::exists(kept));
}

TEST(ReadFixtureTime, TakesFractionsAndTheFirstLineOnly) {
  const TempTree tree;
  tree.write("time", " 1700000000.5 \nsecond line\n");
  const auto time = read_fixture_time(tree.path() / "time");
  ASSERT_TRUE(time);
  EXPECT_EQ(*time, from_unix_seconds(1700000000.5));
}

TEST(ReadFixtureTime, TakesALineWithoutItsNewline) {
  const TempTree tree;
  tree.write("time", "1700000000");
  const auto time = read_fixture_time(tree.path() / "time");
  ASSERT_TRUE(time);
  EXPECT_EQ(*time, from_unix_seconds(1700000000));
}

}  // namespace
}  // namespace apu
