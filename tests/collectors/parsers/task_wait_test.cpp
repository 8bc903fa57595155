#include "collectors/parsers/task_wait.h"

#include <gtest/gtest.h>

#include "tests/support/collector_files.h"

namespace apu {
namespace {

TEST(TaskSyscall, IsReadInAllItsForms) {
  EXPECT_FALSE(parse_syscall("running\n"));
  EXPECT_FALSE(parse_syscall(read_file(case_path("87-spin-true-positive/t10/4242/syscall"))));
  const auto fault = parse_syscall("-1 0x7ffd2000 0x55d0c0de\n");
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->number, -1);
  const auto ioctl =
      parse_syscall("16 0x7 0xc0284b16 0x7ffd0f10 0x0 0x0 0x1 0x7ffd0ee8 0x7f01c0de\n");
  ASSERT_TRUE(ioctl);
  EXPECT_EQ(ioctl->number, 16);
  EXPECT_EQ(ioctl->argument, 0xc0284b16U);
}

TEST(TaskSyscall, OfAnotherShapeIsNone) {
  for (const char* text : {"", "16", "16 0x7", "16 7 8 9 0 0 0 0 0", "-1 0x1",
                           "99999999999999999999 0x0 0x0 0x0 0x0 0x0 0x0 0x0 0x0"}) {
    EXPECT_FALSE(parse_syscall(text)) << text;
  }
}

TEST(TaskWait, IoctlOfKfdIsAWaitForIt) {
  // Allocation, map, SVM, of which the size is in the command too.
  for (const std::uint64_t command : {0xc0284b16ULL, 0xc0184b18ULL, 0xc0184b20ULL, 0xc0804b20ULL}) {
    EXPECT_EQ(classify_wait("__flush_work", BlockedSyscall{16, command}), TaskWait::kKfd);
  }
  EXPECT_EQ(classify_wait("__flush_work", BlockedSyscall{16, 0xc0206440}), TaskWait::kOther);
  EXPECT_EQ(classify_wait("__flush_work", BlockedSyscall{202, 0x4b00}), TaskWait::kOther);
}

TEST(TaskWait, IsToldByTheFunctionItSleepsIn) {
  const auto of = [](const char* wchan) { return classify_wait(wchan, std::nullopt); };
  EXPECT_EQ(of("svm_range_list_lock_and_flush_work"), TaskWait::kKfd);
  EXPECT_EQ(of("kfd_process_evict_queues\n"), TaskWait::kKfd);
  EXPECT_EQ(of("shrink_folio_list"), TaskWait::kMemory);
  EXPECT_EQ(of("lock_mm_and_find_vma"), TaskWait::kMemory);
  EXPECT_EQ(of("folio_wait_bit_common"), TaskWait::kIo);
  EXPECT_EQ(of("request_wait_answer"), TaskWait::kIo);
  EXPECT_EQ(of("0"), TaskWait::kOther);
  EXPECT_EQ(of(""), TaskWait::kOther);
  EXPECT_EQ(of("drm_sched_fence"), TaskWait::kOther);
}

}  // namespace
}  // namespace apu
