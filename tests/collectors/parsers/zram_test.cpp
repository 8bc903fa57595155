#include "collectors/parsers/zram.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/support/temp_tree.h"

namespace apu {
namespace {

constexpr const char* kMmStat =
    "  222560256  61204411  66842624        0  70448112    11204    20448     4118     8112\n";

TEST(ParseZramMemoryUsed, TakesTheThirdNumber) {
  EXPECT_EQ(*parse_zram_memory_used(kMmStat), 66842624U);
}

TEST(ParseZramMemoryUsed, ReadsTheEightNumbersOfOlderKernels) {
  EXPECT_EQ(*parse_zram_memory_used("1 2 3 4 5 6 7 8\n"), 3U);
}

TEST(ParseZramMemoryUsed, DeviceThatIsNotSetUpCostsNothing) {
  EXPECT_EQ(*parse_zram_memory_used("0 0 0 0 0 0 0 0 0\n"), 0U);
}

TEST(ParseZramMemoryUsed, NeedsNoNewline) {
  EXPECT_EQ(*parse_zram_memory_used("1 2 3"), 3U);
}

TEST(ParseZramMemoryUsed, ReadsTheLargestNumber) {
  EXPECT_EQ(*parse_zram_memory_used("1 2 18446744073709551615 4"),
            std::numeric_limits<std::uint64_t>::max());
}

TEST(ParseZramMemoryUsed, LineWithoutAThirdNumberIsMalformed) {
  for (const char* text : {"", "\n", "1 2", "1 2 \n3", "1 2 x", "1 2 -3", "1 2 3k",
                           "1 2 18446744073709551616", "\xff\xfe"}) {
    const auto used = parse_zram_memory_used(text);
    ASSERT_FALSE(used) << text;
    EXPECT_EQ(used.error().kind, ErrorKind::kMalformed) << text;
  }
}

TEST(ReadZramUsage, FindsTheZramDevicesAmongTheOthers) {
  const TempTree sysfs;
  sysfs.write("block/zram0/mm_stat", kMmStat);
  sysfs.write("block/zram1/mm_stat", "0 0 4096 0 0 0 0 0 0\n");
  sysfs.write("block/nvme0n1/mm_stat", "garbage");
  sysfs.write("block/zramblock/mm_stat", "garbage");
  const auto usage = read_zram_usage(FileRoot(sysfs.path()));
  ASSERT_TRUE(usage);
  ASSERT_EQ(usage->size(), 2U);
  EXPECT_EQ((*usage)[0].device, "zram0");
  EXPECT_EQ((*usage)[0].memory_used_bytes, 66842624U);
  EXPECT_EQ((*usage)[1].device, "zram1");
  EXPECT_EQ((*usage)[1].memory_used_bytes, 4096U);
}

TEST(ReadZramUsage, NeverOpensTheFileThatWouldAddADevice) {
  const TempTree sysfs;
  sysfs.write("block/zram0/mm_stat", kMmStat);
  sysfs.make_fifo("class/zram-control/hot_add");  // opening it would hang
  EXPECT_TRUE(read_zram_usage(FileRoot(sysfs.path())));
}

TEST(ReadZramUsage, HostWithoutZramHasNone) {
  const TempTree sysfs;
  sysfs.write("block/sda/size", "1");
  const auto usage = read_zram_usage(FileRoot(sysfs.path()));
  ASSERT_TRUE(usage);
  EXPECT_TRUE(usage->empty());
}

TEST(ReadZramUsage, DeviceThatVanishesIsSkipped) {
  const TempTree sysfs;
  sysfs.write("block/zram0/size", "1");  // listed, but mm_stat is gone
  sysfs.write("block/zram1/mm_stat", kMmStat);
  const auto usage = read_zram_usage(FileRoot(sysfs.path()));
  ASSERT_TRUE(usage);
  ASSERT_EQ(usage->size(), 1U);
  EXPECT_EQ((*usage)[0].device, "zram1");
}

TEST(ReadZramUsage, ErrorNamesTheDevice) {
  const TempTree sysfs;
  sysfs.write("block/zram3/mm_stat", "x");
  const auto usage = read_zram_usage(FileRoot(sysfs.path()));
  ASSERT_FALSE(usage);
  EXPECT_EQ(usage.error().kind, ErrorKind::kMalformed);
  EXPECT_NE(usage.error().message.find("block/zram3/mm_stat"), std::string::npos);
}

TEST(ReadZramUsage, MissingSysfsIsAnError) {
  const TempTree sysfs;
  const auto usage = read_zram_usage(FileRoot(sysfs.path()));
  ASSERT_FALSE(usage);
  EXPECT_EQ(usage.error().kind, ErrorKind::kNotFound);
}

}  // namespace
}  // namespace apu
