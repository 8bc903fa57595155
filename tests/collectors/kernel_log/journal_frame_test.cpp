#include "collectors/kernel_log/journal_frame.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace apu {
namespace {

using std::chrono::microseconds;

LogRecord some_record() {
  LogRecord record;
  record.origin = Origin::kServiceManager;
  record.level = 5;
  record.since_boot = microseconds(691200000123);
  record.time = TimePoint(microseconds(1783000000000001));
  record.user = "1000";
  record.message = "a.service: \xff text\n of two lines";
  return record;
}

/// The only frame of `bytes`.
Frame only_frame(std::string_view bytes) {
  const auto frame = take_frame(bytes);
  EXPECT_TRUE(frame && *frame && bytes.empty());
  return frame && *frame ? **frame : Frame();
}

TEST(JournalFrame, BringsARecordAcrossWhole) {
  std::string bytes;
  append_record(bytes, some_record());
  const Frame frame = only_frame(bytes);
  EXPECT_EQ(frame.type, FrameType::kRecord);
  EXPECT_EQ(frame.record.origin, Origin::kServiceManager);
  EXPECT_EQ(frame.record.level, 5);
  EXPECT_EQ(frame.record.since_boot, microseconds(691200000123));
  EXPECT_EQ(frame.record.time, TimePoint(microseconds(1783000000000001)));
  EXPECT_EQ(frame.record.user, "1000");
  EXPECT_EQ(frame.record.message, some_record().message);
}

TEST(JournalFrame, WhatARecordLacksStaysAbsent) {
  std::string bytes;
  append_record(bytes, LogRecord());
  const Frame frame = only_frame(bytes);
  EXPECT_EQ(frame.record.origin, Origin::kUserspace);
  EXPECT_EQ(frame.record.level, std::nullopt);
  EXPECT_EQ(frame.record.since_boot, std::nullopt);
  EXPECT_EQ(frame.record.time, std::nullopt);
  EXPECT_EQ(frame.record.user, "");
  EXPECT_EQ(frame.record.message, "");
}

TEST(JournalFrame, AMessageIsCutAtItsLimit) {
  std::string bytes;
  LogRecord record;
  const std::string message(kMaxJournalMessage + 10, 'x');
  record.message = message;
  append_record(bytes, record);
  EXPECT_EQ(only_frame(bytes).record.message.size(), kMaxJournalMessage);
}

TEST(JournalFrame, BringsTheOthersAcross) {
  std::string bytes;
  append_plain_lines(bytes, 4711);
  EXPECT_EQ(only_frame(bytes).number, 4711U);
  bytes.clear();
  append_trouble(bytes, "what");
  EXPECT_EQ(only_frame(bytes).text, "what");
  bytes.clear();
  append_checkpoint(bytes, {"s=1;i=2", true}, {"", false});
  EXPECT_EQ(only_frame(bytes).kernel_position.cursor, "s=1;i=2");
  EXPECT_TRUE(only_frame(bytes).kernel_position.unread);
  EXPECT_FALSE(only_frame(bytes).other_position.unread);
  bytes.clear();
  append_answer(bytes, 7, std::nullopt);
  EXPECT_EQ(only_frame(bytes).number, 7U);
  EXPECT_EQ(only_frame(bytes).problem, std::nullopt);
  bytes.clear();
  append_answer(bytes, 8, Error{ErrorKind::kPermissionDenied, "why"});
  EXPECT_EQ(only_frame(bytes).problem, ErrorKind::kPermissionDenied);
  EXPECT_EQ(only_frame(bytes).text, "why");
}

TEST(JournalFrame, ATornFrameIsNotTakenAtAnyPlace) {
  std::string bytes;
  append_record(bytes, some_record());
  for (size_t size = 0; size < bytes.size(); ++size) {
    std::string_view torn = std::string_view(bytes).substr(0, size);
    const auto frame = take_frame(torn);
    ASSERT_TRUE(frame) << size;
    EXPECT_FALSE(*frame) << size;
    EXPECT_EQ(torn.size(), size);
  }
}

TEST(JournalFrame, FramesFollowOneAnother) {
  std::string bytes;
  append_plain_lines(bytes, 1);
  append_record(bytes, some_record());
  append_plain_lines(bytes, 2);
  std::string_view rest = bytes;
  std::vector<FrameType> types;
  while (!rest.empty()) {
    const auto frame = take_frame(rest);
    ASSERT_TRUE(frame && *frame);
    types.push_back((*frame)->type);
  }
  EXPECT_EQ(types,
            (std::vector{FrameType::kPlainLines, FrameType::kRecord, FrameType::kPlainLines}));
}

TEST(JournalFrame, DamageIsMalformed) {
  std::string whole;
  append_record(whole, some_record());
  std::string unknown_type = whole;
  unknown_type[4] = 99;
  std::string unknown_origin = whole;
  unknown_origin[5] = 99;
  std::string no_length(4, '\0');
  std::string huge = whole;
  huge[3] = '\x7f';
  std::string text_too_long = whole;
  text_too_long[4 + 1 + 1 + 1 + 8 + 8] = '\x50';  // of the user
  std::string one_byte_more = whole + "x";
  one_byte_more[0] = static_cast<char>(one_byte_more[0] + 1);
  std::string unknown_problem;
  append_answer(unknown_problem, 1, Error{ErrorKind::kUnknown, ""});
  unknown_problem[4 + 1 + 8] = 77;
  for (const std::string& bytes : {unknown_type, unknown_origin, no_length, huge, text_too_long,
                                   one_byte_more, unknown_problem}) {
    std::string_view rest = bytes;
    const auto frame = take_frame(rest);
    ASSERT_FALSE(frame) << ::testing::PrintToString(bytes);
    EXPECT_EQ(frame.error().kind, ErrorKind::kMalformed);
  }
}

TEST(JournalQuery, ComesOutOfItsCommandLineAsItWentIn) {
  JournalQuery query;
  query.place = {"/host", true};
  query.boot = std::string(32, 'b');
  query.kernel = query.journald = true;
  query.after = microseconds(5);
  query.until = microseconds(0);
  query.kernel_position = {"s=1;i=2", true};
  query.other_position = {"s=3", false};
  const std::vector<std::string> arguments = to_arguments(query);
  std::vector<const char*> texts;
  for (const std::string& argument : arguments) {
    texts.push_back(argument.c_str());
  }
  const auto parsed = parse_journal_query(texts);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(to_arguments(*parsed), arguments);
  EXPECT_EQ(parsed->place.directory, "/host");
  EXPECT_TRUE(parsed->place.is_root);
  EXPECT_TRUE(parsed->kernel && parsed->journald && !parsed->managers);
  EXPECT_EQ(parsed->until, microseconds(0));
  EXPECT_TRUE(parsed->kernel_position.unread);
  EXPECT_EQ(parsed->other_position.cursor, "s=3");
}

TEST(JournalQuery, RefusesWhatIsNoneOfIt) {
  for (const char* wrong : {"after=soon", "colour=red", "until="}) {
    EXPECT_FALSE(parse_journal_query(std::vector{wrong})) << wrong;
  }
}

}  // namespace
}  // namespace apu
