#include "collectors/gpu.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/support/collector_files.h"
#include "tests/support/collector_host.h"
#include "tests/support/gpu_tree.h"

namespace apu {
namespace {

using std::string_view_literals::operator""sv;

constexpr const char* kUsedGtt = R"(apu_gpu_memory_used_bytes{gpu="0000:c5:00.0",pool="gtt"})";

// --- map

TEST(DropImpossible, KeepsWhatCanBe) {
  GpuMemoryPool full{5, 5};
  EXPECT_FALSE(drop_impossible(full));
  EXPECT_EQ(full.used_bytes, 5U);
  GpuMemoryPool unknown{std::nullopt, 5};
  EXPECT_FALSE(drop_impossible(unknown));
  GpuMemoryPool over{5, 6};
  EXPECT_TRUE(drop_impossible(over));
  EXPECT_FALSE(over.used_bytes);
  EXPECT_EQ(over.size_bytes, 5U);
}

TEST(GpuFamilies, WhatIsNotKnownIsAbsent) {
  EXPECT_TRUE(to_families(GpuFacts{}).empty());
  GpuFacts facts;
  facts.gpus.emplace_back().device = {"0000:c5:00.0", "card1", "1002:1586", 128};
  const auto families = to_families(facts);
  ASSERT_EQ(families.size(), 1U);
  EXPECT_EQ(value_of(families, R"(apu_gpu_info{gpu="0000:c5:00.0",card="card1",)"
                               R"(pci_id="1002:1586",gfx_target="",unified_memory="unknown"})"),
            1);
}

TEST(GpuFamilies, PagesBecomeBytes) {
  GpuFacts facts;
  facts.ttm_pages_limit = 3;
  facts.page_bytes = 16384;
  EXPECT_EQ(value_of(to_families(facts), "apu_ttm_pages_limit_bytes"), 49152);
}

// --- collect

class GpuCollectorTest : public testing::Test {
 protected:
  Families collect() {
    auto snapshot = collector_->collect();
    EXPECT_TRUE(snapshot);
    return snapshot ? std::move(snapshot->families) : Families{};
  }

