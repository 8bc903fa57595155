#include "collectors/parsers/buddyinfo.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/collector_files.h"

namespace apu {
namespace {

TEST(ParseBuddyinfo, CountsBlocksOfTwoMebibytesInEveryZone) {
  const auto info = parse_buddyinfo(
      "Node 0, zone      DMA      0      0      0      0      0      0      0      0      1      1 "
      "     2\n"
      "Node 0, zone   Normal   1132    918    402    301    118     44     18      8      4     20 "
      "   300\n");
  EXPECT_TRUE(info.problems.empty());
  EXPECT_EQ(info.free_huge_blocks, (1U + 2 * 2) + (20U + 2 * 300));
}

TEST(ParseBuddyinfo, LargerBlockCountsAsThoseItHolds) {
  EXPECT_EQ(parse_buddyinfo("Node 0, zone Normal 9 9 9 9 9 9 9 9 9 1 1 1\n").free_huge_blocks,
            1U + 2 + 4);
}

TEST(ParseBuddyinfo, ZoneWithoutFreeBlocksHasNone) {
  const auto info = parse_buddyinfo("Node 1, zone Movable 0 0 0 0 0 0 0 0 0 0 0\n");
  EXPECT_TRUE(info.problems.empty());
  EXPECT_EQ(info.free_huge_blocks, 0U);
}

TEST(ParseBuddyinfo, LastLineNeedsNoNewline) {
  const auto info = parse_buddyinfo("Node 0, zone DMA 0 0 0 0 0 0 0 0 0 3 0");
  EXPECT_TRUE(info.problems.empty());
  EXPECT_EQ(info.free_huge_blocks, 3U);
}

TEST(ParseBuddyinfo, EmptyFileIsAProblemAndNotZeroBlocks) {
  EXPECT_EQ(parse_buddyinfo("").problems.size(), 1U);
}

TEST(ParseBuddyinfo, RowThatIsNotAZoneIsAProblem) {
  const std::string counts = " 0 0 0 0 0 0 0 0 0 1 0";
  for (const std::string& row :
       {"Node 0, Normal" + counts, "Knot 0, zone DMA" + counts, "Node 0, area DMA" + counts,
        "Node 0, zone DMA 0 0 0 0 0 2811x 0 0 0 1 0" + std::string(),
        "Node 0, zone DMA 0 0 0 0 0 -1 0 0 0 1 0" + std::string(),
        "Node 0, zone DMA 0 0 0 0 0 18446744073709551616 0 0 0 1 0" + std::string(),
        std::string("Node 0, zone DMA"), std::string("\xff\xfe"), std::string()}) {
    const auto info = parse_buddyinfo("Node 0, zone DMA" + counts + "\n" + row + "\n");
    ASSERT_EQ(info.problems.size(), 1U) << row;
    EXPECT_EQ(info.problems[0].line, 2) << row;
  }
}

TEST(ParseBuddyinfo, RowCutBeforeTheHugeOrdersIsAProblemAndNotZeroBlocks) {
  EXPECT_EQ(parse_buddyinfo("Node 0, zone DMA 0 0 0 0 0 0 0 0 0").problems.size(), 1U);
}

TEST(ParseBuddyinfo, ReadsTheLargestNumber) {
  EXPECT_EQ(
      parse_buddyinfo("Node 0, zone DMA 0 0 0 0 0 0 0 0 0 18446744073709551615 0").free_huge_blocks,
      18446744073709551615U);
}

TEST(ParseBuddyinfo, RowOfMoreOrdersThanThereCanBeIsAProblem) {
  std::string row = "Node 0, zone DMA";
  for (int order = 0; order < 100; ++order) {
    row += " 1";
  }
  EXPECT_EQ(parse_buddyinfo(row).problems.size(), 1U);
}

TEST(ParseBuddyinfo, DamagedColumnLeavesTheOtherZones) {
  const auto info = parse_buddyinfo(read_file(fixture_path("damaged_files/proc/buddyinfo")));
  EXPECT_EQ(info.problems.size(), 1U);
}

}  // namespace
}  // namespace apu
