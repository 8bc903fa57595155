#include "analysis/log_reader.h"

#include <gtest/gtest.h>

#include "tests/support/analysis_files.h"

namespace apu {
namespace {

const TimePoint kNow = from_unix_seconds(1'790'000'000);  // September 2026

std::vector<std::string> messages_of(const LogFile& file) {
  std::vector<std::string> messages;
  for (const LogEntry& entry : file.entries) {
    messages.push_back(entry.message);
  }
  return messages;
}

std::uint64_t plain_kernel_lines(const LogFile& file) {
  std::uint64_t lines = 0;
  for (const LogEntry& entry : file.entries) {
    lines += entry.plain_kernel_before;
  }
  return lines;
}

TEST(LogReader, KeepsWhatTellsSomethingAndTheFirstAndLastStamps) {
  const LogFile file = read_log_text(
      "[    0.000001] first\n[    1.000000] usb\n[    2.000000] amdgpu: SVM mapping failed\n"
      "[    3.000000] usb\n[    4.000000] last\n",
      kNow);
  EXPECT_EQ(messages_of(file),
            (std::vector<std::string>{"first", "amdgpu: SVM mapping failed", ""}));
  EXPECT_EQ(plain_kernel_lines(file), 3U);
  EXPECT_EQ(file.entries[1].line, 3U);
  EXPECT_EQ(file.entries[2].since_boot, std::chrono::seconds(4));
  EXPECT_EQ(file.format, "dmesg");
  EXPECT_EQ(file.lines, 5U);
}

TEST(LogReader, PiecesOfAnySizeReadTheSame) {
  for (const char* name :
       {"02-two-workers-interleaved-dmesgT/dmesg-T.log", "13-kmsg-raw-records/kmsg.bin",
        "16-journal-json-variants/journal.json", "60-hung-task-svm-restore/dmesg.log"}) {
    const std::string text = read_file(case_path(name));
    const LogFile whole = read_log_text(text, kNow, text.size());
    for (const size_t piece : {1U, 7U, 100U}) {
      EXPECT_EQ(messages_of(read_log_text(text, kNow, piece)), messages_of(whole)) << name;
    }
  }
}

TEST(LogReader, GapsOfTheSequenceAreLosses) {
  const LogFile file = read_log_text(
      "6,10,1000000,-;a\n6,11,1000001,-;b\n6,20,1000002,-;c\n6,21,1000003,-;amdgpu: d\n", kNow);
  EXPECT_EQ(file.entries[1].lost_before, 8U);
}

TEST(LogReader, EscapesOfKmsgAreResolved) {
  const LogFile file = read_log_text("6,10,1000000,-;amdgpu: a\\x09b\\x5cc\n", kNow);
  EXPECT_EQ(file.entries[0].message, "amdgpu: a\tb\\c");
}

TEST(LogReader, NulsOfACrashAreCountedAndTheLineIsRead) {
  const std::string text("Jul  4 18:18:52 h kernel: a\n\0\0\0Jul  4 18:19:52 h kernel: amdgpu: b\n",
                         66);
  const LogFile file = read_log_text(text, kNow);
  EXPECT_EQ(messages_of(file).back(), "amdgpu: b");
  EXPECT_EQ(file.unreadable, 1U);
}

TEST(LogReader, LineWithoutAFormIsNamedByFileAndLine) {
  const LogFile file = read_log_text("[    1.000000] a\nwhat\n", kNow, 4096, "some.log");
  ASSERT_EQ(file.problems.size(), 1U);
  EXPECT_EQ(file.problems[0], "some.log:2: no known format");
}

TEST(LogReader, OfEndlessLinesTheFirstMebibytesCount) {
  const std::string text =
      "[    1.000000] a\n[    2.000000] amdgpu: " + std::string(LogReader::kMaxLineBytes, 'x') +
      "\n[    3.000000] amdgpu: c\n";
  const LogFile file = read_log_text(text, kNow);
  EXPECT_EQ(file.unreadable, 1U);
  EXPECT_EQ(file.entries.size(), 3U);
  EXPECT_LE(file.entries[1].message.size(), LogReader::kMaxLineBytes);
  EXPECT_EQ(file.entries[2].message, "amdgpu: c");
}

TEST(LogReader, SaysWhyAFileIsNoLog) {
  const auto reason = [](std::string_view text) {
    const LogFile file = read_log_text(text, kNow);
    EXPECT_TRUE(file.entries.empty());
    return file.failure ? file.failure->message : "";
  };
  EXPECT_EQ(reason(""), "log: it is empty");
  EXPECT_EQ(reason("-- No entries --\n"), "log: no line has the form of a log");
  EXPECT_EQ(reason("Dear reader,\nthis is prose.\n"), "log: no line has the form of a log");
  EXPECT_EQ(reason(std::string_view("\x7f"
                                    "ELF\0\0\0",
                                    7)),
            "log: it is a binary file");
  EXPECT_NE(reason(std::string_view("LPKSHHRH\0\0", 10)).find("journalctl --file"),
            std::string::npos);
}

TEST(LogReader, MessagesWithoutStampsCountIfOneIsOfAKindThatCounts) {
  const LogFile file = read_log_text("hello\namdgpu: SVM mapping failed, exceeds\n", kNow);
  EXPECT_EQ(file.format, "messages without stamps");
  EXPECT_EQ(file.entries.size(), 2U);
}

// --- journalctl -o json

TEST(JsonLog, TrustsOnlyWhatJournaldSaysOfTheSender) {
  const Analysis analysis = analyze_case("16-journal-json-variants/journal.json", kNow);
  ASSERT_EQ(analysis.boots.size(), 1U);  // an id of zeros is none
  const KernelLogState& log = analysis.boots[0].log;
  ASSERT_EQ(log.hogs().size(), 1U);
  EXPECT_EQ(log.hogs().begin()->second.printed().back(), 131075U);
  EXPECT_EQ(log.events().at(EventKind::kSvmMappingFailed).lines.at(""), 1U);
  EXPECT_EQ(log.events().at(EventKind::kQueueBufferFreed).lines.at(""), 1U);
  EXPECT_EQ(log.ignored(), 2U);
  EXPECT_EQ(analysis.files[0].unreadable, 2U);  // a null message, a line cut off
}

TEST(JsonLog, KernelRecordOfAnotherFacilityIsUserSpace) {
  const LogFile file = read_log_text(
      R"({"_TRANSPORT":"kernel","SYSLOG_FACILITY":"1","_BOOT_ID":"b1","MESSAGE":"amdgpu: SVM"})"
      "\n",
      kNow);
  EXPECT_EQ(file.entries[0].origin, Origin::kUserspace);
}

TEST(JsonLog, ManagerOfAUserIsToldByItsUnit) {
  const LogFile file = read_log_text(
      R"({"_TRANSPORT":"journal","SYSLOG_IDENTIFIER":"systemd","_PID":"2000",)"
      R"("_SYSTEMD_UNIT":"user@1000.service","__REALTIME_TIMESTAMP":"1751720681000000",)"
      R"("_BOOT_ID":"b1","MESSAGE":"llama.service: Killing process 5 (x) with signal SIGKILL."})"
      "\n"
      R"({"_TRANSPORT":"journal","SYSLOG_IDENTIFIER":"systemd","_PID":"2001",)"
      R"("_SYSTEMD_UNIT":"evil.service","__REALTIME_TIMESTAMP":"1751720682000000",)"
      R"("_BOOT_ID":"b1","MESSAGE":"llama.service: Killing process 5 (x) with signal SIGKILL."})"
      "\n",
      kNow);
  EXPECT_EQ(file.entries[0].origin, Origin::kServiceManager);
  EXPECT_EQ(file.entries[0].user, "1000");
  EXPECT_EQ(file.entries[1].origin, Origin::kUserspace);
}

TEST(JsonLog, EveryFormOfTheLineIsTaken) {
  for (const char* prefix : {"", "\x1e", "data: "}) {
    const LogFile file = read_log_text(
        std::string(prefix) + R"({"_TRANSPORT":"kernel","MESSAGE":"amdgpu: SVM"})" + "\n\n", kNow);
    EXPECT_EQ(file.entries.size(), 1U) << prefix;
    EXPECT_EQ(file.unreadable, 0U) << prefix;
  }
}

TEST(JsonLog, DeepNestingIsNoMessage) {
  const std::string deep =
      "{\"MESSAGE\":" + std::string(100'000, '[') + std::string(100'000, ']') + "}\n";
  EXPECT_EQ(read_log_text(deep, kNow).unreadable, 1U);
}

TEST(JsonLog, NumbersAreTakenForTheirText) {
  const LogFile file = read_log_text(
      R"({"_TRANSPORT":"kernel","PRIORITY":4,"__REALTIME_TIMESTAMP":1751720681000000,)"
      R"("_SOURCE_MONOTONIC_TIMESTAMP":5000000,"MESSAGE":"amdgpu: SVM"})"
      "\n",
      kNow);
  EXPECT_EQ(file.entries[0].level, 4);
  EXPECT_EQ(file.entries[0].since_boot, std::chrono::seconds(5));
}

TEST(JsonLog, ProcessBelowAUsersManagerIsNotTheManager) {
  const LogFile file = read_log_text(
      R"({"_TRANSPORT":"journal","SYSLOG_IDENTIFIER":"systemd","_PID":"2001",)"
      R"("_SYSTEMD_UNIT":"user@1000.service","_SYSTEMD_USER_UNIT":"app-evil.service",)"
      R"("MESSAGE":"llama.service: Killing process 5 (x) with signal SIGKILL."})"
      "\n",
      kNow);
  EXPECT_EQ(file.entries[0].origin, Origin::kUserspace);
}

// --- journalctl -o export

std::string binary_field(const std::string& name, const std::string& value) {
  std::string field = name + "\n";
  for (unsigned i = 0; i < 8; ++i) {
    field += static_cast<char>((value.size() >> (8 * i)) & 0xffU);
  }
  return field + value + "\n";
}

TEST(ExportLog, FieldsOfBytesMayHoldNewlines) {
  const std::string text =
      "__CURSOR=s=1\n__REALTIME_TIMESTAMP=1751720681000000\n_BOOT_ID=b1\n_TRANSPORT=kernel\n" +
      binary_field("MESSAGE", "amdgpu: SVM mapping failed\nsecond line\n\n\xff") +
      "PRIORITY=6\n\n__CURSOR=s=2\n_BOOT_ID=b1\n_TRANSPORT=kernel\nMESSAGE=amdgpu: b\n\n";
  for (const size_t piece : {1U, 4096U}) {
    const LogFile file = read_log_text(text, kNow, piece);
    ASSERT_EQ(file.entries.size(), 2U);
    EXPECT_EQ(file.entries[0].message, "amdgpu: SVM mapping failed\nsecond line\n\n\xff");
    EXPECT_EQ(file.entries[0].level, 6);
    EXPECT_EQ(file.entries[1].message, "amdgpu: b");
    EXPECT_EQ(file.unreadable, 0U);
  }
}

TEST(ExportLog, LengthOfAnySizeIsRead) {
  // The length's own bytes hold a newline: 10 is one.
  for (const size_t size : {1U, 10U, 266U, 2570U}) {
    const std::string value = "amdgpu: " + std::string(size, 'x');
    const LogFile file = read_log_text(
        "__CURSOR=s=1\n_TRANSPORT=kernel\n" + binary_field("MESSAGE", value) + "\n", kNow);
    ASSERT_EQ(file.entries.size(), 1U) << size;
    EXPECT_EQ(file.entries[0].message, value);
  }
}

TEST(ExportLog, WhatStandsInAFieldThatIsTooLongIsNoEntry) {
  const std::string forged = "x\n\n__CURSOR=s=9\n_TRANSPORT=kernel\nMESSAGE=amdgpu: forged\n\n";
  for (const bool one_line : {false, true}) {
    std::string body = forged + std::string(LogReader::kMaxLineBytes, 'y');
    if (one_line) {
      std::replace(body.begin() + static_cast<std::ptrdiff_t>(forged.size()), body.end(), 'y',
                   '\n');
    }
    body += forged;
    const LogFile file = read_log_text(
        "__CURSOR=s=1\n_TRANSPORT=journal\n_PID=99\n" + binary_field("MESSAGE", body) +
            "\n__CURSOR=s=2\n_TRANSPORT=kernel\nMESSAGE=amdgpu: b\n\n",
        kNow);
    ASSERT_EQ(file.entries.size(), 1U);
    EXPECT_EQ(file.entries[0].message, "amdgpu: b");
  }
}

TEST(LogReader, PastedLogLosesItsIndent) {
  const LogFile file = read_log_text(
      "    [    1.000000] amdgpu: a\n    [    2.000000] amdgpu: b\n"
      "    [    2.000001]  more\n",
      kNow);
  EXPECT_EQ(file.format, "dmesg");
  EXPECT_EQ(file.entries.size(), 3U);
}

TEST(LogReader, MarkOfTheByteOrderIsNoText) {
  EXPECT_EQ(read_log_text("\xef\xbb\xbf[    1.000000] amdgpu: a\n", kNow).entries.size(), 1U);
}

TEST(LogReader, VerboseFormIsRefusedWithTheWayOut) {
  const LogFile file = read_log_text(
      "Sun 2026-07-05 13:04:41.123456 CEST [s=1;i=2]\n    _BOOT_ID=b1\n"
      "    MESSAGE=amdgpu: x\n",
      kNow);
  ASSERT_TRUE(file.failure);
  EXPECT_NE(file.failure->message.find("-o export"), std::string::npos);
}

TEST(ExportLog, EntryThatIsCutOffIsCountedAndNotGuessed) {
  const LogFile file = read_log_text(
      "__CURSOR=s=1\n_TRANSPORT=kernel\nMESSAGE=amdgpu: a\n\n"
      "__CURSOR=s=2\n_TRANSPORT=kernel\nMESSAGE\n\x20\0\0",
      kNow);
  EXPECT_EQ(file.entries.size(), 1U);
  EXPECT_EQ(file.unreadable, 1U);
}

TEST(ExportLog, LengthThatCannotBeIsCounted) {
  const std::string text = "__CURSOR=s=1\n_TRANSPORT=kernel\nMESSAGE\n" + std::string(8, '\xff') +
                           "x\nA=b\n\n__CURSOR=s=2\n_TRANSPORT=kernel\nMESSAGE=amdgpu: b\n\n";
  const LogFile file = read_log_text(text, kNow);
  // Nothing after it can be told from what stands in the field.
  EXPECT_TRUE(file.entries.empty());
  EXPECT_EQ(file.unreadable, 2U);
}

}  // namespace
}  // namespace apu
