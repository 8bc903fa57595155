#include "collectors/kernel_log/journal_source.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>
#include <vector>

#include "collectors/kernel_log/journal_entry.h"
#include "collectors/kernel_log/journal_files.h"
#include "collectors/kernel_log/journal_frame.h"
#include "tests/support/collector_log.h"
#include "tests/support/temp_tree.h"
#include "tests/support/wait.h"

namespace apu {
namespace {

using std::chrono::milliseconds;

LogRecord kernel_record(std::string_view message) {
  LogRecord record;
  record.origin = Origin::kKernel;
  record.message = message;
  return record;
}

std::string batch_of(std::string_view message, const std::string& cursor) {
  std::string bytes;
  append_record(bytes, kernel_record(message));
  append_checkpoint(bytes, {cursor, false}, {});
  return bytes;
}

std::string answer_to(std::uint64_t sync, const Status& problem = std::nullopt) {
  std::string bytes;
  append_answer(bytes, sync, problem);
  return bytes;
}

/// A journal whose reader is a script of the shell: `$arguments` has what it was asked for.
class JournalSourceTest : public ::testing::Test {
 protected:
  void write_reader(const std::string& script) {
    tree_.write("reader",
                "#!/bin/sh\narguments=\"$*\"\ncd " + tree_.path().string() + "\n" + script);
    ::chmod((tree_.path() / "reader").c_str(), S_IRWXU);
  }

  std::unique_ptr<LogSource> make(milliseconds silence = kLongWait,
                                  milliseconds back_off = kLongWait) {
    JournalQuery query;
    query.place = {"/journal", false};
    query.kernel = true;
    return make_journal_source(query, {tree_.path() / "reader", silence, back_off});
  }

  TempTree tree_;
  RecordingSink sink_;
};

TEST_F(JournalSourceTest, HandsOnWhatCameBeforeTheAnswer) {
  tree_.write("first", batch_of("a", "s=1") + batch_of("b", "s=2") + answer_to(1));
  write_reader("cat first; read more");
  const auto source = make();
  EXPECT_EQ(source->drain(sink_), std::nullopt);
  EXPECT_EQ(sink_.messages, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(source->poll_descriptors().size(), 1U);
}

TEST_F(JournalSourceTest, AfterACrashGoesOnAtTheLastCheckpoint) {
  std::string torn;
  append_record(torn, kernel_record("not committed"));
  tree_.write("first", batch_of("a", "s=1") + torn);
  tree_.write("second", batch_of("b", "s=2") + answer_to(2));
  write_reader(
      "case $arguments in *kernel-at=s=1*) cat second; read more;; *) cat first; kill -BUS $$;; "
      "esac");
  EXPECT_EQ(make()->drain(sink_), std::nullopt);
  EXPECT_EQ(sink_.messages, (std::vector<std::string>{"a", "b"}));
  ASSERT_EQ(sink_.unreadable.size(), 1U);
  EXPECT_NE(sink_.unreadable[0].find("signal 7"), std::string::npos) << sink_.unreadable[0];
  EXPECT_NE(sink_.unreadable[0].find("s=1"), std::string::npos);
  EXPECT_EQ(sink_.losses["journal_unreadable"], 1U);
}

TEST_F(JournalSourceTest, AfterThreeCrashesAtOnePlaceGivesUpForAWhile) {
  write_reader("echo >> starts; exit 1");
  const auto source = make();
  EXPECT_EQ(source->drain(sink_)->kind, ErrorKind::kMalformed);
  EXPECT_EQ(source->drain(sink_)->kind, ErrorKind::kMalformed);
  EXPECT_EQ(std::filesystem::file_size(tree_.path() / "starts"), 3U);
  EXPECT_TRUE(source->poll_descriptors().empty());
}

TEST_F(JournalSourceTest, ACorruptFrameIsACrash) {
  tree_.write("first", std::string("\xff\xff\xff\xff garbage"));
  write_reader("cat first; read more");
  EXPECT_EQ(make()->drain(sink_)->kind, ErrorKind::kMalformed);
  EXPECT_TRUE(sink_.messages.empty());
}

TEST_F(JournalSourceTest, SilenceIsBlockedAndTheNextTryIsNotWaitedFor) {
  tree_.write("first", answer_to(2));
  write_reader("while [ ! -e go ]; do sleep 0.02; done; cat first; read more");
  const auto source = make(milliseconds(200), milliseconds(0));
  EXPECT_EQ(source->drain(sink_)->kind, ErrorKind::kBlocked);
  EXPECT_LT(time_of([&] { EXPECT_EQ(source->drain(sink_)->kind, ErrorKind::kBlocked); }),
            milliseconds(150));
  tree_.write("go", "");
  EXPECT_TRUE(eventually([&] { return !source->drain(sink_); }));
}

TEST_F(JournalSourceTest, SaysWhyTheJournalCannotBeRead) {
  tree_.write("first", answer_to(1, Error{ErrorKind::kPermissionDenied, "group systemd-journal"}));
  write_reader("cat first; read more");
  const Status status = make()->drain(sink_);
  ASSERT_TRUE(status);
  EXPECT_EQ(status->kind, ErrorKind::kPermissionDenied);
  EXPECT_EQ(status->message, "group systemd-journal");
}

TEST_F(JournalSourceTest, TroubleIsCountedAndIsALoss) {
  std::string bytes;
  append_trouble(bytes, "s=9: no text");
  append_plain_lines(bytes, 3);
  append_checkpoint(bytes, {"s=9", false}, {});
  tree_.write("first", bytes + answer_to(1));
  write_reader("cat first; read more");
  EXPECT_EQ(make()->drain(sink_), std::nullopt);
  EXPECT_EQ(sink_.unreadable, std::vector<std::string>{"journal: s=9: no text"});
  EXPECT_EQ(sink_.losses["journal_unreadable"], 1U);
  EXPECT_EQ(sink_.plain_lines, 3U);
}

TEST(JournalFiles, SayWhyNoneCanBeRead) {
  const TempTree tree;
  const auto problem = [&] {
    return problem_of(look_for_journal_files({tree.path() / "none", tree.path() / "some"}),
                      "place");
  };
  EXPECT_EQ(problem()->kind, ErrorKind::kNotFound);
  tree.write("some/notes.txt", "");
  tree.write("some/remote/x.journal", "");  // of other hosts
  tree.write("some/user-1000.journal", "");
  EXPECT_EQ(problem()->kind, ErrorKind::kNotFound);
  tree.write("some/" + std::string(32, 'a') + "/system.journal", "");
  EXPECT_EQ(problem(), std::nullopt);
}

TEST(UserOfManagerUnit, IsANumber) {
  EXPECT_EQ(user_of_manager_unit("user@1000.service"), "1000");
  for (const char* unit :
       {"user@.service", "user@evil.service", "user@1000.slice", "a.service", ""}) {
    EXPECT_EQ(user_of_manager_unit(unit), std::nullopt) << unit;
  }
}

}  // namespace
}  // namespace apu
