#include "exporter/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/wait.h"

namespace apu::log {
namespace {

using std::string_literals::operator""s;
using testing::AllOf;
using testing::EndsWith;
using testing::ExitedWithCode;
using testing::HasSubstr;
using testing::Not;

constexpr std::chrono::system_clock::time_point kTime{std::chrono::milliseconds(1'700'000'000'042)};

std::string logfmt(std::string_view message, Fields fields) {
  return format_line(Format::kLogfmt, kTime, Level::kInfo, message, fields);
}

nlohmann::json json(std::string_view message, Fields fields) {
  return nlohmann::json::parse(format_line(Format::kJson, kTime, Level::kWarn, message, fields));
}

TEST(LogLevel, GrowsWithSeverity) {
  EXPECT_LT(Level::kDebug, Level::kInfo);
  EXPECT_LT(Level::kInfo, Level::kWarn);
  EXPECT_LT(Level::kWarn, Level::kError);
}

TEST(FormatLine, WritesTimeLevelMessageAndFields) {
  EXPECT_EQ(logfmt("Starting", {{"version", "0.1.0"}}),
            "ts=2023-11-14T22:13:20.042Z level=info msg=Starting version=0.1.0");
}

TEST(FormatLine, SpellsEveryLevel) {
  const std::array<std::pair<Level, const char*>, 4> levels{{{Level::kDebug, "level=debug"},
                                                             {Level::kInfo, "level=info"},
                                                             {Level::kWarn, "level=warn"},
                                                             {Level::kError, "level=error"}}};
  for (const auto& [level, text] : levels) {
    EXPECT_THAT(format_line(Format::kLogfmt, kTime, level, "x", {}), HasSubstr(text));
  }
}

TEST(FormatLine, QuotesWhatIsNoBareWord) {
  EXPECT_THAT(logfmt("Two words", {}), EndsWith(R"(msg="Two words")"));
  EXPECT_THAT(logfmt("x", {{"err", "a=b"}}), EndsWith(R"(err="a=b")"));
  EXPECT_THAT(logfmt("x", {{"err", R"(say "no" \o/)"}}), EndsWith(R"(err="say \"no\" \\o/")"));
  EXPECT_THAT(logfmt("x", {{"err", ""}}), EndsWith(R"(err="")"));
}

TEST(FormatLine, KeepsPathsAndAddressesBare) {
  EXPECT_THAT(logfmt("x", {{"address", "127.0.0.1:10151"}}), EndsWith("address=127.0.0.1:10151"));
  EXPECT_THAT(logfmt("x", {{"file", "/proc/a_b-c+1@2"}}), EndsWith("file=/proc/a_b-c+1@2"));
}

TEST(FormatLine, IsOneLineWhateverTheValue) {
  EXPECT_THAT(logfmt("x", {{"err", "a\nlevel=error\r\t\x1b[31m\0"s}}),
              EndsWith(R"(err="a\nlevel=error\r\t\u001b[31m\u0000")"));
}

TEST(FormatLine, ReplacesInvalidUtf8) {
  EXPECT_THAT(logfmt("x", {{"err",
                            "a\xff"
                            "b"}}),
              EndsWith("err=\"a\xef\xbf\xbd"
                       "b\""));
}

TEST(FormatLine, WritesJson) {
  const nlohmann::json line = json("Two words", {{"collector", "swap"}, {"err", "say \"no\"\n"}});
  EXPECT_EQ(line.size(), 5U);
  EXPECT_EQ(line.at("ts"), "2023-11-14T22:13:20.042Z");
  EXPECT_EQ(line.at("level"), "warn");
  EXPECT_EQ(line.at("msg"), "Two words");
  EXPECT_EQ(line.at("collector"), "swap");
  EXPECT_EQ(line.at("err"), "say \"no\"\n");
}

TEST(FormatLine, WritesJsonOnOneLineWhateverTheValue) {
  const std::string line = format_line(Format::kJson, kTime, Level::kInfo, "a\nb\xff", {});
  EXPECT_THAT(line, Not(HasSubstr("\n")));
  EXPECT_EQ(nlohmann::json::parse(line).at("msg"), "a\nb\xef\xbf\xbd");
}

// The logger is one a process and never ends, so what it writes is seen in processes of its own.
class LogDeathTest : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

[[noreturn]] void flush_and_exit() {
  flush(kLongWait);
  std::_Exit(0);
}

[[noreturn]] void log_at_every_level() {
  start(Level::kWarn, Format::kLogfmt);
  debug("one");
  info("two");
  warn("three");
  error("four");
  flush_and_exit();
}

TEST_F(LogDeathTest, WritesFromItsLevelOn) {
  EXPECT_EXIT(log_at_every_level(), ExitedWithCode(0),
              AllOf(Not(HasSubstr("msg=one")), Not(HasSubstr("msg=two")), HasSubstr("msg=three\n"),
                    HasSubstr("msg=four\n")));
}

[[noreturn]] void log_before_the_start() {
  warn("early");
  start(Level::kInfo, Format::kLogfmt);
  flush_and_exit();
}

TEST_F(LogDeathTest, WritesWhatWasLoggedBeforeItsStart) {
  EXPECT_EXIT(log_before_the_start(), ExitedWithCode(0), HasSubstr("msg=early\n"));
}

[[noreturn]] void log_more_than_the_queue_holds() {
  for (int i = 1; i <= 515; ++i) {
    info("line", {{"number", std::to_string(i)}});
  }
  start(Level::kInfo, Format::kLogfmt);
  flush_and_exit();
}

TEST_F(LogDeathTest, SaysHowManyLinesItDropped) {
  EXPECT_EXIT(log_more_than_the_queue_holds(), ExitedWithCode(0),
              AllOf(HasSubstr("number=512\n"), Not(HasSubstr("number=513\n")),
                    HasSubstr("msg=\"Log lines dropped\" count=3\n")));
}

[[noreturn]] void log_where_nobody_reads() {
  std::array<int, 2> pipe_ends{};
  if (::pipe(pipe_ends.data()) != 0 || ::dup2(pipe_ends[1], STDERR_FILENO) < 0) {
    std::_Exit(1);
  }
  start(Level::kInfo, Format::kLogfmt);
  for (int i = 0; i < 2000; ++i) {
    info(std::string(1000, 'x'));
  }
  flush(std::chrono::milliseconds(1));
  std::_Exit(0);
}

TEST_F(LogDeathTest, AStderrThatBlocksStopsNobody) {
  EXPECT_EXIT(log_where_nobody_reads(), ExitedWithCode(0), "");
}

}  // namespace
}  // namespace apu::log
