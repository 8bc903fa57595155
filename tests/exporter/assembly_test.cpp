#include "exporter/assembly.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/fake_collectors.h"
#include "tests/support/temp_tree.h"
#include "tests/support/wait.h"

namespace apu {
namespace {

using testing::HasSubstr;

/// What a collector was made with.
struct Given {
  SourceRoots roots;
  TimePoint now;
  std::string kernel_log;
};

class AssemblyTest : public testing::Test {
 protected:
  AssemblyTest() {
    options_.telemetry_path = "/metrics";
    options_.kernel_log = "kmsg";
    options_.paths.rootfs = tree_.path();
  }

  /// Runs the assembled exporter's one collector once; what it was made with is in given_.
  Result<Exporter> run() {
    CollectorSpec spec = fake_spec("fake", [given = given_](const CollectorContext& context) {
      *given = {context.roots, context.clock->now(), context.kernel_log};
      return fake_snapshot(1);
    });
    options_.collectors = {{spec, spec.period}};
    const std::vector known{spec, fake_spec("off", {})};
    auto exporter = assemble(options_, known);
    if (exporter) {
      exporter->runner->start();
      EXPECT_TRUE(exporter->runner->wait_ready(kLongWait));
    }
    return exporter;
  }

  TempTree tree_;
  Options options_;
  std::shared_ptr<Given> given_ = std::make_shared<Given>();
};

TEST_F(AssemblyTest, HandsCollectorsTheirRootsAndOptions) {
  ASSERT_TRUE(run());
  EXPECT_EQ(given_->roots.procfs, tree_.path() / "proc");
  EXPECT_EQ(given_->kernel_log, "kmsg");
}

TEST_F(AssemblyTest, ServesWhatTheCollectorsFound) {
  const auto exporter = run();
  ASSERT_TRUE(exporter);
  EXPECT_THAT(exporter->endpoints->exposition(), HasSubstr("apu_fake_value 1\n"));
  EXPECT_FALSE(exporter->replay.has_value());
}

TEST_F(AssemblyTest, ServesAtTheGivenPath) {
  options_.telemetry_path = "/m";
  const auto exporter = run();
  ASSERT_TRUE(exporter);
  EXPECT_EQ(exporter->endpoints->handle({"GET", "/m", {}, false}).status, 200);
}

TEST_F(AssemblyTest, TellsADisabledCollectorFromAnUnknownOne) {
  const auto exporter = run();
  ASSERT_TRUE(exporter);
  const HttpRequest disabled{"GET", "/metrics", {{"collect[]", "off"}}, false};
  EXPECT_THAT(exporter->endpoints->handle(disabled).body, HasSubstr("disabled collector: off"));
}

TEST_F(AssemblyTest, StandsAtTheTimeOfAFixture) {
  tree_.write("time", "1700000000\n");
  ASSERT_TRUE(run());
  EXPECT_EQ(given_->now, from_unix_seconds(1700000000));
}

TEST_F(AssemblyTest, HasTheRealTimeWhereAFixtureHasNone) {
  const TimePoint before = std::chrono::system_clock::now();
  ASSERT_TRUE(run());
  EXPECT_GE(given_->now, before);
}

TEST_F(AssemblyTest, RefusesAFixtureWithABadTime) {
  tree_.write("time", "soon\n");
  const auto exporter = run();
  ASSERT_FALSE(exporter);
  EXPECT_THAT(exporter.error().message, HasSubstr("time:1: not Unix seconds"));
}

TEST_F(AssemblyTest, ReadsTheFramesOfAReplay) {
  tree_.write("frames/1/time", "1700000000\n");
  options_.replay_frames = tree_.path() / "frames";
  const auto exporter = run();
  ASSERT_TRUE(exporter);
  ASSERT_TRUE(exporter->replay.has_value());
  EXPECT_EQ(given_->roots.rootfs, exporter->replay->root());
  EXPECT_EQ(given_->now, from_unix_seconds(1700000000));
}

TEST_F(AssemblyTest, RefusesAReplayWithoutFrames) {
  options_.replay_frames = tree_.path();
  const auto exporter = run();
  ASSERT_FALSE(exporter);
  EXPECT_THAT(exporter.error().message, HasSubstr("no numbered directory"));
}

}  // namespace
}  // namespace apu
