#include "exporter/clock.h"

#include <gtest/gtest.h>

namespace apu {
namespace {

TEST(UnixSeconds, KeepFractions) {
  const TimePoint time{std::chrono::milliseconds(1'700'000'000'250)};
  EXPECT_DOUBLE_EQ(to_unix_seconds(time), 1'700'000'000.25);
  EXPECT_LT(std::chrono::abs(from_unix_seconds(1'700'000'000.25) - time),
            std::chrono::microseconds(1));
}

TEST(UnixSeconds, ReachBeforeTheEpoch) {
  EXPECT_DOUBLE_EQ(to_unix_seconds(from_unix_seconds(-1.5)), -1.5);
}

TEST(FixedClock, StandsWhereItWasSet) {
  FixedClock clock(from_unix_seconds(100));
  EXPECT_EQ(clock.now(), from_unix_seconds(100));
  EXPECT_EQ(clock.now(), from_unix_seconds(100));
  clock.set(from_unix_seconds(160));
  EXPECT_EQ(clock.now(), from_unix_seconds(160));
}

TEST(SystemClock, IsTheTimeOfDay) {
  const TimePoint before = std::chrono::system_clock::now();
  const TimePoint now = SystemClock().now();
  EXPECT_LE(before, now);
  EXPECT_LE(now, std::chrono::system_clock::now());
}

}  // namespace
}  // namespace apu
