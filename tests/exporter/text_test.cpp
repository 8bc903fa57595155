#include "exporter/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace apu {
namespace {

using std::string_literals::operator""s;
using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  for_each_line(text, [&](std::string_view line) { lines.emplace_back(line); });
  return lines;
}

TEST(ForEachLine, VisitsALastLineWithoutANewline) {
  EXPECT_THAT(lines_of("a\nb"), ElementsAre("a", "b"));
}

TEST(ForEachLine, MakesNoEmptyLineOfAFinalNewline) {
  EXPECT_THAT(lines_of("a\nb\n"), ElementsAre("a", "b"));
}

TEST(ForEachLine, VisitsEmptyLinesBetweenOthers) {
  EXPECT_THAT(lines_of("\na\n\nb"), ElementsAre("", "a", "", "b"));
}

TEST(ForEachLine, VisitsNothingInAnEmptyText) {
  EXPECT_THAT(lines_of(""), IsEmpty());
}

TEST(Trim, RemovesBlanksAndTabsAtBothEndsOnly) {
  EXPECT_EQ(trim(" \t a b\t "), "a b");
  EXPECT_EQ(trim("\n"), "\n");
  EXPECT_EQ(trim(" \t"), "");
  EXPECT_EQ(trim(""), "");
}

TEST(SplitFields, SplitsAtRunsOfBlanksAndTabs) {
  EXPECT_THAT(split_fields("  cpu0\t 1  2 "), ElementsAre("cpu0", "1", "2"));
  EXPECT_THAT(split_fields(" \t "), IsEmpty());
}

TEST(TakeField, LeavesTheRest) {
  std::string_view rest = " some avg10=0.00";
  EXPECT_EQ(take_field(rest), "some");
  EXPECT_EQ(rest, " avg10=0.00");
  EXPECT_EQ(take_field(rest), "avg10=0.00");
  EXPECT_EQ(take_field(rest), "");
}

TEST(NumberOf, HasTheNounInItsForm) {
  EXPECT_EQ(number_of(0, "line"), "0 lines");
  EXPECT_EQ(number_of(1, "line"), "1 line");
  EXPECT_EQ(number_of(12, "OOM event"), "12 OOM events");
}

TEST(Consume, RemovesThePrefixOnlyIfItIsThere) {
  std::string_view text = "total=5";
  EXPECT_FALSE(consume(text, "avg="));
  EXPECT_EQ(text, "total=5");
  EXPECT_TRUE(consume(text, "total="));
  EXPECT_EQ(text, "5");
}

TEST(ParseNumber, TakesTheWholeTextOrNothing) {
  EXPECT_EQ(parse_number<int>("-12"), -12);
  EXPECT_EQ(parse_number<double>("0.25"), 0.25);
  EXPECT_EQ(parse_number<int>("12x"), std::nullopt);
  EXPECT_EQ(parse_number<int>(" 12"), std::nullopt);
  EXPECT_EQ(parse_number<int>(""), std::nullopt);
}

