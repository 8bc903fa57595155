#include "collectors/parsers/keyed_numbers.h"

#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <thread>

#include "exporter/file_root.h"
#include "tests/support/collector_files.h"
#include "tests/support/temp_tree.h"

namespace apu {
namespace {

constexpr std::uint64_t kLargest = std::numeric_limits<std::uint64_t>::max();

// --- vmstat

TEST(ParseVmstat, ReadsEveryLine) {
  const auto table = parse_vmstat("nr_free_pages 118204\npswpin 0\npgmajfault 604118\n");
  EXPECT_TRUE(table.problems.empty());
  EXPECT_EQ(table.values.size(), 3U);
  EXPECT_EQ(table.get("nr_free_pages"), 118204U);
  EXPECT_EQ(table.get("pswpin"), 0U);
  EXPECT_EQ(table.get("pgmajfault"), 604118U);
}

TEST(ParseVmstat, KeyThatIsNotThereIsAbsentAndNotZero) {
  const auto table = parse_vmstat("pswpin 5\n");
  EXPECT_EQ(table.get("pswpout"), std::nullopt);
  EXPECT_EQ(table.get_or_zero("pswpout"), 0U);
  EXPECT_EQ(table.get_or_zero("pswpin"), 5U);
}

TEST(ParseVmstat, EmptyFileHasNoValues) {
  EXPECT_TRUE(parse_vmstat("").values.empty());
  EXPECT_TRUE(parse_vmstat("").problems.empty());
}

TEST(ParseVmstat, LineCutBeforeItsNumberIsAProblemAndTheOthersAreRead) {
  const auto table = parse_vmstat("pswpin 5\npswpou");
  ASSERT_EQ(table.problems.size(), 1U);
  EXPECT_EQ(table.problems[0].line, 2);
  EXPECT_EQ(table.get("pswpin"), 5U);
}

TEST(ParseVmstat, WhatIsNoWholeNumberIsAProblem) {
  for (const char* line : {"pswpin", "pswpin 12x", "pswpin -1", "pswpin 0x10", "pswpin 1.5",
                           "pswpin 1 2", "pswpin 18446744073709551616", ""}) {
    const auto table = parse_vmstat(std::string(line) + "\n");
    EXPECT_EQ(table.problems.size(), 1U) << line;
    EXPECT_TRUE(table.values.empty()) << line;
  }
}

TEST(ParseVmstat, ReadsTheLargestNumber) {
  EXPECT_EQ(parse_vmstat("pgfault 18446744073709551615\n").get("pgfault"), kLargest);
}

TEST(ParseVmstat, RepeatedKeyKeepsTheFirstAndIsAProblem) {
  const auto table = parse_vmstat("pswpin 5\npswpin 6\n");
  EXPECT_EQ(table.get("pswpin"), 5U);
  ASSERT_EQ(table.problems.size(), 1U);
  EXPECT_EQ(table.problems[0].line, 2);
}

TEST(ParseVmstat, LastLineNeedsNoNewline) {
  EXPECT_EQ(parse_vmstat("pswpin 5\npswpout 7").get("pswpout"), 7U);
}

TEST(ParseVmstat, KeyOfAnyBytesIsKept) {
  EXPECT_EQ(parse_vmstat("pg\xff\xfe 5\n").get("pg\xff\xfe"), 5U);
}

TEST(ParseVmstat, FileThatComesInPiecesIsReadWhole) {
  const std::string text = read_file(fixture_path("strix_halo_thrash/proc/vmstat"));
  ASSERT_GT(text.size(), 4096U);
  const TempTree tree;
  tree.make_fifo("vmstat");
  std::thread writer([&] {
    std::ofstream fifo(tree.path() / "vmstat");
    for (size_t i = 0; i < text.size(); i += 4096) {
      fifo << text.substr(i, 4096) << std::flush;
    }
  });
  const auto read = FileRoot(tree.path()).read("vmstat");
  writer.join();
  ASSERT_TRUE(read);
  const auto table = parse_vmstat(*read);
  EXPECT_TRUE(table.problems.empty());
  EXPECT_EQ(table.values.size(), static_cast<size_t>(std::count(text.begin(), text.end(), '\n')));
}

// --- meminfo

TEST(ParseMeminfo, ReadsSizesAndCounts) {
  const auto table = parse_meminfo(
      "MemTotal:       130923500 kB\n"
      "Active(anon):    9012559 kB\n"
      "HugePages_Total:      12\n"
      "Hugepagesize:       2048 kB\n"
      "GPUActive:     53477376 kB\n");
  EXPECT_TRUE(table.problems.empty());
  EXPECT_EQ(table.get("MemTotal"), 130923500U);
  EXPECT_EQ(table.get("Active(anon)"), 9012559U);
  EXPECT_EQ(table.get("HugePages_Total"), 12U);
  EXPECT_EQ(table.get("GPUActive"), 53477376U);
  EXPECT_EQ(table.get("SecPageTables"), std::nullopt);
}

TEST(ParseMeminfo, EmptyFileHasNoValues) {
  EXPECT_TRUE(parse_meminfo("").values.empty());
}

TEST(ParseMeminfo, LineCutAnywhereIsAProblemAndTheOthersAreRead) {
  for (const char* cut : {"MemFr", "MemFree:", "MemFree:     ", "MemFree:     1234",
                          "MemFree:     1234 ", "MemFree:     1234 k"}) {
    const auto table = parse_meminfo(std::string("MemTotal: 9999 kB\n") + cut);
    EXPECT_EQ(table.problems.size(), 1U) << cut;
    EXPECT_EQ(table.get("MemFree"), std::nullopt) << cut;
    EXPECT_EQ(table.get("MemTotal"), 9999U) << cut;
  }
}

TEST(ParseMeminfo, WhatIsNoNumberOfKilobytesIsAProblem) {
  for (const char* line : {"MemFree: 219o4872 kB", "MemFree: -5 kB", "MemFree: 5 MB", "MemFree: kB",
                           "MemFree 5 kB", "MemFree: 18446744073709551616 kB"}) {
    const auto table = parse_meminfo(line);
    EXPECT_EQ(table.problems.size(), 1U) << line;
    EXPECT_TRUE(table.values.empty()) << line;
  }
}

TEST(ParseMeminfo, ReadsTheLargestNumber) {
  EXPECT_EQ(parse_meminfo("MemTotal: 18446744073709551615 kB").get("MemTotal"), kLargest);
}

TEST(ParseMeminfo, RepeatedKeyKeepsTheFirstAndIsAProblem) {
  const auto table = parse_meminfo("MemFree: 1 kB\nMemFree: 2 kB\n");
  EXPECT_EQ(table.get("MemFree"), 1U);
  EXPECT_EQ(table.problems.size(), 1U);
}

TEST(ParseMeminfo, DamagedFileLosesTheDamagedLinesOnly) {
  const auto table = parse_meminfo(read_file(fixture_path("damaged_files/proc/meminfo")));
  EXPECT_EQ(table.problems.size(), 2U);
  EXPECT_EQ(table.get("Inactive(file)"), std::nullopt);
  EXPECT_EQ(table.get("Hugetlb"), std::nullopt);
  EXPECT_EQ(table.get("MemTotal"), 134209818624U / 1024);
}

// --- kstat

constexpr const char* kHeader =
    "9 1 0x01 147 39984 8112044118 1262204411812044\n"
    "name                            type data\n";

TEST(ParseKstat, ReadsUnsignedValuesBelowTheHeader) {
  const auto table = parse_kstat(std::string(kHeader) +
                                 "hits                            4    811204\n"
                                 "flags                           2    7\n");
  EXPECT_TRUE(table.problems.empty());
  EXPECT_EQ(table.values.size(), 2U);
  EXPECT_EQ(table.get("hits"), 811204U);
  EXPECT_EQ(table.get("flags"), 7U);
}

TEST(ParseKstat, SkipsOtherTypes) {
  const auto table = parse_kstat(std::string(kHeader) +
                                 "memory_available_bytes          3    -5\n"
                                 "state                           7    ONLINE\n");
  EXPECT_TRUE(table.problems.empty());
  EXPECT_TRUE(table.values.empty());
}

TEST(ParseKstat, EmptyFileAndBareHeaderHaveNoValues) {
  for (const char* text : {"", "9 1 0x01", kHeader}) {
    EXPECT_TRUE(parse_kstat(text).values.empty()) << text;
    EXPECT_TRUE(parse_kstat(text).problems.empty()) << text;
  }
}

TEST(ParseKstat, WhatIsNoNumberIsAProblem) {
  for (const char* line : {"size 4", "size 4 12x", "size 4 -1", "size 4 18446744073709551616"}) {
    const auto table = parse_kstat(std::string(kHeader) + "hits 4 1\n" + line);
    ASSERT_EQ(table.problems.size(), 1U) << line;
    EXPECT_EQ(table.problems[0].line, 4) << line;
    EXPECT_EQ(table.get("size"), std::nullopt) << line;
    EXPECT_EQ(table.get("hits"), 1U) << line;
  }
}

TEST(ParseKstat, ReadsTheLargestNumberAndKeepsTheFirstOfTwo) {
  const auto table = parse_kstat(std::string(kHeader) + "size 4 18446744073709551615\nsize 4 1");
  EXPECT_EQ(table.get("size"), kLargest);
  EXPECT_EQ(table.problems.size(), 1U);
}

TEST(ParseKstat, ReadsTheFilesOfAZfsHost) {
  const auto root = fixture_path("zfs_host/proc/spl/kstat/zfs");
  EXPECT_EQ(parse_kstat(read_file(root / "arcstats")).get("size"), 42933301248U);
  EXPECT_EQ(parse_kstat(read_file(root / "abdstats")).get("scatter_data_size"), 40802189312U);
}

}  // namespace
}  // namespace apu