  TempTree tree_;
  CollectorHost host_{tree_.path()};
  std::unique_ptr<Collector> collector_ = make_gpu_collector(host_.context());
};

TEST_F(GpuCollectorTest, HostWithoutSuchACardFailsAndSaysSo) {
  add_card(tree_, 0, "0000:00:02.0", "i915", "0x8086");
  const auto snapshot = collector_->collect();
  ASSERT_FALSE(snapshot);
  EXPECT_EQ(snapshot.error().kind, ErrorKind::kNotFound);
  EXPECT_EQ(host_.source(R"(apu_source_unavailable_info{source="amdgpu",reason="not_found"})"), 1);
}

TEST_F(GpuCollectorTest, OlderDriverHasFewerFiles) {
  const std::string device = add_card(tree_, 0, "0000:c5:00.0");
  tree_.write(device + "/mem_info_gtt_used", "7\n");
  const auto families = collect();
  EXPECT_EQ(value_of(families, kUsedGtt), 7);
  for (const char* name :
       {"apu_gpu_memory_size_bytes", "apu_gpu_userptr_bound_bytes", "apu_gpu_suspended",
        "apu_gpu_parameters_info", "apu_ttm_pages_limit_bytes"}) {
    EXPECT_FALSE(has_family(families, name)) << name;
  }
  EXPECT_EQ(host_.source(R"(apu_source_available{source="amdgpu"})"), 1);
  EXPECT_EQ(host_.parse_errors("amdgpu"), 0);
}

TEST_F(GpuCollectorTest, DamagedValueIsAbsentAndCounts) {
  const std::string device = add_card(tree_, 0, "0000:c5:00.0");
  int errors = 0;
  for (const auto text : {""sv, "12"sv, "\0\xff\xfe\n"sv, "18446744073709547520\n"sv, "-1\n"sv}) {
    tree_.write(device + "/mem_info_gtt_used", text);
    EXPECT_FALSE(has_family(collect(), "apu_gpu_memory_used_bytes")) << text;
    EXPECT_EQ(host_.parse_errors("amdgpu"), ++errors);
  }
}

TEST_F(GpuCollectorTest, FileThatIsDeniedMakesTheSourceUnavailableAndTheRestIsRead) {
  const std::string device = add_card(tree_, 0, "0000:c5:00.0");
  tree_.make_unreadable(device + "/mem_info_gtt_total");
  tree_.write(device + "/mem_info_gtt_used", "7\n");
  EXPECT_EQ(value_of(collect(), kUsedGtt), 7);
  EXPECT_EQ(
      host_.source(R"(apu_source_unavailable_info{source="amdgpu",reason="permission_denied"})"),
      1);
}

TEST_F(GpuCollectorTest, ParameterForRootAloneIsEmpty) {
  add_card(tree_, 0, "0000:c5:00.0");
  tree_.make_unreadable("sys/module/amdgpu/parameters/gttsize");
  tree_.write("sys/module/amdgpu/parameters/no_system_mem_limit", "Y\n");
  EXPECT_EQ(
      value_of(collect(), R"(apu_gpu_parameters_info{gttsize="",vramlimit="",ttm_pages_limit="",)"
                          R"(ttm_page_pool_size="",no_system_mem_limit="Y",noretry="",)"
                          R"(debug_evictions="",svm_default_granularity=""})"),
      1);
  EXPECT_EQ(host_.source(R"(apu_source_available{source="amdgpu"})"), 1);
}

TEST_F(GpuCollectorTest, PackagedDriverHasATtmOfItsOwn) {
  add_card(tree_, 0, "0000:c5:00.0");
  tree_.write("sys/module/ttm/parameters/pages_limit", "5\n");
  tree_.write("sys/module/amdttm/parameters/pages_limit", "9\n");
  EXPECT_EQ(value_of(collect(), "apu_ttm_pages_limit_bytes"),
            9.0 * static_cast<double>(::sysconf(_SC_PAGESIZE)));
}

TEST_F(GpuCollectorTest, FileThatWouldWakeTheGpuIsNotOpened) {
  const std::string device = add_card(tree_, 0, "0000:c5:00.0");
  tree_.write(device + "/power/runtime_status", "suspended\n");
  for (const char* file : {"/gpu_busy_percent", "/gpu_metrics", "/hwmon/hwmon0/power1_input"}) {
    tree_.make_fifo(device + file);  // whose open would not return
  }
  EXPECT_EQ(value_of(collect(), R"(apu_gpu_suspended{gpu="0000:c5:00.0"})"), 1);
}

TEST_F(GpuCollectorTest, SmallCarveOutIsReadAsItIs) {
  const std::string device = add_card(tree_, 0, "0000:c5:00.0");
  const auto folder = case_path("73-sysfs-apu-small-carveout");
  for (const char* file : {"vram_total", "vram_used", "gtt_total", "gtt_used"}) {
    const std::string name = std::string("mem_info_") + file;
    tree_.write(device + "/" + name, read_file(folder / "b" / name));
  }
  const auto families = collect();
  EXPECT_EQ(value_of(families, R"(apu_gpu_memory_used_bytes{gpu="0000:c5:00.0",pool="vram"})"),
            515396076);
  EXPECT_EQ(value_of(families, kUsedGtt), 6990059274);
}

TEST_F(GpuCollectorTest, SizeOfGttIsTheLimitOfPages) {
  const std::string device = add_card(tree_, 0, "0000:c5:00.0");
  const auto folder = case_path("73-sysfs-apu-small-carveout") / "a";
  tree_.write(device + "/mem_info_gtt_total", read_file(folder / "mem_info_gtt_total"));
  tree_.write("sys/module/ttm/parameters/pages_limit", read_file(folder / "ttm.pages_limit"));
  const auto snapshot = collector_->collect();
  const auto facts = std::any_cast<GpuFacts>(snapshot->facts);
  EXPECT_EQ(facts.gpus.at(0).gtt.size_bytes, *facts.ttm_pages_limit * 4096);
}

TEST(GpuCollector, TellsTwoGpusApart) {
  const CollectorHost host(fixture_path("apu_and_dedicated"));
  const auto snapshot = make_gpu_collector(host.context())->collect();
  ASSERT_TRUE(snapshot);
  const auto facts = std::any_cast<GpuFacts>(snapshot->facts);
  ASSERT_EQ(facts.gpus.size(), 2U);
  EXPECT_EQ(facts.gpus[0].unified_memory, false);
  EXPECT_EQ(facts.gpus[0].device.render_minor, 128U);
  EXPECT_EQ(facts.gpus[1].unified_memory, true);
  EXPECT_EQ(facts.gpus[1].gfx_target, "gfx1150");
}

TEST(GpuCollector, CountsEachDamagedFile) {
  const CollectorHost host(fixture_path("damaged_files"));
  ASSERT_TRUE(make_gpu_collector(host.context())->collect());
  EXPECT_EQ(host.parse_errors("amdgpu"), 4);  // three pools, userptr
  EXPECT_EQ(host.parse_errors("kfd"), 1);     // a property of the node
}

}  // namespace
}  // namespace apu