TEST(ParseNumber, KnowsWhatFits) {
  EXPECT_EQ(parse_number<std::uint64_t>("18446744073709551615"),
            std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(parse_number<std::uint64_t>("18446744073709551616"), std::nullopt);
  EXPECT_EQ(parse_number<std::uint64_t>("-1"), std::nullopt);
}

TEST(TakeUnsigned, TakesTheDigitsAndLeavesTheRest) {
  std::string_view text = "15s";
  EXPECT_EQ(take_unsigned(text), 15U);
  EXPECT_EQ(text, "s");
}

TEST(TakeUnsigned, RemovesNothingWhereItFails) {
  std::string_view no_digits = "-1";
  EXPECT_EQ(take_unsigned(no_digits), std::nullopt);
  EXPECT_EQ(no_digits, "-1");
  std::string_view too_large = "18446744073709551616";
  EXPECT_EQ(take_unsigned(too_large), std::nullopt);
  EXPECT_EQ(too_large, "18446744073709551616");
}

TEST(ToValidUtf8, KeepsValidTextOfEveryLength) {
  const std::string text = "a \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80";
  EXPECT_EQ(to_valid_utf8(text), text);
}

TEST(ToValidUtf8, ReplacesEachBadByte) {
  const std::string bad = "\xef\xbf\xbd";
  EXPECT_EQ(to_valid_utf8("a\xff"
                          "b"),
            "a" + bad + "b");
  EXPECT_EQ(to_valid_utf8("\xe2\x82"), bad + bad) << "cut off";
  EXPECT_EQ(to_valid_utf8("\xc0\x80"), bad + bad) << "overlong, two bytes";
  EXPECT_EQ(to_valid_utf8("\xe0\x9f\xbf"), bad + bad + bad) << "overlong, three bytes";
  EXPECT_EQ(to_valid_utf8("\xf0\x8f\xbf\xbf"), bad + bad + bad + bad) << "overlong, four bytes";
  EXPECT_EQ(to_valid_utf8("\xed\xa0\x80"), bad + bad + bad) << "surrogate";
  EXPECT_EQ(to_valid_utf8("\xf4\x90\x80\x80"), bad + bad + bad + bad) << "past U+10FFFF";
  EXPECT_EQ(to_valid_utf8("\x80"), bad) << "continuation alone";
}

TEST(ToValidUtf8, GoesOnRightAfterABadByte) {
  EXPECT_EQ(to_valid_utf8("\xe2name"), "\xef\xbf\xbdname");
}

TEST(ToValidUtf8, MakesControlCharactersBlanks) {
  EXPECT_EQ(to_valid_utf8("a\nb\x7f"
                          "c\0d"s),
            "a b c d");
  EXPECT_EQ(to_valid_utf8("a\xc2\x9b"
                          "b"),
            "a b")
      << "C1";
  EXPECT_EQ(to_valid_utf8("\xc2\xa0"), "\xc2\xa0") << "the first after C1";
}

TEST(UnescapeOctal, ResolvesWhatTheKernelWrites) {
  EXPECT_EQ(unescape_octal(R"(/swap\040file\134\012)"), "/swap file\\\n");
  EXPECT_EQ(unescape_octal("/plain"), "/plain");
}

TEST(UnescapeOctal, LeavesWhatIsNoOctalNumber) {
  EXPECT_EQ(unescape_octal(R"(a\04)"), R"(a\04)");
  EXPECT_EQ(unescape_octal(R"(a\089\x20)"), R"(a\089\x20)");
}

TEST(ToValidUtf8, MakesWhatTurnsOrBreaksTextBlanks) {
  for (const char* turning :
       {"\u061c", "\u200e", "\u200f", "\u2028", "\u2029", "\u202a", "\u202e", "\u2066", "\u2069"}) {
    EXPECT_EQ(to_valid_utf8(std::string("a") + turning + "b"), "a b");
  }
  for (const char* harmless : {"\u200d", "\u2027", "\u202f", "\u2065", "\u206a", "\u20ac"}) {
    EXPECT_EQ(to_valid_utf8(harmless), harmless);
  }
}

TEST(AppendWrapped, BreaksAWordThatIsLongerThanALine) {
  std::string out;
  append_wrapped(out, 10, " - ", "to abcdefghijklmnop end");
  EXPECT_EQ(out, " - to\n   abcdefg\n   hijklmn\n   op end\n");
  out.clear();
  append_wrapped(out, 8, "", "\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac");
  EXPECT_EQ(out, "\xe2\x82\xac\xe2\x82\xac\n\xe2\x82\xac\n");
}

TEST(CutText, KeepsWhatFits) {
  EXPECT_EQ(cut_text("seat", 4), "seat");
  EXPECT_EQ(cut_text("seat-0", 5), "se...");
}

TEST(CutText, NeverCutsInsideACharacter) {
  EXPECT_EQ(cut_text("a\xc3\xa4\xc3\xb6xyz", 7), "a\xc3\xa4...");
  EXPECT_EQ(cut_text("\xe2\x82\xac\xe2\x82\xac", 5), "...");
}

TEST(EscapeHtml, EscapesWhatEndsTextOrAttributes) {
  EXPECT_EQ(escape_html(R"(<a href="x" title='y'>&)"),
            "&lt;a href=&quot;x&quot; title=&#39;y&#39;&gt;&amp;");
  EXPECT_EQ(escape_html("plain"), "plain");
}

}  // namespace
}  // namespace apu
