#include "exporter/guarded_reader.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <string>
#include <vector>

#include "exporter/guarded_protocol.h"
#include "tests/support/collector_host.h"
#include "tests/support/temp_tree.h"
#include "tests/support/wait.h"

namespace apu {
namespace {

using std::chrono::milliseconds;

constexpr const char* kTimeouts = "apu_guarded_read_timeouts_total{file=\"fdinfo\"}";

class GuardedReaderTest : public testing::Test {
 protected:
  GuardedReaderTest() {
    settings_.file_wait = milliseconds(150);
    settings_.retry_after = milliseconds(60'000);
  }

  [[nodiscard]] GuardedReader make() const {
    return {{"fdinfo"}, SourceReporter(host_.board, "test"), settings_};
  }

  [[nodiscard]] GuardedFile file(const std::string& relative, std::int64_t pid,
                                 std::uint64_t start = 7) const {
    return {"fdinfo", (tree_.path() / relative).string(), {pid, start}};
  }

  [[nodiscard]] std::optional<double> timeouts() const { return host_.source(kTimeouts); }

  TempTree tree_;
  CollectorHost host_{tree_.path()};
  GuardedReaderSettings settings_;
};

TEST_F(GuardedReaderTest, CountsFromTheStartOn) {
  EXPECT_FALSE(timeouts());
  const GuardedReader reader = make();
  EXPECT_EQ(timeouts(), 0);
  EXPECT_EQ(reader.helper(), -1);  // none before there is something to read
}

TEST_F(GuardedReaderTest, ReadsFilesInTheirOrder) {
  tree_.write("a", "first\n");
  tree_.write("empty", "");
  const std::string binary("x\0y\n", 4);
  tree_.write("b", binary);
  GuardedReader reader = make();
  const auto results =
      reader.read(std::vector{file("b", 1), file("missing", 2), file("empty", 3), file("a", 4)});
  ASSERT_EQ(results.size(), 4U);
  EXPECT_EQ(*results[0], binary);
  EXPECT_EQ(results[1].error().kind, ErrorKind::kNotFound);
  EXPECT_EQ(*results[2], "");
  EXPECT_EQ(*results[3], "first\n");
  EXPECT_EQ(host_.source("apu_source_available{source=\"guarded_reads\"}"), 1);
}

TEST_F(GuardedReaderTest, OneHelperServesAllCalls) {
  tree_.write("a", "one");
  GuardedReader reader = make();
  ASSERT_TRUE(reader.read(std::vector{file("a", 1)})[0]);
  const pid_t helper = reader.helper();
  tree_.write("a", "two");
  EXPECT_EQ(*reader.read(std::vector{file("a", 1)})[0], "two");
  EXPECT_EQ(reader.helper(), helper);
}

TEST_F(GuardedReaderTest, MoreFilesAndBytesThanPipesHold) {
  constexpr int kFiles = 700;
  std::vector<GuardedFile> files;
  for (int i = 0; i < kFiles; ++i) {
    const std::string name = "dir/" + std::to_string(i);
    tree_.write(name, std::string(500, 'a') + std::to_string(i));
    files.push_back(file(name, i));
  }
  tree_.write("large", std::string(settings_.max_bytes, 'x'));
  files.push_back(file("large", kFiles));
  GuardedReader reader = make();
  const auto results = reader.read(files);
  for (int i = 0; i < kFiles; ++i) {
    EXPECT_EQ(*results[static_cast<size_t>(i)], std::string(500, 'a') + std::to_string(i));
  }
  EXPECT_EQ(results.back()->size(), settings_.max_bytes);
}

TEST_F(GuardedReaderTest, AFileOverTheLimitIsMalformedAndNeverCut) {
  tree_.write("large", std::string(settings_.max_bytes + 1, 'x'));
  EXPECT_EQ(make().read(std::vector{file("large", 1)})[0].error().kind, ErrorKind::kMalformed);
}

TEST_F(GuardedReaderTest, APathThatFitsNoRequestIsAnError) {
  GuardedReader reader = make();
  tree_.write("a", "a");
  const auto results = reader.read(std::vector{file(std::string(5000, 'x'), 1), file("a", 2)});
  EXPECT_FALSE(results[0]);
  EXPECT_TRUE(results[1]);
}

TEST_F(GuardedReaderTest, AHangingFileCostsItsProcessAlone) {
  tree_.write("a", "a");
  tree_.write("b", "b");
  tree_.make_fifo("hangs");
  GuardedReader reader = make();
  const std::vector files{file("a", 1), file("hangs", 2), file("b", 2), file("b", 3)};
  const auto results = reader.read(files);
  EXPECT_EQ(*results[0], "a");
  EXPECT_EQ(results[1].error().kind, ErrorKind::kBlocked);
  EXPECT_EQ(results[2].error().kind, ErrorKind::kBlocked);  // the same process
  EXPECT_EQ(*results[3], "b");
  EXPECT_EQ(timeouts(), 1);
}

TEST_F(GuardedReaderTest, AHangingFileCostsItsHelper) {
  tree_.write("a", "a");
  tree_.make_fifo("hangs");
  GuardedReader reader = make();
  ASSERT_TRUE(reader.read(std::vector{file("a", 1)})[0]);
  const pid_t helper = reader.helper();
  (void)reader.read(std::vector{file("hangs", 2)});
  EXPECT_NE(::kill(helper, 0), 0);
}

TEST_F(GuardedReaderTest, QuarantineIsNotReadAgain) {
  tree_.write("a", "a");
  tree_.make_fifo("hangs");
  settings_.file_wait = milliseconds(500);
  GuardedReader reader = make();
  const std::vector files{file("hangs", 2), file("a", 1)};
  (void)reader.read(files);
  const auto took = time_of([&] {
    const auto results = reader.read(files);
    EXPECT_EQ(results[0].error().kind, ErrorKind::kBlocked);
    EXPECT_TRUE(results[1]);
  });
  EXPECT_LT(took, settings_.file_wait);
  EXPECT_EQ(timeouts(), 1);
}

TEST_F(GuardedReaderTest, TheWaitIsThatOfTheLastCallAlone) {
  tree_.write("a", "a");
  tree_.make_fifo("hangs");
  GuardedReader reader = make();
  EXPECT_FALSE(reader.last_wait());
  (void)reader.read(std::vector{file("hangs", 2)});
  EXPECT_TRUE(reader.last_wait());
  const auto again = reader.read(std::vector{file("hangs", 2)});  // in quarantine
  EXPECT_EQ(again[0].error().kind, ErrorKind::kBlocked);
  EXPECT_FALSE(reader.last_wait());
  (void)reader.read(std::vector{file("hangs", 3)});
  EXPECT_TRUE(reader.last_wait());
  (void)reader.read(std::vector{file("a", 1)});
  EXPECT_FALSE(reader.last_wait());
}

TEST_F(GuardedReaderTest, ANewProcessWithTheSameIdIsFree) {
  tree_.make_fifo("x");
  GuardedReader reader = make();
  (void)reader.read(std::vector{file("x", 2, 100)});
  tree_.remove("x");
  tree_.write("x", "new");
  EXPECT_FALSE(reader.read(std::vector{file("x", 2, 100)})[0]);
  EXPECT_EQ(*reader.read(std::vector{file("x", 2, 200)})[0], "new");
}

TEST_F(GuardedReaderTest, IsTriedAgainAndFreedByAnAnswer) {
  tree_.make_fifo("x");
  settings_.retry_after = milliseconds(0);
  GuardedReader reader = make();
  (void)reader.read(std::vector{file("x", 2)});
  (void)reader.read(std::vector{file("x", 2)});
  EXPECT_EQ(timeouts(), 2);
  tree_.remove("x");
  tree_.write("x", "again");
  EXPECT_EQ(*reader.read(std::vector{file("x", 2)})[0], "again");
  EXPECT_EQ(timeouts(), 2);
}

TEST_F(GuardedReaderTest, WhatIsTriedAgainKeepsNobodyWaiting) {
  tree_.make_fifo("hangs");
  tree_.write("a", "a");
  settings_.retry_after = milliseconds(0);
  settings_.file_wait = milliseconds(300);
  settings_.call_wait = milliseconds(450);
  GuardedReader reader = make();
  const std::vector files{file("hangs", 1), file("a", 2)};
  (void)reader.read(files);
  const auto again = reader.read(files);
  EXPECT_EQ(timeouts(), 2);
  EXPECT_TRUE(again[1]);
}

TEST_F(GuardedReaderTest, ACallIsBoundedHoweverManyHang) {
  std::vector<GuardedFile> files;
  for (int i = 0; i < 40; ++i) {
    tree_.make_fifo(std::to_string(i));
    files.push_back(file(std::to_string(i), i));
  }
  settings_.file_wait = milliseconds(100);
  settings_.call_wait = milliseconds(300);
  GuardedReader reader = make();
  EXPECT_LT(time_of([&] { (void)reader.read(files); }), milliseconds(3000));
  EXPECT_LE(*timeouts(), 9);  // one of 100 ms, the others of 25
}

TEST_F(GuardedReaderTest, OnceOneHasHungOthersAreWaitedForAQuarterAsLong) {
  std::vector<GuardedFile> files;
  for (int i = 0; i < 6; ++i) {
    tree_.make_fifo(std::to_string(i));
    files.push_back(file(std::to_string(i), i));
  }
  tree_.write("last", "a");
  files.push_back(file("last", 99));
  // Six whole waits are more than a call may take; a new helper for each takes its time, too.
  settings_.file_wait = milliseconds(1000);
  settings_.call_wait = milliseconds(5000);
  GuardedReader reader = make();
  EXPECT_EQ(*reader.read(files).back(), "a");
  EXPECT_EQ(timeouts(), 6);
}

TEST_F(GuardedReaderTest, AHelperThatIsKilledIsReplaced) {
  tree_.write("a", "a");
  GuardedReader reader = make();
  ASSERT_TRUE(reader.read(std::vector{file("a", 1)})[0]);
  ::kill(reader.helper(), SIGKILL);
  const auto results = reader.read(std::vector{file("a", 1), file("a", 2)});
  EXPECT_FALSE(results[0]);  // it may be what ended the helper
  EXPECT_TRUE(results[1]);
  EXPECT_TRUE(reader.read(std::vector{file("a", 1)})[0]);
  EXPECT_EQ(timeouts(), 0);
}

TEST_F(GuardedReaderTest, AProgramThatIsNoneIsNamed) {
  settings_.program = "/nonexistent/program";
  tree_.write("a", "a");
  const auto results = make().read(std::vector{file("a", 1)});
  EXPECT_EQ(results[0].error().kind, ErrorKind::kNotFound);
  EXPECT_EQ(host_.source("apu_source_available{source=\"guarded_reads\"}"), 0);
}

TEST_F(GuardedReaderTest, AHelperThatDoesNotStartIsNotWaitedForLong) {
  tree_.write("silent", "#!/bin/sh\nread line\n");
  ::chmod((tree_.path() / "silent").c_str(), 0700);
  settings_.program = tree_.path() / "silent";
  settings_.start_wait = milliseconds(100);
  GuardedReader reader = make();
  EXPECT_EQ(reader.read(std::vector{file("silent", 1)})[0].error().kind, ErrorKind::kBlocked);
  EXPECT_EQ(timeouts(), 0);  // no file hung
}

TEST_F(GuardedReaderTest, EndsWithItsHelper) {
  tree_.write("a", "a");
  auto reader = std::make_unique<GuardedReader>(make());
  ASSERT_TRUE(reader->read(std::vector{file("a", 1)})[0]);
  const pid_t helper = reader->helper();
  reader.reset();
  EXPECT_TRUE(eventually([&] { return ::kill(helper, 0) != 0; }));
}

TEST(GuardedProtocol, TakesWholeMessagesAlone) {
  std::string bytes;
  append_request(bytes, {5, 100, "/a/path"});
  append_request(bytes, {6, 0, ""});
  EXPECT_EQ(bytes.size(), request_size("/a/path") + request_size(""));
  for (size_t size = 0; size < request_size("/a/path"); ++size) {
    std::string_view part = std::string_view(bytes).substr(0, size);
    EXPECT_FALSE(take_request(part));
    EXPECT_EQ(part.size(), size);
  }
  std::string_view rest = bytes;
  EXPECT_EQ(take_request(rest)->path, "/a/path");
  EXPECT_EQ(take_request(rest)->id, 6U);
  EXPECT_TRUE(rest.empty());
}

}  // namespace
}  // namespace apu
