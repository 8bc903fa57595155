#include "collectors/kernel_log/record.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <string>

namespace apu {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::minutes;
using std::chrono::seconds;

/// 2026-07-07 19:51:30 UTC.
const TimePoint kNow = from_unix_seconds(1783453890);

TimePoint utc(int year, int month, int day, int hour = 0, int minute = 0, int second = 0) {
  std::tm calendar{};
  calendar.tm_year = year - 1900;
  calendar.tm_mon = month - 1;
  calendar.tm_mday = day;
  calendar.tm_hour = hour;
  calendar.tm_min = minute;
  calendar.tm_sec = second;
  return std::chrono::system_clock::from_time_t(::timegm(&calendar));
}

LogRecord record_of(const std::string& line, TimePoint now = kNow) {
  static std::string text;  // the record points into it
  text = line;
  const ParsedLine parsed = parse_log_line(text, now);
  EXPECT_EQ(parsed.kind, LineKind::kRecord) << line;
  return parsed.record;
}

LineKind kind_of(const std::string& line) {
  return parse_log_line(line, kNow).kind;
}

/// The local time zone of a test.
class ZonedLog : public ::testing::Test {
 protected:
  ~ZonedLog() override {
    old_ ? ::setenv("TZ", old_->c_str(), 1) : ::unsetenv("TZ");
    ::tzset();
  }

  static void set_zone(const char* zone) {
    ::setenv("TZ", zone, 1);
    ::tzset();
  }

