#include "collectors/swap.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/support/collector_files.h"
#include "tests/support/collector_host.h"
#include "tests/support/temp_tree.h"

namespace apu {
namespace {

const std::string kHeader = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n";

// --- parse

TEST(ParseSwaps, ReadsDevicesOfEveryKind) {
  const auto swaps =
      parse_swaps(kHeader +
                  "/dev/zram0                              partition\t8388604\t\t217344\t\t100\n"
                  "/dev/nvme0n1p3                          partition\t8388604\t\t0\t\t-2\n"
                  "/swap.img                               file\t\t33554428\t17002112\t-3\n");
  EXPECT_TRUE(swaps.problems.empty());
  ASSERT_EQ(swaps.devices.size(), 3U);
  EXPECT_EQ(swaps.devices[0].name, "/dev/zram0");
  EXPECT_EQ(swaps.devices[0].kind, SwapKind::kZram);
  EXPECT_EQ(swaps.devices[0].size_kib, 8388604U);
  EXPECT_EQ(swaps.devices[0].used_kib, 217344U);
  EXPECT_EQ(swaps.devices[1].kind, SwapKind::kPartition);
  EXPECT_EQ(swaps.devices[2].kind, SwapKind::kFile);
  EXPECT_EQ(swaps.devices[2].used_kib, 17002112U);
}

TEST(ParseSwaps, OnlyZramDevicesAreZram) {
  const auto swaps = parse_swaps(kHeader +
                                 "/dev/zram partition 1 0 0\n/dev/zramX partition 1 0 0\n"
                                 "/mnt/dev/zram0 partition 1 0 0\n/dev/zram0 file 1 0 0\n");
  ASSERT_EQ(swaps.devices.size(), 4U);
  for (const auto& device : swaps.devices) {
    EXPECT_NE(device.kind, SwapKind::kZram) << device.name;
  }
}

TEST(ParseSwaps, HostWithoutSwapHasNoDevices) {
  for (const std::string& text : {std::string(), kHeader}) {
    EXPECT_TRUE(parse_swaps(text).devices.empty());
    EXPECT_TRUE(parse_swaps(text).problems.empty());
  }
}

TEST(ParseSwaps, NameIsUnescaped) {
  const auto swaps = parse_swaps(kHeader + R"(/a\040b\011c\012d\134e\04 file 1 0 -2)" + "\n");
  ASSERT_EQ(swaps.devices.size(), 1U);
  EXPECT_EQ(swaps.devices[0].name, "/a b\tc\nd\\e\\04");
}

TEST(ParseSwaps, NameOfAnyBytesIsKept) {
  EXPECT_EQ(parse_swaps(kHeader + "/mnt/sw\xe4p file 1 0 -2").devices[0].name, "/mnt/sw\xe4p");
}

TEST(ParseSwaps, DamagedRowIsAProblemAndTheOthersAreRead) {
  for (const char* row :
       {"/dev/sdb2", "/dev/sdb2 partition", "/dev/sdb2 partition 5", "/dev/sdb2 partition 5 0",
        "/dev/sdb2 tape 5 0 -2", "/dev/sdb2 partition x 0 -2", "/dev/sdb2 partition 5 -1 -2",
        "/dev/sdb2 partition 18446744073709551616 0 -2", ""}) {
    const auto swaps = parse_swaps(kHeader + row + "\n/swapfile file 4 0 -2\n");
    ASSERT_EQ(swaps.problems.size(), 1U) << row;
    EXPECT_EQ(swaps.problems[0].line, 2) << row;
    ASSERT_EQ(swaps.devices.size(), 1U) << row;
    EXPECT_EQ(swaps.devices[0].name, "/swapfile") << row;
  }
}

TEST(ParseSwaps, SkipsUnknownColumnsAndNeedsNoNewline) {
  const auto swaps = parse_swaps(kHeader + "/swapfile file 18446744073709551615 0 -2 new");
  ASSERT_EQ(swaps.devices.size(), 1U);
  EXPECT_EQ(swaps.devices[0].size_kib, 18446744073709551615U);
}

// --- map

TEST(SwapFamilies, AreBytes) {
  SwapFacts facts;
  facts.devices = {{"/dev/zram0", SwapKind::kZram, 100, 30}, {"/swap", SwapKind::kFile, 7, 0}};
  facts.zram = {{"zram0", 12345}};
  facts.swapped_in_pages = 3;
  facts.swapped_out_pages = 5;
  facts.swappiness = 180;
  facts.page_bytes = 4096;
  const auto families = to_families(facts);
  EXPECT_EQ(value_of(families, R"(apu_swap_size_bytes{device="/dev/zram0",kind="zram"})"), 102400);
  EXPECT_EQ(value_of(families, R"(apu_swap_used_bytes{device="/dev/zram0",kind="zram"})"), 30720);
  EXPECT_EQ(value_of(families, R"(apu_swap_used_bytes{device="/swap",kind="file"})"), 0);
  EXPECT_EQ(value_of(families, R"(apu_zram_memory_used_bytes{device="/dev/zram0"})"), 12345);
  EXPECT_EQ(value_of(families, "apu_swap_in_bytes_total"), 3 * 4096);
  EXPECT_EQ(value_of(families, "apu_swap_out_bytes_total"), 5 * 4096);
  EXPECT_EQ(value_of(families, "apu_vm_swappiness"), 180);
}

TEST(SwapFamilies, WhatIsNotKnownIsAbsent) {
  EXPECT_TRUE(to_families(SwapFacts{}).empty());
}

// --- collect

TEST(SwapCollector, KernelWithoutSwapIsNoFailure) {
  const TempTree tree;
  tree.write("proc/vmstat", "pswpin 0\npswpout 0\n");
  const CollectorHost host(tree.path());
  const auto snapshot = make_swap_collector(host.context())->collect();
  ASSERT_TRUE(snapshot);
  EXPECT_EQ(value_of(snapshot->families, "apu_swap_in_bytes_total"), 0);
  EXPECT_FALSE(has_family(snapshot->families, "apu_swap_size_bytes"));
  EXPECT_FALSE(has_family(snapshot->families, "apu_vm_swappiness"));
  EXPECT_EQ(host.source(R"(apu_source_available{source="procfs"})"), 1);
}

TEST(SwapCollector, WithoutProcfsFailsAndSaysSo) {
  const TempTree tree;
  const CollectorHost host(tree.path());
  const auto snapshot = make_swap_collector(host.context())->collect();
  ASSERT_FALSE(snapshot);
  EXPECT_EQ(snapshot.error().kind, ErrorKind::kNotFound);
  EXPECT_EQ(host.source(R"(apu_source_available{source="procfs"})"), 0);
}

TEST(SwapCollector, DamagedZramCountsAsAParseErrorAndTheRestIsRead) {
  const TempTree tree;
  tree.write("proc/vmstat", "pswpin 1\npswpout 2\n");
  tree.write("proc/swaps", kHeader + "/dev/zram0 partition 8 4 100\n");
  tree.write("sys/block/zram0/mm_stat", "1 2\n");
  const CollectorHost host(tree.path());
  const auto snapshot = make_swap_collector(host.context())->collect();
  ASSERT_TRUE(snapshot);
  EXPECT_TRUE(has_family(snapshot->families, "apu_swap_size_bytes"));
  EXPECT_FALSE(has_family(snapshot->families, "apu_zram_memory_used_bytes"));
  EXPECT_EQ(host.parse_errors("sysfs"), 1);
}

TEST(SwapCollector, CountsDamagedLines) {
  const CollectorHost host(fixture_path("damaged_files"));
  ASSERT_TRUE(make_swap_collector(host.context())->collect());
  EXPECT_EQ(host.parse_errors("procfs"), 3);  // vmstat's pswpout, a row of swaps, swappiness
}

TEST(SwapCollector, StallWithoutSwappingShowsNoTraffic) {
  std::optional<double> traffic[2];
  for (const int i : {0, 1}) {
    const CollectorHost host(case_path("83-vmstat-stall-table") / (i == 0 ? "before" : "after"));
    const auto snapshot = make_swap_collector(host.context())->collect();
    ASSERT_TRUE(snapshot);
    traffic[i] = value_of(snapshot->families, "apu_swap_out_bytes_total");
  }
  EXPECT_EQ(traffic[0], 100.0 * static_cast<double>(::sysconf(_SC_PAGESIZE)));
  EXPECT_EQ(traffic[1], traffic[0]);
}

}  // namespace
}  // namespace apu
