#include "exporter/gzip.h"

#include <gtest/gtest.h>

#include "tests/support/gunzip.h"

namespace apu {
namespace {

TEST(Gzip, RoundTripsText) {
  EXPECT_EQ(gunzip(gzip("apu_verdict 1\n")), "apu_verdict 1\n");
}

TEST(Gzip, RoundTripsNothing) {
  EXPECT_EQ(gunzip(gzip("")), "");
}

TEST(Gzip, RoundTripsEveryByte) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) {
    bytes += static_cast<char>(i);
  }
  EXPECT_EQ(gunzip(gzip(bytes)), bytes);
}

TEST(Gzip, MakesALargePageSmaller) {
  std::string page;
  for (int i = 0; i < 20000; ++i) {
    page += "apu_seat_cpu_seconds_total{seat=\"" + std::to_string(i) + "\"} 1\n";
  }
  const std::string packed = gzip(page);
  EXPECT_LT(packed.size(), page.size() / 5);
  EXPECT_EQ(gunzip(packed), page);
}

}  // namespace
}  // namespace apu
