#include "collectors/memory.h"

#include <gtest/gtest.h>

#include "tests/support/collector_files.h"
#include "tests/support/collector_host.h"
#include "tests/support/temp_tree.h"

namespace apu {
namespace {

constexpr std::uint64_t kKib = 1024;
constexpr std::uint64_t kPage = 4096;

/// 1000 kB of RAM, 100 kB free, and `meminfo` lines.
MemoryFacts facts_of(const std::string& meminfo, const std::string& vmstat = "") {
  MemoryFacts facts;
  facts.meminfo = parse_meminfo("MemTotal: 1000 kB\nMemFree: 100 kB\n" + meminfo);
  facts.vmstat = parse_vmstat(vmstat);
  facts.page_bytes = kPage;
  return facts;
}

MemoryUse use_of(const std::string& meminfo, const std::string& vmstat = "") {
  const auto use = memory_use(facts_of(meminfo, vmstat));
  EXPECT_TRUE(use);
  return use.value_or(MemoryUse{});
}

std::uint64_t sum(const MemoryUse& use) {
  return use.anon + use.file + use.kernel + use.gpu.value_or(0) + use.zram.value_or(0) + use.other +
         use.unattributed;
}

// --- the kinds

TEST(MemoryUseTest, WhatNoCategoryHoldsIsUnattributed) {
  EXPECT_EQ(use_of("").unattributed, 900 * kKib);
}

TEST(MemoryUseTest, AnonAndFileAreTheLruLists) {
  const auto use = use_of(
      "Active(anon): 10 kB\nInactive(anon): 20 kB\nActive(file): 30 kB\nInactive(file): 40 kB\n"
      "AnonPages: 25 kB\nShmem: 5 kB\nCached: 70 kB\nBuffers: 5 kB\nSwapCached: 3 kB\n"
      "Mapped: 50 kB\nMlocked: 9 kB\n");
  EXPECT_EQ(use.anon, 30 * kKib);
  EXPECT_EQ(use.file, 70 * kKib);
  EXPECT_EQ(use.unattributed, 800 * kKib);
}

TEST(MemoryUseTest, KernelIsAllThatItHolds) {
  EXPECT_EQ(use_of("Slab: 1 kB\nSReclaimable: 1 kB\nKReclaimable: 3 kB\nPageTables: 4 kB\n"
                   "SecPageTables: 8 kB\nPercpu: 16 kB\nShadowCallStack: 32 kB\nBounce: 64 kB\n"
                   "WritebackTmp: 128 kB\n")
                .kernel,
            (1 + 2 + 4 + 8 + 16 + 32 + 64 + 128) * kKib);
}

TEST(MemoryUseTest, StacksInsideVmallocCountOnce) {
  EXPECT_EQ(use_of("VmallocUsed: 50 kB\nKernelStack: 20 kB\n").kernel, 50 * kKib);
  EXPECT_EQ(use_of("VmallocUsed: 20 kB\nKernelStack: 50 kB\n").kernel, 50 * kKib);
}

TEST(MemoryUseTest, LockedPagesGoWhereTheTotalsShowThem) {
  const auto use = use_of(
      "Active(anon): 10 kB\nActive(file): 20 kB\nUnevictable: 30 kB\n"
      "AnonPages: 12 kB\nShmem: 3 kB\nCached: 26 kB\nBuffers: 4 kB\n");
  EXPECT_EQ(use.anon, (10 + 5) * kKib);
  EXPECT_EQ(use.file, (20 + 7) * kKib);
  EXPECT_EQ(use.other, 18 * kKib);
}

TEST(MemoryUseTest, MlockedIsPartOfUnevictable) {
  EXPECT_EQ(use_of("Unevictable: 8 kB\nMlocked: 8 kB\n").unattributed, 892 * kKib);
}

TEST(MemoryUseTest, ZramIsThePoolThatTheKernelCounts) {
  auto facts = facts_of("Zswap: 5 kB\n", "nr_zspages 3\n");
  facts.zram_bytes = 77;
  EXPECT_EQ(memory_use(facts)->zram, 3 * kPage);
}

TEST(MemoryUseTest, ZramIsDevicesAndZswapWhereTheKernelDoesNotCountThePool) {
  auto facts = facts_of("Zswap: 5 kB\n");
  EXPECT_EQ(memory_use(facts)->zram, 5 * kKib);
  facts.zram_bytes = 77;
  EXPECT_EQ(memory_use(facts)->zram, 77 + 5 * kKib);
}

TEST(MemoryUseTest, ZramIsAbsentWhereNothingTellsIt) {
  EXPECT_EQ(use_of("").zram, std::nullopt);
}

TEST(MemoryUseTest, GpuIsAbsentOnKernelsThatDoNotCountIt) {
  EXPECT_EQ(use_of("").gpu, std::nullopt);
  EXPECT_EQ(use_of("GPUActive: 0 kB\nGPUReclaim: 0 kB\n").gpu, 0U);
  const auto use = use_of("GPUActive: 500 kB\nGPUReclaim: 20 kB\n");
  EXPECT_EQ(use.gpu, 520 * kKib);
  EXPECT_EQ(use.unattributed, 380 * kKib);
}

TEST(MemoryUseTest, HugePagesAreHugetlbElseCountTimesSize) {
  const std::string counted = "HugePages_Total: 3\nHugepagesize: 20 kB\n";
  EXPECT_EQ(use_of(counted).other, 60 * kKib);
  EXPECT_EQ(use_of(counted + "Hugetlb: 90 kB\n").other, 90 * kKib);
}

TEST(MemoryUseTest, OtherHoldsBalloonBadAndIsolatedPages) {
  EXPECT_EQ(
      use_of("Balloon: 1 kB\nHardwareCorrupted: 2 kB\n", "nr_isolated_anon 4\nnr_isolated_file 8\n")
          .other,
      3 * kKib + 12 * kPage);
}

TEST(MemoryUseTest, ZfsDataIsNotUnattributed) {
  auto facts = facts_of("");
  facts.arc_bytes = 500 * kKib;  // holds slab too, so it is not what is taken off
  facts.arc_scatter_bytes = 300 * kKib;
  EXPECT_EQ(memory_use(facts)->other, 300 * kKib);
  EXPECT_EQ(memory_use(facts)->unattributed, 600 * kKib);
}

TEST(MemoryUseTest, KindsAddUpWhereTheCountersExceedWhatIsInUse) {
  for (const char* meminfo :
       {"Slab: 950 kB\n", "Active(anon): 500 kB\nSlab: 500 kB\n", "GPUActive: 2000 kB\n",
        "Active(anon): 9000 kB\nActive(file): 9000 kB\nSlab: 9000 kB\nUnevictable: 9000 kB\n"
        "GPUActive: 9000 kB\nZswap: 9000 kB\n"}) {
    const auto use = use_of(meminfo);
    EXPECT_EQ(sum(use), 900 * kKib) << meminfo;
    EXPECT_EQ(use.unattributed, 0U) << meminfo;
  }
}

TEST(MemoryUseTest, ExcessIsTakenOffTheKernelFirst) {
  const auto use = use_of("Active(anon): 500 kB\nSlab: 500 kB\n");
  EXPECT_EQ(use.anon, 500 * kKib);
  EXPECT_EQ(use.kernel, 400 * kKib);
}

TEST(MemoryUseTest, MoreFreeThanTotalIsNothingInUse) {
  MemoryFacts facts;
  facts.meminfo = parse_meminfo("MemTotal: 5 kB\nMemFree: 6 kB\nSlab: 3 kB\n");
  EXPECT_EQ(sum(*memory_use(facts)), 0U);
}

TEST(MemoryUseTest, UnreadLineMakesItAbsent) {
  EXPECT_FALSE(memory_use(facts_of("Inactive(file): 219o4872 kB\n")));
  EXPECT_FALSE(memory_use(facts_of("", "nr_zspages\n")));
}

TEST(MemoryUseTest, AbsentWithoutTotalOrFree) {
  MemoryFacts facts;
  facts.meminfo = parse_meminfo("MemTotal: 1000 kB\nUnevictable: 8 kB\n");
  EXPECT_FALSE(memory_use(facts));
  facts.meminfo = parse_meminfo("MemFree: 1000 kB\n");
  EXPECT_FALSE(memory_use(facts));
}

TEST(MemoryUseTest, KindsAddUpOnEveryRecordedHost) {
  for (const std::string& name : fixture_names()) {
    const CollectorHost host(fixture_path(name));
    const auto snapshot = make_memory_collector(host.context())->collect();
    ASSERT_TRUE(snapshot) << name;
    const auto& facts = std::any_cast<const MemoryFacts&>(snapshot->facts);
    const auto use = memory_use(facts);
    ASSERT_EQ(use.has_value(), name != "damaged_files") << name;
    if (use) {
      EXPECT_EQ(sum(*use), (*facts.meminfo.get("MemTotal") - *facts.meminfo.get("MemFree")) * kKib)
          << name;
    }
  }
}

TEST(MemoryUseTest, ModelsThatNoCategoryHoldsAreUnattributed) {
  // The recorded meminfo is an excerpt; its free memory follows from the 57 GiB that were missed.
  const std::string excerpt = read_file(case_path("78-unattributed-57GiB/proc/meminfo"));
  MemoryFacts facts;
  facts.meminfo = parse_meminfo(excerpt + "MemFree: 72028570 kB\n");
  EXPECT_EQ(memory_use(facts)->unattributed, 61203283968U);
  facts.meminfo = parse_meminfo(excerpt);
  EXPECT_FALSE(memory_use(facts));
}

// --- map

TEST(MemoryFamilies, OfMeminfoAreBytes) {
  const auto families =
      to_families(facts_of("MemAvailable: 400 kB\nGPUActive: 5 kB\n"
                           "GPUReclaim: 3 kB\nSlab: 7 kB\n"));
  EXPECT_EQ(value_of(families, "apu_memory_size_bytes"), 1000 * 1024);
  EXPECT_EQ(value_of(families, "apu_memory_available_bytes"), 400 * 1024);
  EXPECT_EQ(value_of(families, R"(apu_memory_gpu_bytes{kind="active"})"), 5 * 1024);
  EXPECT_EQ(value_of(families, R"(apu_memory_gpu_bytes{kind="reclaim"})"), 3 * 1024);
  EXPECT_EQ(value_of(families, R"(apu_memory_used_bytes{kind="gpu"})"), 8 * 1024);
  EXPECT_EQ(value_of(families, R"(apu_memory_used_bytes{kind="kernel"})"), 7 * 1024);
  EXPECT_EQ(value_of(families, R"(apu_memory_used_bytes{kind="zram"})"), std::nullopt);
  EXPECT_EQ(value_of(families, R"(apu_memory_used_bytes{kind="unattributed"})"), 885 * 1024);
  EXPECT_EQ(value_of(families, "apu_memory_unattributed_bytes"), 885 * 1024);
}

TEST(MemoryFamilies, OfVmstatAreEventsAndPages) {
  const auto families =
      to_families(facts_of("",
                           "pgmajfault 1\nworkingset_refault_anon 2\nworkingset_refault_file 3\n"
                           "pgscan_kswapd 4\npgsteal_kswapd 5\npgscan_direct 6\npgsteal_direct 7\n"
                           "pgmigrate_success 8\nthp_split_page 9\ncompact_stall 10\n"));
  const std::pair<const char*, double> expected[] = {
      {"apu_memory_major_faults_total", 1},
      {R"(apu_memory_refaults_total{kind="anon"})", 2},
      {R"(apu_memory_refaults_total{kind="file"})", 3},
      {R"(apu_memory_reclaim_scanned_pages_total{by="kswapd"})", 4},
      {R"(apu_memory_reclaim_stolen_pages_total{by="kswapd"})", 5},
      {R"(apu_memory_reclaim_scanned_pages_total{by="direct"})", 6},
      {R"(apu_memory_reclaim_stolen_pages_total{by="direct"})", 7},
      {"apu_memory_migrated_pages_total", 8},
      {"apu_memory_thp_splits_total", 9},
      {"apu_memory_compaction_stalls_total", 10}};
  for (const auto& [series, value] : expected) {
    EXPECT_EQ(value_of(families, series), value) << series;
  }
  EXPECT_FALSE(value_of(families, R"(apu_memory_reclaim_stolen_pages_total{by="khugepaged"})"));
}

TEST(MemoryFamilies, RefaultsOfOlderKernelsAreOfFilePages) {
  const auto families = to_families(facts_of("", "workingset_refault 11\n"));
  EXPECT_EQ(value_of(families, R"(apu_memory_refaults_total{kind="file"})"), 11);
  EXPECT_EQ(value_of(families, R"(apu_memory_refaults_total{kind="anon"})"), std::nullopt);
}

TEST(MemoryFamilies, WhatIsNotKnownIsAbsent) {
  EXPECT_TRUE(to_families(MemoryFacts{}).empty());
}

// --- collect

TEST(MemoryCollector, StallByCompactionShowsInMigration) {
  Families families[2];
  for (const int i : {0, 1}) {
    const CollectorHost host(case_path("83-vmstat-stall-table") / (i == 0 ? "before" : "after"));
    auto snapshot = make_memory_collector(host.context())->collect();
    ASSERT_TRUE(snapshot);
    families[i] = snapshot->families;
  }
  const auto delta = [&](const char* series) {
    return value_of(families[1], series).value_or(0) - value_of(families[0], series).value_or(0);
  };
  EXPECT_EQ(delta("apu_memory_migrated_pages_total"), 825669);
  EXPECT_EQ(delta("apu_memory_compaction_stalls_total"), 1242);
}

TEST(MemoryCollector, OneOfTheTwoFilesIsEnough) {
  const TempTree tree;
  tree.write("proc/meminfo", "MemTotal: 10 kB\nMemFree: 4 kB\n");
  const CollectorHost host(tree.path());
  const auto snapshot = make_memory_collector(host.context())->collect();
  ASSERT_TRUE(snapshot);
  EXPECT_EQ(value_of(snapshot->families, "apu_memory_unattributed_bytes"), 6 * 1024);
  EXPECT_EQ(host.source(R"(apu_source_available{source="procfs"})"), 1);
}

TEST(MemoryCollector, WithoutProcfsFailsAndSaysSo) {
  const TempTree tree;
  const CollectorHost host(tree.path());
  const auto snapshot = make_memory_collector(host.context())->collect();
  ASSERT_FALSE(snapshot);
  EXPECT_EQ(snapshot.error().kind, ErrorKind::kNotFound);
  EXPECT_EQ(host.source(R"(apu_source_available{source="procfs"})"), 0);
}

TEST(MemoryCollector, FileThatCannotBeReadIsAFailure) {
  const TempTree tree;
  tree.write("proc/meminfo", "MemTotal: 10 kB\n");
  tree.write("proc/vmstat/is_a_directory", "");
  const CollectorHost host(tree.path());
  EXPECT_FALSE(make_memory_collector(host.context())->collect());
}

TEST(MemoryCollector, DamagedBuddyinfoIsAbsentAndCounted) {
  const CollectorHost host(fixture_path("damaged_files"));
  const auto snapshot = make_memory_collector(host.context())->collect();
  ASSERT_TRUE(snapshot);
  EXPECT_FALSE(has_family(snapshot->families, "apu_memory_free_huge_blocks"));
  EXPECT_EQ(host.parse_errors("procfs"), 4);  // meminfo 2, vmstat 1, buddyinfo 1
}

TEST(MemoryCollector, ZfsIsASourceOnlyWhereItIsLoaded) {
  const CollectorHost zfs(fixture_path("zfs_host"));
  const CollectorHost other(fixture_path("strix_halo_healthy"));
  ASSERT_TRUE(make_memory_collector(zfs.context())->collect());
  ASSERT_TRUE(make_memory_collector(other.context())->collect());
  EXPECT_EQ(zfs.source(R"(apu_source_available{source="zfs"})"), 1);
  EXPECT_EQ(other.source(R"(apu_source_available{source="zfs"})"), std::nullopt);
}

}  // namespace
}  // namespace apu
