#include "collectors/parsers/drm_minors.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <string>

#include "exporter/descriptor.h"
#include "tests/support/gpu_tree.h"

namespace apu {
namespace {

TEST(DrmMinors, AreThoseOfTheirDriver) {
  TempTree tree;
  add_card(tree, 0, "0000:c5:00.0");
  add_card(tree, 1, "0000:01:00.0", "nvidia", "0x10de");
  tree.link("sys/class/drm/renderD130/device", "../../../devices/platform/amdgpu_xcp.0");
  const DrmMinors minors = DrmMinors::read(FileRoot(tree.path() / "sys"));
  for (const unsigned minor : {0U, 128U, 130U}) {
    EXPECT_EQ(minors.driver_of(minor), DrmDriver::kAmdgpu) << minor;
  }
  for (const unsigned minor : {1U, 129U}) {
    EXPECT_EQ(minors.driver_of(minor), DrmDriver::kOther) << minor;
  }
  EXPECT_EQ(minors.driver_of(131), DrmDriver::kUnknown);
  EXPECT_EQ(DrmMinors::read(FileRoot(tree.path() / "none")).driver_of(0), DrmDriver::kUnknown);
}

TEST(DrmMinorOf, NameCountsWhereNoDeviceIs) {
  TempTree tree;
  const FileRoot root(tree.path());
  EXPECT_EQ(drm_minor_of(root, "none", "/dev/dri/renderD131"), 131U);
  EXPECT_EQ(drm_minor_of(root, "none", "/host/dev/dri/card2 (deleted)"), 2U);
  for (const char* link : {"/dev/dri/by-path", "/dev/null", "socket:[7]", "/home/u/renderD128"}) {
    EXPECT_FALSE(drm_minor_of(root, "none", link)) << link;
  }
}

TEST(DrmMinorOf, NumberCountsWhereADeviceIs) {
  const Descriptor null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const std::string descriptor = "self/fd/" + std::to_string(null.get());
  const FileRoot procfs("/proc");
  EXPECT_EQ(procfs.device_number(descriptor), (DeviceNumber{1, 3}));
  EXPECT_FALSE(drm_minor_of(procfs, descriptor, "/dev/dri/renderD128"));
  EXPECT_FALSE(procfs.device_number("self/status"));
}

TEST(DrmMinorOf, NodeMayHaveAnyName) {
  TempTree tree;
  const std::string node = (tree.path() / "gpu").string();
  if (::mknod(node.c_str(), S_IFCHR | 0600, ::makedev(226, 129)) != 0) {
    GTEST_SKIP() << "may make no device node";
  }
  EXPECT_EQ(drm_minor_of(FileRoot(tree.path()), "gpu", "/dev/dri/renderD128"), 129U);
  EXPECT_EQ(drm_minor_of(FileRoot(tree.path()), "gpu", "/dev/gpu"), 129U);
}

}  // namespace
}  // namespace apu
