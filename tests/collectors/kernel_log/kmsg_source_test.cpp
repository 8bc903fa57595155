#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <variant>
#include <vector>

#include "collectors/kernel_log/source.h"
#include "exporter/descriptor.h"
#include "tests/support/collector_log.h"
#include "tests/support/temp_tree.h"

namespace apu {
namespace {

/// What reads of a device give one after the other: a record, or an errno. EAGAIN at the end.
class Device {
 public:
  using Answer = std::variant<std::string, int>;

  explicit Device(std::vector<Answer> answers) : answers_(std::move(answers)) {}

  ssize_t read(std::span<char> buffer) {
    if (next_ == answers_.size()) {
      errno = EAGAIN;
      return -1;
    }
    const Answer& answer = answers_.at(next_++);
    if (const int* error = std::get_if<int>(&answer)) {
      errno = *error;
      return -1;
    }
    const auto& record = std::get<std::string>(answer);
    if (record.size() > buffer.size()) {
      errno = EINVAL;
      return -1;
    }
    std::copy(record.begin(), record.end(), buffer.begin());
    return static_cast<ssize_t>(record.size());
  }

 private:
  std::vector<Answer> answers_;
  size_t next_ = 0;
};

/// Drains a source on `answers` until it says that there is no more.
Status drain(std::vector<Device::Answer> answers, RecordingSink& sink) {
  Device device(std::move(answers));
  const auto source =
      make_kmsg_source("kmsg", [&](std::span<char> buffer) { return device.read(buffer); });
  return source->drain(sink);
}

TEST(KmsgSource, HandsOnRecordsInOrder) {
  RecordingSink sink;
  EXPECT_EQ(drain({"6,7,1,-;a\n", "6,8,2,-;b\n SUBSYSTEM=pci\n DEVICE=x\n", "12,9,3,-;c\n"}, sink),
            std::nullopt);
  EXPECT_EQ(sink.messages, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_TRUE(sink.losses.empty());
  EXPECT_TRUE(sink.unreadable.empty());
  EXPECT_EQ(sink.boot_starts, 0);
}

TEST(KmsgSource, RecordZeroIsTheStartOfThisBoot) {
  RecordingSink sink;
  EXPECT_EQ(drain({"5,0,0,-;Linux version 6\n", "6,1,0,-;a\n"}, sink), std::nullopt);
  EXPECT_EQ(sink.boot_starts, 1);
  EXPECT_EQ(sink.messages.size(), 2U);
}

TEST(KmsgSource, GapInTheSequenceIsALossOfThatSize) {
  RecordingSink sink;
  EXPECT_EQ(drain({"6,7,1,-;a\n", EPIPE, "6,40,2,-;b\n", "6,41,2,-;c\n", "6,43,2,-;d\n"}, sink),
            std::nullopt);
  EXPECT_EQ(sink.losses, (std::map<std::string, std::uint64_t>{{"kmsg_overrun", 32 + 1}}));
  EXPECT_EQ(sink.messages.size(), 4U);
}

TEST(KmsgSource, OverrunBeforeTheFirstRecordIsNoLossOfOurs) {
  RecordingSink sink;
  EXPECT_EQ(drain({EPIPE, "6,40,2,-;b\n"}, sink), std::nullopt);
  EXPECT_TRUE(sink.losses.empty());
  EXPECT_EQ(sink.messages.size(), 1U);
}

TEST(KmsgSource, LossSpansDrains) {
  std::vector<std::string> records{"6,7,1,-;a\n"};
  const auto source = make_kmsg_source("kmsg", [&](std::span<char> buffer) -> ssize_t {
    if (records.empty()) {
      errno = EAGAIN;
      return -1;
    }
    std::copy(records[0].begin(), records[0].end(), buffer.begin());
    const auto size = static_cast<ssize_t>(records[0].size());
    records.clear();
    return size;
  });
  RecordingSink sink;
  EXPECT_EQ(source->drain(sink), std::nullopt);
  records = {"6,9,1,-;b\n"};
  EXPECT_EQ(source->drain(sink), std::nullopt);
  EXPECT_EQ(sink.losses.at("kmsg_overrun"), 1U);
}

TEST(KmsgSource, InterruptedReadGoesOn) {
  RecordingSink sink;
  EXPECT_EQ(drain({EINTR, "6,7,1,-;a\n"}, sink), std::nullopt);
  EXPECT_EQ(sink.messages.size(), 1U);
}

TEST(KmsgSource, LongestRecordOfTheKernelFits) {
  RecordingSink sink;
  const std::string head = "6,7,1,-;";
  EXPECT_EQ(drain({head + std::string(8192 - head.size(), 'x')}, sink), std::nullopt);
  EXPECT_EQ(sink.messages.size(), 1U);
}

TEST(KmsgSource, RecordThatDoesNotFitIsLostAndCounted) {
  RecordingSink sink;
  EXPECT_EQ(drain({"6,7,1,-;a\n", std::string(8193, 'x'), "6,9,1,-;c\n"}, sink), std::nullopt);
  EXPECT_EQ(sink.unreadable.size(), 1U);
  EXPECT_EQ(sink.losses.at("kmsg_overrun"), 1U);
}

TEST(KmsgSource, WhatIsNoRecordIsCountedAndTheOthersAreRead) {
  RecordingSink sink;
  EXPECT_EQ(drain({"6,7,1,-;a\n", "[    1.000000] b\n", "\xff\n", "6,8,1,-;c\n"}, sink),
            std::nullopt);
  EXPECT_EQ(sink.unreadable.size(), 2U);
  EXPECT_EQ(sink.messages, (std::vector<std::string>{"a", "c"}));
}

TEST(KmsgSource, ErrorOfTheDeviceIsReported) {
  RecordingSink sink;
  const auto status = drain({"6,7,1,-;a\n", EPERM}, sink);
  ASSERT_TRUE(status);
  EXPECT_EQ(status->kind, ErrorKind::kPermissionDenied);
}

TEST(KmsgSource, MissingDeviceIsNotFoundUntilItAppears) {
  const TempTree tree;
  const auto source = make_kmsg_source(tree.path() / "kmsg");
  RecordingSink sink;
  const auto status = source->drain(sink);
  ASSERT_TRUE(status);
  EXPECT_EQ(status->kind, ErrorKind::kNotFound);
  EXPECT_TRUE(source->poll_descriptors().empty());
}

TEST(KmsgSource, DeviceThatEndsIsNoKernelLog) {
  const auto source = make_kmsg_source("/dev/null");
  RecordingSink sink;
  const auto status = source->drain(sink);
  ASSERT_TRUE(status);
  EXPECT_EQ(status->kind, ErrorKind::kUnsupported);
}

TEST(KmsgSource, ReadsTheLogOfThisKernel) {
  const Descriptor probe(::open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!probe.valid()) {
    GTEST_SKIP() << "/dev/kmsg cannot be opened here: " << std::strerror(errno);
  }
  const auto source = make_kmsg_source("/dev/kmsg");
  RecordingSink sink;
  ASSERT_EQ(source->drain(sink), std::nullopt);
  if (sink.sequences.empty()) {
    GTEST_SKIP() << "the kernel log is empty";
  }
  EXPECT_TRUE(sink.unreadable.empty());
  EXPECT_TRUE(std::is_sorted(sink.sequences.begin(), sink.sequences.end()));
  EXPECT_EQ(sink.boot_starts, sink.sequences.front() == 0U ? 1 : 0);
  EXPECT_EQ(source->poll_descriptors().size(), 1U);
  const auto last = sink.sequences.back();
  RecordingSink later;
  ASSERT_EQ(source->drain(later), std::nullopt);
  EXPECT_TRUE(later.sequences.empty() || later.sequences.front() > last);
}

}  // namespace
}  // namespace apu