 private:
  std::optional<std::string> old_ =
      std::getenv("TZ") != nullptr ? std::optional<std::string>(std::getenv("TZ")) : std::nullopt;
};

// --- /dev/kmsg

TEST(ParseKmsgRecord, ReadsTheHead) {
  const auto record = record_of("4,2187,12345678901,-;workqueue: a; b");
  EXPECT_EQ(record.origin, Origin::kKernel);
  EXPECT_EQ(record.sequence, 2187U);
  EXPECT_EQ(record.since_boot, microseconds(12345678901));
  EXPECT_EQ(record.time, std::nullopt);
  EXPECT_EQ(record.message, "workqueue: a; b");
}

TEST(ParseKmsgRecord, SkipsFieldsOfNewerKernels) {
  EXPECT_EQ(record_of("4,2188,1,-,caller=T26194,new=1;text").message, "text");
}

TEST(ParseKmsgRecord, ContinuationFlagIsAnOrdinaryRecord) {
  const auto record = record_of("4,2192,1,c,caller=C7;text");
  EXPECT_EQ(record.message, "text");
  EXPECT_EQ(record.sequence, 2192U);
}

TEST(ParseKmsgRecord, FacilityAboveZeroIsUserSpace) {
  for (int priority = 0; priority < 8; ++priority) {
    EXPECT_EQ(record_of(std::to_string(priority) + ",1,1,-;x").origin, Origin::kKernel);
  }
  for (const char* priority : {"8", "12", "30", "191", "18446744073709551615"}) {
    EXPECT_EQ(record_of(std::string(priority) + ",1,1,-;x").origin, Origin::kUserspace);
  }
}

TEST(ParseKmsgRecord, DictionaryLinesBelongToTheRecordAbove) {
  EXPECT_EQ(kind_of(" SUBSYSTEM=pci"), LineKind::kContinuation);
  EXPECT_EQ(kind_of(" 4,1,1,-;workqueue: forged"), LineKind::kContinuation);
}

TEST(ParseKmsgRecord, EmptyTextIsARecord) {
  EXPECT_EQ(record_of("6,1,1,-;").message, "");
}

TEST(ParseKmsgRecord, TextMayHoldAnyBytes) {
  const std::string text("\xff\x00\xfe", 3);
  EXPECT_EQ(record_of("6,1,1,-;" + text).message, text);
}

TEST(ParseKmsgRecord, HeadThatIsNoneIsUnknown) {
  for (const char* line : {"x,1,2,-;t", "4,12;t", "4,1,2;t", "4,,2,-;t", ",1,2,-;t", "4,1,-5,-;t",
                           "4,1,2,-", "4 ,1,2,-;t", "4,18446744073709551616,2,-;t"}) {
    EXPECT_EQ(kind_of(line), LineKind::kUnknown) << line;
  }
}

TEST(ParseKmsgRecord, StampThatNoUptimeReachesIsUnknown) {
  EXPECT_EQ(kind_of("4,1,9223372036854775807,-;t"), LineKind::kUnknown);
  EXPECT_EQ(kind_of("4,1,18446744073709551615,-;t"), LineKind::kUnknown);
}

// --- dmesg

TEST(ParseDmesgLine, ReadsTheStamp) {
  const auto record = record_of("[ 4000.100002] workqueue: text");
  EXPECT_EQ(record.origin, Origin::kKernel);
  EXPECT_EQ(record.since_boot, microseconds(4000100002));
  EXPECT_EQ(record.sequence, std::nullopt);
  EXPECT_EQ(record.message, "workqueue: text");
  EXPECT_EQ(record_of("[123456.000001] x").since_boot, microseconds(123456000001));
}

TEST(ParseDmesgLine, PriorityBeforeItSaysWhoWroteIt) {
  EXPECT_EQ(record_of("<4>[    1.000000] x").origin, Origin::kKernel);
  EXPECT_EQ(record_of("<12>[    1.000000] x").origin, Origin::kUserspace);
  EXPECT_EQ(record_of("<4>[    1.000000] x").message, "x");
}

TEST(ParseDmesgLine, BracketThatIsNoStampIsUnknown) {
  for (const char* line : {"[drm] text", "[1.5] text", "[    1.0000000] x", "[    1.000000 x",
                           "[-1.000000] x", "<4>text", "<4[    1.000000] x", "<x>[    1.000000] x",
                           "[18446744073709551615.000000] x", "[", ""}) {
    EXPECT_EQ(kind_of(line), LineKind::kUnknown) << line;
  }
}

// --- syslog, traditional

TEST_F(ZonedLog, TraditionalStampIsLocalTimeOfTheNewestYear) {
  set_zone("UTC");
  const auto record = record_of("Jul  4 18:18:52 host kernel: amdgpu: text");
  EXPECT_EQ(record.origin, Origin::kKernel);
  EXPECT_EQ(record.time, utc(2026, 7, 4, 18, 18, 52));
  EXPECT_EQ(record.since_boot, std::nullopt);
  EXPECT_EQ(record.message, "amdgpu: text");
}

TEST_F(ZonedLog, TraditionalStampFollowsTheZoneAndItsSummerTime) {
  set_zone("CET-1CEST,M3.5.0,M10.5.0/3");
  EXPECT_EQ(record_of("Jul  4 18:18:52 host kernel: x").time, utc(2026, 7, 4, 16, 18, 52));
  EXPECT_EQ(record_of("Jan 14 18:18:52 host kernel: x").time, utc(2026, 1, 14, 17, 18, 52));
  set_zone("PST8");
  EXPECT_EQ(record_of("Jul  4 18:18:52 host kernel: x").time, utc(2026, 7, 5, 2, 18, 52));
}

TEST_F(ZonedLog, DayMayBePaddedWithABlankOrAZeroOrNot) {
  set_zone("UTC");
  for (const char* day : {" 4", "04", "4"}) {
    EXPECT_EQ(record_of(std::string("Jul ") + day + " 18:18:52 host kernel: x").time,
              utc(2026, 7, 4, 18, 18, 52));
  }
}

TEST_F(ZonedLog, LogOfDecemberReadInJanuaryIsOfTheLastYear) {
  set_zone("UTC");
  const auto now = utc(2027, 1, 2);
  EXPECT_EQ(record_of("Dec 31 23:59:59 host kernel: x", now).time, utc(2026, 12, 31, 23, 59, 59));
  EXPECT_EQ(record_of("Jan  1 00:00:00 host kernel: x", now).time, utc(2027, 1, 1));
}

TEST_F(ZonedLog, StampUpToADayAheadIsOfTheNewYear) {
  set_zone("UTC");
  const auto now = utc(2026, 12, 31, 23, 59, 59);
  EXPECT_EQ(record_of("Jan  1 00:00:01 host kernel: x", now).time, utc(2027, 1, 1, 0, 0, 1));
  EXPECT_EQ(record_of("Jan  2 00:00:01 host kernel: x", now).time, utc(2026, 1, 2, 0, 0, 1));
  EXPECT_EQ(record_of("Jul  8 19:51:30 host kernel: x").time, kNow + hours(24));
  EXPECT_EQ(record_of("Jul  8 19:51:31 host kernel: x").time, utc(2025, 7, 8, 19, 51, 31));
}

TEST_F(ZonedLog, LeapDayIsOfTheLastLeapYear) {
  set_zone("UTC");
  for (const auto now : {utc(2024, 3, 1), utc(2025, 1, 5), utc(2025, 6, 1), utc(2027, 12, 31)}) {
    EXPECT_EQ(record_of("Feb 29 12:00:00 host kernel: x", now).time, utc(2024, 2, 29, 12));
  }
}

TEST_F(ZonedLog, KernelsOwnStampIsKeptBesideTheTexts) {
  set_zone("UTC");
  const auto record = record_of("Jul  4 18:18:52 host kernel: [  123.000004] amdgpu: text");
  EXPECT_EQ(record.since_boot, microseconds(123000004));
  EXPECT_EQ(record.time, utc(2026, 7, 4, 18, 18, 52));
  EXPECT_EQ(record.message, "amdgpu: text");
}

TEST_F(ZonedLog, AnyOtherTagIsUserSpace) {
  set_zone("UTC");
  for (const char* tag : {"systemd[1]: ", "kernel[1]: ", "kernel: kernel: ", "Kernel: ", ""}) {
    const auto record = record_of(std::string("Jul  4 18:18:52 host ") + tag + "workqueue: x");
    EXPECT_EQ(record.origin == Origin::kKernel, std::string(tag) == "kernel: kernel: ") << tag;
  }
}

TEST_F(ZonedLog, StampThatIsNoneIsUnknown) {
  set_zone("UTC");
  for (const char* line :
       {"Jul", "Jul  4", "Jul  4 18:18:52", "Jul  4 18:18:52 ", "Jul 0 18:18:52 h kernel: t",
        "Jul 32 18:18:52 h kernel: t", "Apr 31 18:18:52 h kernel: t", "Jul  4 24:18:52 h kernel: t",
        "Jul  4 18:60:52 h kernel: t", "Jul  4 18:18:61 h kernel: t", "Jul  4 18:18 h kernel: t",
        "Jul  x 18:18:52 h kernel: t", "Jul4 18:18:52 h kernel: t",
        "Jul  18446744073709551616 18:18:52 h kernel: t", "-- Boot 74a89 --", "text\r"}) {
    EXPECT_EQ(kind_of(line), LineKind::kUnknown) << line;
  }
}

// --- RFC 3339

TEST(ParseRfc3339Line, ReadsStampFractionAndZone) {
  const auto whole = utc(2026, 7, 4, 18, 18, 52);
  const std::pair<const char*, TimePoint> stamps[] = {
      {"2026-07-04T18:18:52Z", whole},
      {"2026-07-04T18:18:52+00:00", whole},
      {"2026-07-04T18:18:52.123456+00:00", whole + microseconds(123456)},
      {"2026-07-04T18:18:52.5Z", whole + microseconds(500000)},
      {"2026-07-04T18:18:52.1234567891234Z", whole + std::chrono::nanoseconds(123456789)},
      {"2026-07-04T20:18:52+02:00", whole},
      {"2026-07-05T00:03:52+05:45", whole},
      {"2026-07-04T08:48:52-09:30", whole},
      {"2024-02-29T12:00:00Z", utc(2024, 2, 29, 12)},
      {"2025-12-31T23:59:59-01:00", utc(2026, 1, 1, 0, 59, 59)}};
  for (const auto& [stamp, time] : stamps) {
    const auto record = record_of(std::string(stamp) + " host kernel: [    1.000000] text");
    EXPECT_EQ(record.time, time) << stamp;
    EXPECT_EQ(record.since_boot, seconds(1)) << stamp;
    EXPECT_EQ(record.message, "text") << stamp;
  }
}

TEST(ParseRfc3339Line, AnyOtherTagIsUserSpace) {
  EXPECT_EQ(record_of("2026-07-04T18:18:52Z host kernel: x").origin, Origin::kKernel);
  EXPECT_EQ(record_of("2026-07-04T18:18:52Z host logger: workqueue: x").origin, Origin::kUserspace);
}

TEST(ParseRfc3339Line, StampThatIsNoneIsUnknown) {
  for (const char* stamp :
       {"2026-07-04", "2026-07-04T18:18:52", "2026-07-04 18:18:52Z", "2026-13-04T18:18:52Z",
        "2026-00-04T18:18:52Z", "2026-07-00T18:18:52Z", "2026-07-32T18:18:52Z",
        "2026-07-04T24:18:52Z", "2026-07-04T18:60:52Z", "2026-07-04T18:18:61Z",
        "2026-07-04T18:18:52+2", "2026-07-04T18:18:52+02:60", "2026-07-04T18:18:52+24:00",
        "2026-07-04T18:18:52+00:18446744073709551615", "1969-07-04T18:18:52Z",
        "9999-12-31T23:59:59Z", "26-07-04T18:18:52Z", "2026-07-04T18:18:52ZZ"}) {
    EXPECT_EQ(kind_of(std::string(stamp) + " host kernel: x"), LineKind::kUnknown) << stamp;
  }
}

// --- resolve_time

TEST(ResolveTime, KernelsStampOnTopOfTheBootTimeComesFirst) {
  LogRecord record;
  EXPECT_EQ(resolve_time(record, kNow), std::nullopt);
  record.time = kNow - minutes(7);
  EXPECT_EQ(resolve_time(record, kNow), kNow - minutes(7));
  record.since_boot = seconds(90);
  EXPECT_EQ(resolve_time(record, kNow), kNow + seconds(90));
  EXPECT_EQ(resolve_time(record, std::nullopt), kNow - minutes(7));
}

TEST(LogLine, TagOfAProcessBehindADmesgStampIsUserSpace) {
  EXPECT_EQ(record_of("[    5.000000] host app[77]: amdgpu: x").origin, Origin::kUserspace);
  EXPECT_EQ(record_of("[    5.000000] usb 1-1: new device").origin, Origin::kKernel);
  EXPECT_EQ(record_of("[    5.000000] traps: app[77] trap int3").origin, Origin::kKernel);
}

TEST(LogLine, TextOfTheKernelThatLooksLikeADateStays) {
  EXPECT_EQ(record_of("Mar 10 11:00:01 host kernel: Mem 10 11:00:0 oom-kill:x").message,
            "Mem 10 11:00:0 oom-kill:x");
}

TEST(LogLine, DecodedPrioritiesOfDmesgAreKept) {
  const LogRecord error = record_of("kern  :err   : [    5.000000] amdgpu: x");
  EXPECT_EQ(error.level, 3);
  EXPECT_EQ(error.origin, Origin::kKernel);
  EXPECT_EQ(error.message, "amdgpu: x");
  EXPECT_EQ(record_of("user  :notice: [    5.000000] amdgpu: x").origin, Origin::kUserspace);
}

TEST(LogLine, PriorityOfUserSpaceIsBelievedBeforeATag) {
  EXPECT_EQ(record_of("<12>[    5.000000] kernel: amdgpu: x").origin, Origin::kUserspace);
}

}  // namespace
}  // namespace apu
