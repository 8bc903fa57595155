#include "collectors/kfd_limits.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/support/collector_files.h"
#include "tests/support/collector_host.h"
#include "tests/support/gpu_tree.h"

namespace apu {
namespace {

using std::string_view_literals::operator""sv;

constexpr std::uint64_t kPage = 4096;
constexpr double kMib = 1048576;
const std::string kDebug = "sys/kernel/debug/";

// --- parse kfd/mem_limit

TEST(ParseKfdMemLimit, ReadsBothAccounts) {
  const auto limits = parse_kfd_mem_limit(
      "System mem used 70894M out of 124456M\nTTM mem used 0M out of 114688M\n");
  EXPECT_TRUE(limits.problems.empty());
  EXPECT_EQ(limits.system->used_mib, 70894);
  EXPECT_EQ(limits.system->limit_mib, 124456U);
  EXPECT_EQ(limits.ttm->used_mib, 0);
  EXPECT_EQ(limits.ttm->limit_mib, 114688U);
}

TEST(ParseKfdMemLimit, DamagedLineIsAProblemAndTheOtherIsRead) {
  for (const auto line :
       {"System mem used "sv, "System mem used 70894M"sv, "System mem used 70894M out of 124456"sv,
        "System mem used 70894 out of 124456M"sv, "System mem used xM out of 124456M"sv,
        "System mem used 1M out of -1M"sv, "System mem used 1M out of 17592186044415M"sv,
        "System mem used 17592186044404M out of 13422M"sv,
        "System mem used 18446744073709551604M out of 13422M"sv,
        "System mem used \xff\0M out of 1M"sv}) {
    const auto limits = parse_kfd_mem_limit(std::string(line) + "\nTTM mem used 1M out of 2M\n");
    EXPECT_EQ(limits.problems.size(), 1U) << line;
    EXPECT_FALSE(limits.system) << line;
    EXPECT_EQ(limits.ttm->limit_mib, 2U) << line;
  }
}

TEST(ParseKfdMemLimit, MissingLineIsAProblem) {
  for (const auto text :
       {""sv, "System mem used 1M out of 2M\n"sv, "TTM mem used 1M out of 2M\nSys"sv,
        "\0\xff\xfe"sv, "VRAM mem used 1M out of 2M\n"sv}) {
    EXPECT_EQ(parse_kfd_mem_limit(text).problems.size(), 1U) << text;
  }
}

TEST(ParseKfdMemLimit, RepeatedLineIsAProblem) {
  const std::string line = "TTM mem used 1M out of 2M\n";
  EXPECT_EQ(parse_kfd_mem_limit(line + line).problems.size(), 1U);
}

// --- parse ttm/page_pool

TEST(ParseTtmPagePool, ReadsTheTotal) {
  const auto pool = parse_ttm_page_pool(
      "\t  --- 0--- --- 1---\nwc\t:        2        1\nuc\t:        0        0\n"
      "\ntotal\t:        4 of 29360128\n");
  ASSERT_TRUE(pool);
  EXPECT_EQ(pool->pages, 4U);
  EXPECT_EQ(pool->limit_pages, 29360128U);
}

TEST(ParseTtmPagePool, NodesAddUp) {
  const auto pool = parse_ttm_page_pool("total\t: 4 of 10\nwc : 1\ntotal\t: 5 of 20\n");
  ASSERT_TRUE(pool);
  EXPECT_EQ(pool->pages, 9U);
  EXPECT_EQ(pool->limit_pages, 30U);
}

TEST(ParseTtmPagePool, DamagedOrMissingTotalIsMalformed) {
  for (const auto text :
       {""sv, "unused\n"sv, "\0\xff"sv, "wc\t: 1\n"sv, "total"sv, "total\t:"sv, "total\t: 5\n"sv,
        "total\t: 5 of"sv, "total\t: x of 9\n"sv, "total\t: 5 of 2936O128\n"sv,
        "total\t: 5 of 9 more\n"sv, "total\t: 18446744073709551615 of 9\n"sv,
        "total\t: 4 of 10\ntotal\t: x of 20\n"sv}) {
    const auto pool = parse_ttm_page_pool(text);
    ASSERT_FALSE(pool) << text;
    EXPECT_EQ(pool.error().kind, ErrorKind::kMalformed);
  }
}

// --- parse amdgpu_gtt_mm

TEST(ParseGttMm, ReadsEachLayout) {
  const auto read = [](const std::string& layout) {
    return parse_gtt_mm(read_file(case_path("64-gtt-mm-three-layouts") / layout /
                                  "sys/kernel/debug/dri/0/amdgpu_gtt_mm"),
                        kPage);
  };
  for (const char* layout : {"old", "mid"}) {
    const auto manager = read(layout);
    ASSERT_TRUE(manager) << layout;
    EXPECT_EQ(manager->size_bytes, 3221225472U) << layout;
    EXPECT_EQ(manager->used_bytes, 536870912U) << layout;
  }
  const auto manager = read("new");
  ASSERT_TRUE(manager);
  EXPECT_EQ(manager->size_bytes, 103079215104U);
  EXPECT_EQ(manager->used_bytes, 25864192000U);
}

TEST(ParseGttMm, TheGartIsNotTheGtt) {
  EXPECT_FALSE(parse_gtt_mm("total: 261120, used 512 free 260608\n", kPage));
}

TEST(ParseGttMm, DamagedIsMalformed) {
  for (const auto text :
       {""sv, "  size: 1\n"sv, "  usage: 1\n"sv, "  size: x\n  usage: 1\n"sv,
        "  size: 1\n  usage: 18446744073709547520\n"sv, "man size:x pages\n"sv,
        "man size:5 pages\n"sv, "man size:9223372036854775807 pages,  gtt used:1 pages\n"sv,
        "\0\xff\xfe"sv}) {
    EXPECT_FALSE(parse_gtt_mm(text, kPage)) << text;
  }
}

// --- map

TEST(KfdLimitsFamilies, WhatIsNotKnownIsAbsent) {
  EXPECT_TRUE(to_families(KfdLimitsFacts{}).empty());
  KfdLimitsFacts facts;
  facts.mem_limit = KfdMemLimit{};
  EXPECT_TRUE(to_families(facts).empty());
}

// --- collect

class KfdLimitsCollectorTest : public testing::Test {
 protected:
  TempTree tree_;
  CollectorHost host_{tree_.path()};
  std::unique_ptr<Collector> collector_ = make_kfd_limits_collector(host_.context());
};

TEST_F(KfdLimitsCollectorTest, WithoutDebugfsFailsAndSaysSo) {
  ASSERT_FALSE(collector_->collect());
  EXPECT_EQ(host_.source(R"(apu_source_unavailable_info{source="debugfs",reason="not_found"})"), 1);
}

TEST_F(KfdLimitsCollectorTest, WithoutThePrivilegeFailsAndSaysSo) {
  tree_.make_unreadable(kDebug + "kfd/mem_limit");
  tree_.make_unreadable(kDebug + "ttm/page_pool");
  ASSERT_FALSE(collector_->collect());
  EXPECT_EQ(
      host_.source(R"(apu_source_unavailable_info{source="debugfs",reason="permission_denied"})"),
      1);
}

TEST_F(KfdLimitsCollectorTest, LockedDownKernelStillTellsThePool) {
  tree_.make_unreadable(kDebug + "kfd/mem_limit");
  tree_.write(kDebug + "ttm/page_pool", "total\t:       2 of 9\n");
  const auto snapshot = collector_->collect();
  ASSERT_TRUE(snapshot);
  EXPECT_EQ(value_of(snapshot->families, "apu_ttm_pool_bytes"),
            2.0 * static_cast<double>(::sysconf(_SC_PAGESIZE)));
  EXPECT_FALSE(has_family(snapshot->families, "apu_kfd_memory_limit_bytes"));
  EXPECT_EQ(host_.source(R"(apu_source_available{source="debugfs"})"), 0);
}

TEST_F(KfdLimitsCollectorTest, DamagedFilesCountAndCostNoOther) {
  tree_.write(kDebug + "kfd/mem_limit", "System mem used 1M out of 2M\nTTM mem us");
  tree_.write(kDebug + "ttm/page_pool", std::string_view("\0\xff", 2));
  auto snapshot = collector_->collect();
  ASSERT_TRUE(snapshot);
  EXPECT_EQ(value_of(snapshot->families, R"(apu_kfd_memory_limit_bytes{kind="system"})"), 2 * kMib);
  EXPECT_FALSE(has_family(snapshot->families, "apu_ttm_pool_bytes"));
  EXPECT_EQ(host_.parse_errors("debugfs"), 2);
  tree_.write(kDebug + "kfd/mem_limit", "");
  EXPECT_TRUE(collector_->collect());
  EXPECT_EQ(host_.parse_errors("debugfs"), 4);
}

TEST_F(KfdLimitsCollectorTest, GttIsFoundByAddressOrByNumber) {
  add_card(tree_, 0, "0000:03:00.0");
  add_card(tree_, 1, "0000:c5:00.0");
  tree_.write(kDebug + "kfd/mem_limit", "System mem used 1M out of 2M\n");
  tree_.write(kDebug + "dri/0000:c5:00.0/amdgpu_gtt_mm", "  size: 9\n  usage: 3\n");
  tree_.write(kDebug + "dri/0/amdgpu_gtt_mm", "man size:2 pages,  gtt used:1 pages\n");
  tree_.make_fifo(kDebug + "dri/1/amdgpu_gtt_mm");
  const auto facts = std::any_cast<KfdLimitsFacts>(collector_->collect()->facts);
  ASSERT_EQ(facts.gtt.size(), 2U);
  EXPECT_EQ(facts.gtt[0].gpu, "0000:03:00.0");
  EXPECT_EQ(facts.gtt[0].manager.size_bytes, 2 * facts.page_bytes);
  EXPECT_EQ(facts.gtt[1].manager.used_bytes, 3U);
}

TEST_F(KfdLimitsCollectorTest, FilesThatHangOrActAreNotOpened) {
  add_card(tree_, 0, "0000:c5:00.0");
  tree_.write(kDebug + "kfd/mem_limit", "System mem used 1M out of 2M\n");
  for (const char* file :
       {"kfd/mqds", "kfd/hqds", "kfd/rls", "kfd/hang_hws", "ttm/page_pool_shrink", "ttm/tt_shrink",
        "dri/0000:c5:00.0/amdgpu_vm_info", "dri/0000:c5:00.0/amdgpu_gpu_recover",
        "dri/0000:c5:00.0/amdgpu_evict_gtt", "dri/0000:c5:00.0/amdgpu_regs",
        "dri/0/amdgpu_vm_info"}) {
    tree_.make_fifo(kDebug + file);  // whose open would not return
  }
  EXPECT_TRUE(collector_->collect());
}

TEST(KfdLimitsCollector, UsedKeepsItsSignAndMayPassTheLimit) {
  const auto families_of = [](const char* part) {
    const CollectorHost host(case_path("62-kfd-mem-limit-over-and-negative") / part);
    auto snapshot = make_kfd_limits_collector(host.context())->collect();
    EXPECT_TRUE(snapshot);
    EXPECT_EQ(host.parse_errors("debugfs"), 0);
    EXPECT_EQ(value_of(snapshot->families, R"(apu_kfd_memory_used_bytes{kind="ttm"})"), 0);
    EXPECT_EQ(value_of(snapshot->families, R"(apu_kfd_memory_limit_bytes{kind="ttm"})"),
              17179869184);
    EXPECT_EQ(value_of(snapshot->families, R"(apu_kfd_memory_limit_bytes{kind="system"})"),
              14073987072);
    return std::move(snapshot->families);
  };
  constexpr auto kUsed = R"(apu_kfd_memory_used_bytes{kind="system"})";
  EXPECT_EQ(value_of(families_of("a"), kUsed), 0);
  EXPECT_EQ(value_of(families_of("b"), kUsed), 14063501312);
  EXPECT_EQ(value_of(families_of("c"), kUsed), 15346958336);
  EXPECT_EQ(value_of(families_of("d"), kUsed), -12582912);
}

TEST(KfdLimitsCollector, GttOfDebugfsIsThatOfSysfs) {
  for (const char* name : {"strix_halo_healthy", "apu_and_dedicated"}) {
    const CollectorHost host(fixture_path(name));
    const auto snapshot = make_kfd_limits_collector(host.context())->collect();
    const auto facts = std::any_cast<KfdLimitsFacts>(snapshot->facts);
    EXPECT_FALSE(facts.gtt.empty()) << name;
    for (const GpuGtt& gtt : facts.gtt) {
      const std::string file = fmt::format("sys/bus/pci/devices/{}/mem_info_gtt_used", gtt.gpu);
      EXPECT_EQ(std::to_string(gtt.manager.used_bytes) + "\n",
                read_file(fixture_path(name) / file));
    }
  }
}

}  // namespace
}  // namespace apu
