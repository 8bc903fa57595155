#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>

#include "collectors/kernel_log/source.h"
#include "tests/support/collector_log.h"
#include "tests/support/temp_tree.h"
#include "tests/support/wait.h"

namespace apu {
namespace {

/// A log file that is written to, and the source that follows it.
class FileSourceTest : public ::testing::Test {
 protected:
  void append(std::string_view text) { std::ofstream(path(), std::ios::app) << text; }

  void drain() { EXPECT_EQ(source_->drain(sink_), std::nullopt); }

  [[nodiscard]] std::filesystem::path path() const { return tree_.path() / "kern.log"; }

  [[nodiscard]] const std::vector<std::string>& messages() const { return sink_.messages; }

  void rotate_by_rename() const {
    std::filesystem::rename(path(), tree_.path() / "kern.log.1");
    tree_.write("kern.log", "");
  }

  TempTree tree_;
  RecordingSink sink_;
  std::unique_ptr<LogSource> source_ =
      make_file_source(path(), std::make_shared<FixedClock>(from_unix_seconds(1783453890)));
};

std::string line(const std::string& text) {
  return "[    1.000000] " + text + "\n";
}

using Messages = std::vector<std::string>;

TEST_F(FileSourceTest, ReadsWhatIsThereAndThenWhatIsAdded) {
  append(line("a") + line("b"));
  drain();
  EXPECT_EQ(messages(), (Messages{"a", "b"}));
  append(line("c"));
  drain();
  drain();
  EXPECT_EQ(messages(), (Messages{"a", "b", "c"}));
  EXPECT_EQ(source_->name(), "log_file");
  EXPECT_TRUE(source_->poll_descriptors().empty());
}

TEST_F(FileSourceTest, MissingFileIsNotFoundUntilItAppears) {
  const auto status = source_->drain(sink_);
  ASSERT_TRUE(status);
  EXPECT_EQ(status->kind, ErrorKind::kNotFound);
  append(line("a"));
  drain();
  EXPECT_EQ(messages(), Messages{"a"});
}

TEST_F(FileSourceTest, WhatIsNoFileIsAnError) {
  std::filesystem::create_directory(path());
  EXPECT_TRUE(source_->drain(sink_));
}

TEST_F(FileSourceTest, FileThatDisappearsIsFollowedWhenItComesBack) {
  append(line("a"));
  drain();
  tree_.remove("kern.log");
  drain();
  append(line("b"));
  drain();
  EXPECT_EQ(messages(), (Messages{"a", "b"}));
}

TEST_F(FileSourceTest, RenamedFileIsReadToItsEndAndTheNewOneFromItsStart) {
  append(line("a"));
  drain();
  append(line("b"));
  rotate_by_rename();
  append(line("c"));
  drain();
  EXPECT_EQ(messages(), (Messages{"a", "b", "c"}));
}

TEST_F(FileSourceTest, TruncatedFileIsReadFromItsStart) {
  append(line("a long first line") + line("b"));
  drain();
  std::filesystem::resize_file(path(), 0);
  append(line("c"));
  drain();
  EXPECT_EQ(messages(), (Messages{"a long first line", "b", "c"}));
}

TEST_F(FileSourceTest, RecreatedFileIsNewWhateverItsSize) {
  append(line("a"));
  drain();
  for (const std::string text : {"b", "c", "d"}) {
    tree_.remove("kern.log");
    append(line(text));
    drain();
  }
  EXPECT_EQ(messages(), (Messages{"a", "b", "c", "d"}));
}

TEST_F(FileSourceTest, LineIsTakenWhenItIsWhole) {
  append(line("a"));
  drain();
  append("[    2.000000] workqueue: f hogged CPU for >10000us 16");
  drain();
  EXPECT_EQ(messages().size(), 1U);
  append("387 times\n");
  drain();
  EXPECT_EQ(messages(), (Messages{"a", "workqueue: f hogged CPU for >10000us 16387 times"}));
}

TEST_F(FileSourceTest, LastLineWithoutNewlineCountsAtTheStart) {
  append(line("a") + "[    2.000000] b");
  drain();
  EXPECT_EQ(messages(), (Messages{"a", "b"}));
}

TEST_F(FileSourceTest, LastLineWithoutNewlineCountsOnceNothingIsAdded) {
  append(line("a"));
  drain();
  append("[    2.000000] b");
  EXPECT_TRUE(eventually([&] {
    drain();
    return messages().size() == 2;
  }));
  EXPECT_EQ(messages().back(), "b");
}

TEST_F(FileSourceTest, PartialLineOfARotatedFileIsItsLast) {
  append(line("a"));
  drain();
  append("[    2.000000] cut off");
  rotate_by_rename();
  append(line("b"));
  drain();
  EXPECT_EQ(messages(), (Messages{"a", "cut off", "b"}));
}

TEST_F(FileSourceTest, LineOfAMebibyteIsCountedAndTheNextIsRead) {
  append(line(std::string(1 << 20, 'x')) + line("b"));
  drain();
  EXPECT_EQ(sink_.unreadable.size(), 1U);
  ASSERT_EQ(messages().size(), 2U);
  EXPECT_LE(messages()[0].size(), 64U << 10);
  EXPECT_EQ(messages()[1], "b");
}

TEST_F(FileSourceTest, WhatIsNoRecordIsCountedWithItsLine) {
  append(line("a") + "\n garbage of a dictionary\nno format\n" + line("b"));
  drain();
  EXPECT_EQ(messages(), (Messages{"a", "b"}));
  ASSERT_EQ(sink_.unreadable.size(), 1U);
  EXPECT_NE(sink_.unreadable[0].find("kern.log:4:"), std::string::npos) << sink_.unreadable[0];
  rotate_by_rename();
  append("no format\n");
  drain();
  ASSERT_EQ(sink_.unreadable.size(), 2U);
  EXPECT_NE(sink_.unreadable[1].find("kern.log:1:"), std::string::npos) << sink_.unreadable[1];
}

TEST_F(FileSourceTest, NulBytesAreBytes) {
  const std::string nul(1, '\0');
  append(line("a" + nul + "b") + std::string(512, '\0') + "\n" + line("c"));
  drain();
  EXPECT_EQ(messages(), (Messages{"a" + nul + "b", "c"}));
  EXPECT_EQ(sink_.unreadable.size(), 1U);
}

TEST_F(FileSourceTest, LinesMayEndInCarriageReturns) {
  append("[    1.000000] workqueue: f hogged CPU for >10000us 7 times\r\n");
  drain();
  ASSERT_EQ(messages().size(), 1U);
  EXPECT_TRUE(messages()[0].starts_with("workqueue: f hogged CPU for >10000us 7 times"));
}

/// Appends lines, whole and in pieces, drains and rotates at random: each line comes once.
TEST_F(FileSourceTest, LosesNothingAndRepeatsNothingOverRotations) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    tree_.write("kern.log", "");
    sink_ = {};
    source_ = make_file_source(path(), std::make_shared<FixedClock>(TimePoint()));
    drain();
    int next = 0;
    const auto write_line = [&] {
      const std::string text = line(std::to_string(next++) + std::string(random() % 300, '.'));
      const size_t cut = random() % text.size();
      append(text.substr(0, cut));
      if (random() % 4 == 0) {
        drain();
      }
      append(text.substr(cut));
    };
    for (int step = 0; step < 200; ++step) {
      switch (random() % 8) {
        case 0:
          rotate_by_rename();
          break;
        case 1:  // a writer that has the old file open goes on in it
          std::filesystem::rename(path(), tree_.path() / "kern.log.1");
          std::ofstream(tree_.path() / "kern.log.1", std::ios::app) << line(std::to_string(next++));
          tree_.write("kern.log", "");
          break;
        case 2:  // a truncation is seen if the file is looked at before it has grown again
          drain();
          std::filesystem::resize_file(path(), 0);
          drain();
          break;
        case 3:
          drain();
          break;
        default:
          write_line();
      }
      if (random() % 2 == 0) {
        drain();  // at most one rotation in between: of two, the file in the middle is gone
      } else if (step % 2 == 0) {
        write_line();
        drain();
      } else {
        drain();
      }
    }
    drain();
    ASSERT_EQ(messages().size(), static_cast<size_t>(next));
    for (int i = 0; i < next; ++i) {
      const std::string& message = messages().at(static_cast<size_t>(i));
      ASSERT_EQ(message.substr(0, message.find('.')), std::to_string(i));
    }
    EXPECT_TRUE(sink_.unreadable.empty());
  }
}

}  // namespace
}  // namespace apu
