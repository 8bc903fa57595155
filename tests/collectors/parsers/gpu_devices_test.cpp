#include "collectors/parsers/gpu_devices.h"

#include <gtest/gtest.h>

#include "tests/support/gpu_tree.h"

namespace apu {
namespace {

using std::string_view_literals::operator""sv;

class GpuDevicesTest : public testing::Test {
 protected:
  TempTree tree_;
  FileRoot sysfs_{tree_.path() / "sys"};
};

TEST(IsPciAddress, KnowsTheKernelsForm) {
  EXPECT_TRUE(is_pci_address("0000:c5:00.0"));
  EXPECT_TRUE(is_pci_address("10000:e1:00.7"));
  for (const auto text :
       {""sv, "vkms"sv, "amdgpu_xcp.0"sv, "c5:00.0"sv, "0000:c5:00"sv, "0000:c5:00.0x"sv,
        "0000:c5:000.0"sv, "0000:C5:00.0"sv, "0000:c5:00.00"sv, "0000:c5:00.0\n"sv}) {
    EXPECT_FALSE(is_pci_address(text)) << text;
  }
}

TEST_F(GpuDevicesTest, ReadsCardsByPciAddress) {
  add_card(tree_, 0, "0000:c5:00.0");
  add_card(tree_, 1, "0000:03:00.0");
  const auto devices = read_gpu_devices(sysfs_);
  ASSERT_TRUE(devices);
  ASSERT_EQ(devices->size(), 2U);
  EXPECT_EQ(devices->at(0).pci_address, "0000:03:00.0");
  EXPECT_EQ(devices->at(0).card, "card1");
  EXPECT_EQ(devices->at(0).pci_id, "1002:1586");
  EXPECT_EQ(devices->at(0).render_minor, 129U);
  EXPECT_EQ(devices->at(0).directory(), "class/drm/card1/device");
  EXPECT_EQ(devices->at(1).card, "card0");
}

TEST_F(GpuDevicesTest, LeavesOutWhatIsNoCardOfTheDriver) {
  add_card(tree_, 0, "0000:00:02.0", "i915", "0x8086");
  add_card(tree_, 1, "0000:01:00.0", "radeon");
  add_card(tree_, 2, "0000:02:00.0", "amdgpu", "0x8086");
  add_card(tree_, 3, "amdgpu_xcp.0");
  tree_.link("sys/class/drm/card4-DP-1/device", "../../card4");
  tree_.write("sys/class/drm/version", "drm 1.1.0 20060810\n");
  tree_.write("sys/class/drm/card5/device/vendor", "0x1002\n");  // no link
  const auto devices = read_gpu_devices(sysfs_);
  ASSERT_FALSE(devices);
  EXPECT_EQ(devices.error().kind, ErrorKind::kNotFound);
}

TEST_F(GpuDevicesTest, CountsADeviceOnce) {
  const std::string device = add_card(tree_, 0, "0000:c5:00.0");
  tree_.link("sys/class/drm/card7/device", "../../../devices/pci0000:00/0000:c5:00.0");
  const auto devices = read_gpu_devices(sysfs_);
  ASSERT_TRUE(devices);
  ASSERT_EQ(devices->size(), 1U);
  EXPECT_EQ(devices->at(0).card, "card0");
  tree_.remove(device + "/drm/renderD128");
  EXPECT_FALSE(read_gpu_devices(sysfs_)->at(0).render_minor);
}

TEST_F(GpuDevicesTest, DamagedOrDeniedIdentityIsNoCard) {
  const std::string device = add_card(tree_, 0, "0000:c5:00.0");
  for (const auto text : {""sv, "0x1002"sv, "\0\xff\n"sv}) {
    tree_.write(device + "/vendor", text);
    EXPECT_FALSE(read_gpu_devices(sysfs_)) << text;
  }
  tree_.remove(device + "/vendor");
  tree_.make_unreadable(device + "/vendor");
  EXPECT_FALSE(read_gpu_devices(sysfs_));
}

TEST_F(GpuDevicesTest, WithoutDrmSaysSo) {
  EXPECT_EQ(read_gpu_devices(sysfs_).error().kind, ErrorKind::kUnsupported) << "no sysfs at all";
  tree_.write("sys/module/ttm/parameters/pages_limit", "1\n");
  EXPECT_EQ(read_gpu_devices(sysfs_).error().kind, ErrorKind::kNotFound);
}

TEST(ParseRuntimeSuspended, KnowsEachState) {
  EXPECT_EQ(parse_runtime_suspended("active\n"), false);
  EXPECT_EQ(parse_runtime_suspended("unsupported\n"), false);
  for (const auto text : {"suspended\n"sv, "suspending\n"sv, "resuming\n"sv}) {
    EXPECT_EQ(parse_runtime_suspended(text), true) << text;
  }
  for (const auto text : {""sv, "error\n"sv, "act"sv, "\0\xff"sv}) {
    EXPECT_FALSE(parse_runtime_suspended(text)) << text;
  }
}

}  // namespace
}  // namespace apu
