#include "exporter/duration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace apu {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

milliseconds parsed(std::string_view text) {
  const auto duration = parse_duration(text);
  return duration ? *duration : milliseconds(-1);
}

TEST(ParseDuration, KnowsEveryUnit) {
  EXPECT_EQ(parsed("500ms"), milliseconds(500));
  EXPECT_EQ(parsed("15s"), seconds(15));
  EXPECT_EQ(parsed("2m"), seconds(120));
  EXPECT_EQ(parsed("1h"), hours(1));
  EXPECT_EQ(parsed("0s"), seconds(0));
}

TEST(ParseDuration, AddsUpItsParts) {
  EXPECT_EQ(parsed("1h1m30s5ms"), milliseconds(3'690'005));
}

TEST(ParseDuration, RefusesWhatIsNoDurationAndSaysHowToWriteOne) {
  for (const char* text : {"", "15", "s", "15x", "15s ", " 15s", "-15s", "15s3", "1.5s", "15S"}) {
    const auto duration = parse_duration(text);
    ASSERT_FALSE(duration) << text;
    EXPECT_EQ(duration.error().kind, ErrorKind::kMalformed);
    EXPECT_THAT(duration.error().message, HasSubstr("'" + std::string(text) + "'"));
    EXPECT_THAT(duration.error().message, HasSubstr("1m30s"));
  }
}

TEST(ParseDuration, RefusesMoreThanTenYears) {
  EXPECT_TRUE(parse_duration("87840h"));
  EXPECT_FALSE(parse_duration("87841h"));
  EXPECT_FALSE(parse_duration("87840h1ms"));
  EXPECT_FALSE(parse_duration("18446744073709551615h"));
  EXPECT_FALSE(parse_duration("144115188075855872h")) << "2^57, which overflows to 0";
  EXPECT_FALSE(parse_duration("18446744073709551616ms"));
}

TEST(FormatDuration, IsTheInverse) {
  for (const char* text : {"0s", "500ms", "15s", "1m30s", "1h", "1h1m1s1ms"}) {
    EXPECT_EQ(format_duration(parsed(text)), text);
  }
}

TEST(FormatDuration, UsesTheLargestUnits) {
  EXPECT_EQ(format_duration(seconds(90)), "1m30s");
  EXPECT_EQ(format_duration(hours(48)), "48h");
}

}  // namespace
}  // namespace apu
