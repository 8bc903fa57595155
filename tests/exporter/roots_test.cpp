#include "exporter/roots.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace apu {
namespace {

using testing::ElementsAre;

TEST(MakeRoots, AreThoseOfTheLiveHostByDefault) {
  const SourceRoots roots = make_roots({});
  EXPECT_EQ(roots.rootfs, "/");
  EXPECT_EQ(roots.procfs, "/proc");
  EXPECT_EQ(roots.sysfs, "/sys");
  EXPECT_EQ(roots.debugfs, "/sys/kernel/debug");
  EXPECT_EQ(roots.cgroupfs, "/sys/fs/cgroup");
  EXPECT_EQ(roots.kmsg, "/dev/kmsg");
  EXPECT_THAT(roots.journals, ElementsAre("/var/log/journal", "/run/log/journal"));
  EXPECT_FALSE(roots.fixture);
}

TEST(MakeRoots, FollowTheRootOfAFixture) {
  PathOptions options;
  options.rootfs = "/fixture";
  const SourceRoots roots = make_roots(options);
  EXPECT_EQ(roots.rootfs, "/fixture");
  EXPECT_EQ(roots.procfs, "/fixture/proc");
  EXPECT_EQ(roots.sysfs, "/fixture/sys");
  EXPECT_EQ(roots.debugfs, "/fixture/sys/kernel/debug");
  EXPECT_EQ(roots.cgroupfs, "/fixture/sys/fs/cgroup");
  EXPECT_EQ(roots.kmsg, "/fixture/dev/kmsg");
  EXPECT_THAT(roots.journals, ElementsAre("/fixture/var/log/journal", "/fixture/run/log/journal"));
  EXPECT_EQ(roots.fixture_log, "/fixture/kernel.log");
  EXPECT_EQ(roots.fixture_time, "/fixture/time");
  EXPECT_TRUE(roots.fixture);
}

TEST(MakeRoots, TakeEachPathOfItsOwn) {
  PathOptions options;
  options.rootfs = "/fixture";
  options.procfs = "/p";
  options.sysfs = "/s";
  options.debugfs = "/d";
  options.cgroupfs = "/c";
  options.kmsg = "/k";
  options.journal = "/j";
  const SourceRoots roots = make_roots(options);
  EXPECT_EQ(roots.procfs, "/p");
  EXPECT_EQ(roots.sysfs, "/s");
  EXPECT_EQ(roots.debugfs, "/d");
  EXPECT_EQ(roots.cgroupfs, "/c");
  EXPECT_EQ(roots.kmsg, "/k");
  EXPECT_THAT(roots.journals, ElementsAre("/j"));
}

TEST(MakeRoots, DebugfsAndCgroupfsFollowSysfs) {
  PathOptions options;
  options.sysfs = "/s";
  const SourceRoots roots = make_roots(options);
  EXPECT_EQ(roots.debugfs, "/s/kernel/debug");
  EXPECT_EQ(roots.cgroupfs, "/s/fs/cgroup");
  EXPECT_FALSE(roots.fixture) << "the root is the live host's";
}

}  // namespace
}  // namespace apu
