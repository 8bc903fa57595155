#include "collectors/parsers/pid_stat.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/collector_files.h"

namespace apu {
namespace {

// Fields 3 to 24, numbered by their value where we use them.
std::string stat_line(const std::string& name, const std::string& rest =
                                                   "S 1 5 6 7 -1 9 110 11 112 13 114 115 16 17 "
                                                   "20 0 120 0 122 123 124") {
  return "4711 (" + name + ") " + rest;
}

Result<PidStat> parse_case(const std::string& pid) {
  return parse_pid_stat(read_file(case_path("85-stat-odd-task-names/" + pid + "/stat")));
}

TEST(ParsePidStat, ReadsEachFieldAtItsPlace) {
  const auto stat = parse_pid_stat(stat_line("llama-server") + " 25 26\n");
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->pid, 4711);
  EXPECT_EQ(stat->comm, "llama-server");
  EXPECT_EQ(stat->state, 'S');
  EXPECT_EQ(stat->flags, 9U);
  EXPECT_EQ(stat->minor_faults, 110U);
  EXPECT_EQ(stat->major_faults, 112U);
  EXPECT_EQ(stat->user_ticks, 114U);
  EXPECT_EQ(stat->system_ticks, 115U);
  EXPECT_EQ(stat->threads, 120U);
  EXPECT_EQ(stat->start_ticks, 122U);
  EXPECT_EQ(stat->virtual_bytes, 123U);
  EXPECT_EQ(stat->resident_pages, 124U);
}

TEST(ParsePidStat, NeedsNoNewline) {
  EXPECT_TRUE(parse_pid_stat(stat_line("a")));
}

TEST(ParsePidStat, NameMayHoldAnything) {
  for (const char* name : {"", " ", "(", ")", ") R 1 (", "a\nb", "\n", "tmux: server", "\xff\xfe",
                           "(sd-pam)", "kworker/u128:0+amdgpu-reset-dev"}) {
    const auto stat = parse_pid_stat(stat_line(name) + "\n");
    ASSERT_TRUE(stat) << name;
    EXPECT_EQ(stat->comm, name);
    EXPECT_EQ(stat->state, 'S') << name;
    EXPECT_EQ(stat->threads, 120U) << name;
  }
}

TEST(ParsePidStat, ReadsTheRecordedNames) {
  EXPECT_EQ(parse_case("1001")->state, 'S');
  EXPECT_EQ(parse_case("1001")->comm, "tmux: server");
  EXPECT_EQ(parse_case("1002")->state, 'D');
  EXPECT_EQ(parse_case("1002")->user_ticks, 200U);
  EXPECT_EQ(parse_case("1003")->state, 'S');
  EXPECT_EQ(parse_case("1004")->user_ticks, 300U);
  EXPECT_EQ(parse_case("1004")->comm, "x\ny");
  EXPECT_EQ(parse_case("1005")->state, 'R');
  EXPECT_EQ(parse_case("1005")->comm, "");
  EXPECT_EQ(parse_case("1006")->user_ticks, 0U);
  EXPECT_EQ(parse_case("1006")->system_ticks, 9000U);
  EXPECT_EQ(parse_case("1007")->threads, 37U);
  EXPECT_EQ(parse_case("1007")->comm, "llama-server-ro");
}

TEST(IsKernelThread, IsTheFlagAndNotTheName) {
  EXPECT_FALSE(is_kernel_thread(*parse_case("1006")));
  PidStat stat;
  stat.flags = 0x04208060;
  EXPECT_TRUE(is_kernel_thread(stat));
  stat.flags = 0x04008060;
  EXPECT_FALSE(is_kernel_thread(stat));
}

TEST(ParsePidStat, ReadsTheLargestNumber) {
  const auto stat = parse_pid_stat(stat_line(
      "a", "R 1 5 6 7 -1 9 0 0 0 0 18446744073709551615 0 0 0 20 0 1 0 1 18446744073709551615 1"));
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->user_ticks, 18446744073709551615U);
  EXPECT_EQ(stat->virtual_bytes, 18446744073709551615U);
}

TEST(ParsePidStat, LineCutBeforeItsLastUsedFieldIsMalformed) {
  const std::string whole = stat_line("a");
  const size_t last_field = whole.rfind(' ');
  for (size_t length = 0; length <= last_field; ++length) {
    const auto stat = parse_pid_stat(whole.substr(0, length));
    ASSERT_FALSE(stat) << whole.substr(0, length);
    EXPECT_EQ(stat.error().kind, ErrorKind::kMalformed);
  }
}

TEST(ParsePidStat, FieldThatIsNoNumberIsMalformed) {
  for (const char* rest : {"S 1 5 6 7 -1 9 x 11 112 13 114 115 16 17 20 0 120 0 122 123 124",
                           "S 1 5 6 7 -1 9 110 11 112 13 -114 115 16 17 20 0 120 0 122 123 124",
                           "S 1 5 6 7 -1 9 110 11 112 13 114 115 16 17 20 0 1.5 0 122 123 124",
                           "S 1 5 6 7 -1 9 110 11 112 13 18446744073709551616 115 16 17 20 0 1 0 "
                           "122 123 124",
                           "SR 1 5 6 7 -1 9 110 11 112 13 114 115 16 17 20 0 120 0 122 123 124"}) {
    EXPECT_FALSE(parse_pid_stat(stat_line("a", rest))) << rest;
  }
}

TEST(ParsePidStat, PidThatIsNoNumberIsMalformed) {
  EXPECT_FALSE(parse_pid_stat("x" + stat_line("a")));
  EXPECT_FALSE(parse_pid_stat(" (a) S 1"));
}

}  // namespace
}  // namespace apu
