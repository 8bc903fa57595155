#include "checks/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collectors/checks.h"
#include "exporter/text.h"
#include "tests/support/collector_series.h"

namespace apu {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

const Checks kChecks{
    {"swappiness", "", CheckResult::kPass, ""},
    {"hog_reports", "", CheckResult::kUnknown, "the kernel log is not read"},
    {"enabled", "llama", CheckResult::kFail, "its unit file is disabled"},
    {"unit_loaded", "llama", CheckResult::kPass, ""},
    {"wants_no_seat", "llama", CheckResult::kPass, ""},
    {"enabled", "b\x1b[31m\n\xff", CheckResult::kUnknown, "dbus\nx: no data"},
    {"stop_timeout", "b\x1b[31m\n\xff", CheckResult::kUnknown, "dbus\nx: no data"}};

TEST(CheckText, HasWhatFailsFirstAndGroupsTheRest) {
  EXPECT_EQ(to_check_text(kChecks),
            "1 of 7 checks failed, 3 not known\n"
            "FAIL     llama: enabled\n"
            "         its unit file is disabled\n"
            "unknown  host: hog_reports\n"
            "         the kernel log is not read\n"
            "unknown  b [31m \xef\xbf\xbd: enabled, stop_timeout\n"
            "         dbus x: no data\n"
            "pass     host: swappiness\n"
            "pass     llama: unit_loaded, wants_no_seat\n");
}

TEST(CheckText, KeepsToItsWidthWhateverTheNames) {
  const Check hostile{"enabled", std::string(300, 'x'), CheckResult::kFail, std::string(300, 'y')};
  for_each_line(to_check_text({hostile, kChecks[3]}), [](std::string_view line) {
    EXPECT_TRUE(line.size() <= 80 || line.find(' ', 9) == std::string_view::npos) << line;
  });
}

TEST(CheckText, SaysThatThereIsNone) {
  EXPECT_THAT(to_check_text({}), StartsWith("0 of 0 checks failed"));
}

TEST(CheckJson, HasAllOfThem) {
  const std::string json = to_check_json(kChecks);
  EXPECT_THAT(json, HasSubstr("\"fail\": 1"));
  EXPECT_THAT(json, HasSubstr("\"seat\": null"));
  EXPECT_THAT(json, HasSubstr("\"result\": \"unknown\""));
  EXPECT_EQ(json.find('\x1b'), std::string::npos);
}

TEST(CheckMetrics, LeaveOutWhatIsNotKnown) {
  const Families families = to_families(ChecksFacts{kChecks});
  EXPECT_EQ(value_of(families, "apu_host_check{check=\"swappiness\"}"), 1);
  EXPECT_FALSE(value_of(families, "apu_host_check{check=\"hog_reports\"}"));
  EXPECT_EQ(value_of(families, "apu_seat_check{seat=\"llama\",check=\"enabled\"}"), 0);
  EXPECT_EQ(value_of(families, "apu_seat_check{seat=\"llama\",check=\"unit_loaded\"}"), 1);
}

}  // namespace
}  // namespace apu
