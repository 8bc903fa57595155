#include "collectors/gpu_busy.h"

#include <gtest/gtest.h>

#include "tests/support/collector_host.h"
#include "tests/support/gpu_tree.h"

namespace apu {
namespace {

using std::string_view_literals::operator""sv;

constexpr const char* kBusy = R"(apu_gpu_busy_ratio{gpu="0000:c5:00.0"})";
constexpr const char* kRefused =
    R"(apu_source_unavailable_info{source="gpu_busy",reason="permission_denied"})";

TEST(ParseBusyPercent, TakesAPercentageAlone) {
  EXPECT_EQ(parse_busy_percent("0\n"), 0U);
  EXPECT_EQ(parse_busy_percent("100\n"), 100U);
  for (const auto text :
       {""sv, "\n"sv, "37"sv, "101\n"sv, "-1\n"sv, "4294967295\n"sv, "\0\xff\n"sv}) {
    EXPECT_FALSE(parse_busy_percent(text)) << text;
  }
}

TEST(GpuBusyFamilies, AreRatios) {
  const auto families = to_families(GpuBusyFacts{{{"0000:c5:00.0", 37}, {"0000:03:00.0", {}}}});
  EXPECT_EQ(value_of(families, kBusy), 0.37);
  EXPECT_FALSE(value_of(families, R"(apu_gpu_busy_ratio{gpu="0000:03:00.0"})"));
}

class GpuBusyCollectorTest : public testing::Test {
 protected:
  Families collect() {
    auto snapshot = collector_->collect();
    EXPECT_TRUE(snapshot);
    return snapshot ? std::move(snapshot->families) : Families{};
  }

  TempTree tree_;
  CollectorHost host_{tree_.path()};
  std::unique_ptr<Collector> collector_ = make_gpu_busy_collector(host_.context());
  std::string device_ = add_card(tree_, 0, "0000:c5:00.0");
};

TEST_F(GpuBusyCollectorTest, ReadsAGpuThatIsAwake) {
  tree_.write(device_ + "/gpu_busy_percent", "12\n");
  EXPECT_EQ(value_of(collect(), kBusy), 0.12);  // a kernel without power management
  for (const char* status : {"active\n", "unsupported\n"}) {
    tree_.write(device_ + "/power/runtime_status", status);
    EXPECT_EQ(value_of(collect(), kBusy), 0.12) << status;
  }
}

TEST_F(GpuBusyCollectorTest, DoesNotWakeAGpuThatSleeps) {
  tree_.make_fifo(device_ + "/gpu_busy_percent");  // whose open would not return
  for (const char* status : {"suspended\n", "suspending\n", "resuming\n"}) {
    tree_.write(device_ + "/power/runtime_status", status);
    EXPECT_FALSE(has_family(collect(), "apu_gpu_busy_ratio")) << status;
    EXPECT_EQ(host_.source(R"(apu_source_available{source="gpu_busy"})"), 1);
  }
}

TEST_F(GpuBusyCollectorTest, GpuThatRefusesCostsNoOtherItsValue) {
  tree_.make_unreadable(device_ + "/gpu_busy_percent");  // as during a reset
  const std::string other = add_card(tree_, 1, "0000:03:00.0");
  tree_.write(other + "/gpu_busy_percent", "100\n");
  const auto families = collect();
  EXPECT_EQ(value_of(families, R"(apu_gpu_busy_ratio{gpu="0000:03:00.0"})"), 1);
  EXPECT_FALSE(value_of(families, kBusy));
  EXPECT_EQ(host_.source(kRefused), 1);
}

TEST_F(GpuBusyCollectorTest, DamagedValueCounts) {
  tree_.write(device_ + "/gpu_busy_percent", "255\n");
  EXPECT_FALSE(has_family(collect(), "apu_gpu_busy_ratio"));
  EXPECT_EQ(host_.parse_errors("gpu_busy"), 1);
}

TEST_F(GpuBusyCollectorTest, HostWithoutAGpuFailsAndSaysSo) {
  tree_.remove("sys");
  EXPECT_FALSE(collector_->collect());
  EXPECT_EQ(host_.source(R"(apu_source_available{source="gpu_busy"})"), 0);
}

}  // namespace
}  // namespace apu
