#include "collectors/parsers/pid_status.h"

#include <gtest/gtest.h>

#include "tests/support/collector_files.h"

namespace apu {
namespace {

PidStatus status_in(const std::string& name) {
  return parse_pid_status(read_file(case_path("86-status-of-llama-server") / name / "status"));
}

TEST(PidStatusCase, OfAModelServer) {
  const PidStatus status = status_in("a");
  EXPECT_EQ(status.anon_bytes, 637534208U);
  EXPECT_EQ(status.file_bytes, 6878658560U);
  EXPECT_EQ(status.resident_bytes(), 7516192768U);
  EXPECT_FALSE(status.swap_bytes);
  EXPECT_EQ(status_in("b").file_bytes, 50465865728U);
  EXPECT_TRUE(status.problems.empty());
}

TEST(PidStatusCase, ThreadOfTheKernelAndZombieHaveNoMemory) {
  for (const char* name : {"kthread", "zombie"}) {
    const PidStatus status = status_in(name);
    EXPECT_FALSE(status.resident_bytes()) << name;
    EXPECT_TRUE(status.problems.empty()) << name;
  }
  EXPECT_EQ(status_in("kthread").voluntary_switches, 912345U);
  EXPECT_EQ(status_in("kthread").involuntary_switches, 3311U);
}

TEST(PidStatus, LineThatIsCutIsAProblemAndTheRestCounts) {
  const PidStatus status = parse_pid_status(
      "Name:\tVmSwap: 5 kB\nVmSwap:\t  12 k\nVmLck:\t 4 kB\nRssAnon:\n"
      "RssFile:\t18014398509481984 kB\nvoluntary_ctxt_switches:\t7");
  EXPECT_EQ(status.problems.size(), 3U);
  EXPECT_EQ(status.problems[0].line, 2);
  EXPECT_EQ(status.locked_bytes, 4096U);
  EXPECT_EQ(status.voluntary_switches, 7U);
  EXPECT_FALSE(status.swap_bytes || status.anon_bytes || status.file_bytes);
}

TEST(ReadBytes, AreThoseOfStorage) {
  EXPECT_EQ(parse_read_bytes("rchar: 5\nwchar: 6\nread_bytes: 4096\nwrite_bytes: 1\n"), 4096U);
  EXPECT_FALSE(parse_read_bytes("rchar: 5\n"));
  EXPECT_FALSE(parse_read_bytes("read_bytes: -1\n"));
  EXPECT_FALSE(parse_read_bytes(""));
}

TEST(SchedStat, IsThreeNumbers) {
  const auto stat = parse_schedstat("5000000 70 12\n");
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->run_ns, 5000000U);
  EXPECT_EQ(stat->wait_ns, 70U);
  EXPECT_FALSE(parse_schedstat("5 6\n"));
  EXPECT_FALSE(parse_schedstat("a b c\n"));
}

}  // namespace
}  // namespace apu
