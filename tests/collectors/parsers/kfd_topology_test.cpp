#include "collectors/parsers/kfd_topology.h"

#include <gtest/gtest.h>

#include "tests/support/collector_host.h"
#include "tests/support/gpu_tree.h"

namespace apu {
namespace {

using std::string_view_literals::operator""sv;

constexpr const char* kGeneration = "sys/class/kfd/kfd/topology/generation_id";
constexpr const char* kHalo =
    "gfx_target_version 110501\nlocation_id 50432\ndomain 0\ndrm_render_minor 128\n";

TEST(GfxTargetName, WritesMinorAndStepAsHexadecimalDigits) {
  EXPECT_EQ(gfx_target_name(110501), "gfx1151");
  EXPECT_EQ(gfx_target_name(90010), "gfx90a");
  EXPECT_EQ(gfx_target_name(90012), "gfx90c");
  EXPECT_EQ(gfx_target_name(100300), "gfx1030");
  EXPECT_EQ(gfx_target_name(120001), "gfx1201");
  for (const std::uint64_t version : {0U, 9999U, 111600U, 110016U, 1000000U}) {
    EXPECT_EQ(gfx_target_name(version), "") << version;
  }
}

TEST(HasUnifiedMemory, KnowsApusByTheirTarget) {
  for (const auto apu : {"gfx902"sv, "gfx90c"sv, "gfx1013"sv, "gfx1036"sv, "gfx1103"sv, "gfx1150"sv,
                         "gfx1151"sv, "gfx1153"sv}) {
    EXPECT_EQ(has_unified_memory(apu), true) << apu;
  }
  for (const auto card : {"gfx90a"sv, "gfx1030"sv, "gfx1100"sv, "gfx1201"sv}) {
    EXPECT_EQ(has_unified_memory(card), false) << card;
  }
  for (const auto unknown : {"gfx942"sv, "gfx801"sv, "gfx1170"sv}) {
    EXPECT_FALSE(has_unified_memory(unknown)) << unknown;
  }
  EXPECT_FALSE(has_unified_memory(""));
}

TEST(ParseKfdNode, ReadsAGpu) {
  Problems problems;
  const auto node = parse_kfd_node(29772, kHalo, problems);
  EXPECT_TRUE(problems.empty());
  EXPECT_EQ(node.gpu_id, 29772U);
  EXPECT_EQ(node.pci_address, "0000:c5:00.0");
  EXPECT_EQ(node.render_minor, 128U);
  EXPECT_EQ(node.gfx_target, "gfx1151");
  EXPECT_EQ(parse_kfd_node(1, "domain 65536\nlocation_id 57607\n", problems).pci_address,
            "10000:e1:00.7");
}

TEST(ParseKfdNode, WhatIsNotToldStaysEmpty) {
  for (const auto text : {""sv, "simd_count 80\n"sv, "domain 0\n"sv, "location_id 5\n"sv}) {
    Problems problems;
    const auto node = parse_kfd_node(1, text, problems);
    EXPECT_TRUE(problems.empty());
    EXPECT_EQ(node.pci_address, "");
    EXPECT_EQ(node.gfx_target, "");
    EXPECT_FALSE(node.render_minor);
  }
}

TEST(ParseKfdNode, DamagedLineIsAProblemAndTheOthersAreRead) {
  for (const auto line : {"domain"sv, "domain zero"sv, "domain -1"sv, "\0\xff\xfe"sv}) {
    Problems problems;
    const auto node =
        parse_kfd_node(1, std::string(line) + "\ngfx_target_version 110000\n", problems);
    EXPECT_EQ(problems.size(), 1U) << line;
    EXPECT_EQ(node.gfx_target, "gfx1100") << line;
    EXPECT_EQ(node.pci_address, "") << line;
  }
}

class KfdTopologyTest : public testing::Test {
 protected:
  TempTree tree_;
  CollectorHost host_{tree_.path()};
  KfdTopology topology_{FileRoot(tree_.path() / "sys"), host_.context().sources};
};

TEST_F(KfdTopologyTest, KeepsTheGpusAndLeavesCpusOut) {
  tree_.write(kGeneration, "2\n");
  add_kfd_node(tree_, 0, 0, "cpu_cores_count 32\n");
  add_kfd_node(tree_, 1, 29772, kHalo);
  const auto& nodes = topology_.refresh();
  ASSERT_EQ(nodes.size(), 1U);
  EXPECT_EQ(find_node(nodes, 29772U)->gfx_target, "gfx1151");
  EXPECT_EQ(find_node(nodes, 1U), nullptr);
}

TEST_F(KfdTopologyTest, IsReadAnewWhenItsGenerationChanges) {
  tree_.write(kGeneration, "2\n");
  add_kfd_node(tree_, 1, 29772, kHalo);
  EXPECT_EQ(topology_.refresh().size(), 1U);
  add_kfd_node(tree_, 2, 51443, kHalo);
  EXPECT_EQ(topology_.refresh().size(), 1U);
  tree_.write(kGeneration, "3\n");
  EXPECT_EQ(topology_.refresh().size(), 2U);
  tree_.remove("sys/class/kfd");
  EXPECT_TRUE(topology_.refresh().empty());
}

TEST_F(KfdTopologyTest, DamageCountsAndIsReadAgain) {
  tree_.write(kGeneration, "2\n");
  add_kfd_node(tree_, 1, 29772, "domain x\n");
  tree_.write("sys/class/kfd/kfd/topology/nodes/2/gpu_id", "517");
  EXPECT_EQ(topology_.refresh().size(), 1U);
  EXPECT_EQ(host_.parse_errors("kfd"), 2);
  add_kfd_node(tree_, 1, 29772, kHalo);
  tree_.remove("sys/class/kfd/kfd/topology/nodes/2");
  EXPECT_EQ(topology_.refresh().at(0).pci_address, "0000:c5:00.0");
}

TEST_F(KfdTopologyTest, NodeThatIsDeniedIsLeftOut) {
  tree_.make_unreadable("sys/class/kfd/kfd/topology/nodes/1/gpu_id");
  add_kfd_node(tree_, 2, 51443, kHalo);
  EXPECT_EQ(topology_.refresh().size(), 1U);
  EXPECT_FALSE(host_.parse_errors("kfd"));
}

TEST(FindNode, TakesTheAddressBeforeTheRenderNode) {
  const std::vector<KfdGpuNode> nodes{{1, "0000:03:00.0", 129, "gfx1100"},
                                      {2, "0000:c5:00.0", 128, "gfx1151"}};
  EXPECT_EQ(find_node(nodes, GpuDevice{"0000:c5:00.0", "card0", "", 129})->gpu_id, 2U);
  EXPECT_EQ(find_node(nodes, GpuDevice{"0000:c6:00.0", "card0", "", 129})->gpu_id, 1U);
  EXPECT_EQ(find_node(nodes, GpuDevice{"0000:c6:00.0", "card0", "", 130}), nullptr);
  EXPECT_EQ(find_node(nodes, GpuDevice{"0000:c6:00.0", "card0", "", {}}), nullptr);
}

}  // namespace
}  // namespace apu
