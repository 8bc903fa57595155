#include "collectors/parsers/boot_time.h"

#include <gtest/gtest.h>

#include "tests/support/temp_tree.h"

namespace apu {
namespace {

TEST(ParseBootTime, FindsTheLineAmongTheOthers) {
  const auto time =
      parse_boot_time("cpu  1 2 3\nintr 5 0 0\nctxt 812044\nbtime 1782716334\nprocesses 12\n");
  ASSERT_TRUE(time);
  EXPECT_EQ(to_unix_seconds(*time), 1782716334);
}

TEST(ParseBootTime, NeedsNoNewline) {
  EXPECT_TRUE(parse_boot_time("btime 1782716334"));
}

TEST(ParseBootTime, LineOfAnotherNameDoesNotCount) {
  EXPECT_FALSE(parse_boot_time("xbtime 1782716334\nbtimes 5\n"));
}

TEST(ParseBootTime, WithoutAWholeNumberItIsMalformed) {
  for (const char* text : {"", "cpu 1 2 3\n", "btime", "btime ", "btime5", "btime x", "btime -1",
                           "btime 1782716334x", "btime 18446744073709551616"}) {
    const auto time = parse_boot_time(text);
    ASSERT_FALSE(time) << text;
    EXPECT_EQ(time.error().kind, ErrorKind::kMalformed) << text;
  }
}

TEST(ParseBootTime, TimeThatTheClockCannotHoldIsMalformed) {
  EXPECT_FALSE(parse_boot_time("btime 18446744073709551615\n"));
  EXPECT_FALSE(parse_boot_time("btime 9223372037\n"));
}

TEST(ReadBootTime, ReadsTheFileNamedStat) {
  const TempTree procfs;
  procfs.write("stat", "btime 1782716334\n");
  const auto time = read_boot_time(FileRoot(procfs.path()));
  ASSERT_TRUE(time);
  EXPECT_EQ(to_unix_seconds(*time), 1782716334);
}

TEST(ReadBootTime, MissingFileIsNotFound) {
  const TempTree procfs;
  const auto time = read_boot_time(FileRoot(procfs.path()));
  ASSERT_FALSE(time);
  EXPECT_EQ(time.error().kind, ErrorKind::kNotFound);
}

}  // namespace
}  // namespace apu
