#include "collectors/pressure.h"

#include <gtest/gtest.h>

#include "tests/support/collector_files.h"
#include "tests/support/collector_host.h"
#include "tests/support/temp_tree.h"

namespace apu {
namespace {

constexpr const char* kMemory =
    "some avg10=70.24 avg60=68.52 avg300=69.91 total=3559632828\n"
    "full avg10=57.59 avg60=58.06 avg300=60.38 total=3300487258\n";

Pressure parse_case(const std::string& file) {
  return parse_pressure(read_file(case_path("82-psi-shapes/" + file)));
}

// --- parse

TEST(ParsePressure, ReadsBothLines) {
  const auto pressure = parse_pressure(kMemory);
  EXPECT_TRUE(pressure.problems.empty());
  ASSERT_TRUE(pressure.some);
  EXPECT_EQ(pressure.some->avg10, 70.24);
  EXPECT_EQ(pressure.some->avg60, 68.52);
  EXPECT_EQ(pressure.some->avg300, 69.91);
  EXPECT_EQ(pressure.some->total_us, 3559632828U);
  ASSERT_TRUE(pressure.full);
  EXPECT_EQ(pressure.full->avg10, 57.59);
  EXPECT_EQ(pressure.full->total_us, 3300487258U);
}

TEST(ParsePressure, LineThatTheKernelDoesNotPrintIsAbsent) {
  EXPECT_TRUE(parse_case("c/proc/pressure/cpu").some);
  EXPECT_FALSE(parse_case("c/proc/pressure/cpu").full);
  EXPECT_FALSE(parse_case("d/proc/pressure/irq").some);
  EXPECT_TRUE(parse_case("d/proc/pressure/irq").full);
  EXPECT_TRUE(parse_case("d/proc/pressure/irq").problems.empty());
}

TEST(ParsePressure, ReadsTheRecordedTotals) {
  EXPECT_EQ(parse_case("a/proc/pressure/memory").some->total_us, 123456789U);
  EXPECT_EQ(parse_case("b/proc/pressure/memory").full->total_us, 3300487258U);
  EXPECT_EQ(parse_case("e/cgroup/memory.pressure").full->total_us, 0U);
}

TEST(ParsePressure, FileWithoutAKnownLineIsAProblemAndNotZero) {
  for (const char* text : {"", "\n", "none avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"}) {
    const auto pressure = parse_pressure(text);
    EXPECT_EQ(pressure.problems.size(), 1U) << text;
    EXPECT_FALSE(pressure.some) << text;
    EXPECT_FALSE(pressure.full) << text;
  }
}

TEST(ParsePressure, DamagedLineIsAbsentAndTheOtherIsRead) {
  for (const char* damaged :
       {"some", "some avg10=0.00 avg60=0.00 avg300=0.00", "some avg60=0.00 avg300=0.00 total=1",
        "some avg10=0.00 avg60=0,0x avg300=0.00 total=1",
        "some avg10=nan avg60=0.00 avg300=0.00 total=1",
        "some avg10=0.00 avg60=inf avg300=0.00 total=1",
        "some avg10=0.00 avg60=0.00 avg300=-1.00 total=1",
        "some avg10=0.00 avg60=0.00 avg300=0.00 total=1.5",
        "some avg10=0.00 avg60=0.00 avg300=0.00 total=18446744073709551616",
        "some avg10=0.00 avg60=0.00 avg300=0.00 total="}) {
    const auto pressure =
        parse_pressure(std::string("full avg10=1.00 avg60=1.00 avg300=1.00 total=9\n") + damaged);
    ASSERT_EQ(pressure.problems.size(), 1U) << damaged;
    EXPECT_EQ(pressure.problems[0].line, 2) << damaged;
    EXPECT_FALSE(pressure.some) << damaged;
    EXPECT_EQ(pressure.full->total_us, 9U) << damaged;
  }
}

TEST(ParsePressure, RepeatedLineKeepsTheFirstAndIsAProblem) {
  const auto pressure = parse_pressure(
      "some avg10=1.00 avg60=1.00 avg300=1.00 total=1\n"
      "some avg10=2.00 avg60=2.00 avg300=2.00 total=2\n");
  EXPECT_EQ(pressure.some->total_us, 1U);
  ASSERT_EQ(pressure.problems.size(), 1U);
  EXPECT_EQ(pressure.problems[0].line, 2);
}

TEST(ParsePressure, SkipsUnknownLinesAndFields) {
  const auto pressure = parse_pressure(
      "most avg10=1.00\n"
      "some avg10=1.00 avg60=1.00 avg300=1.00 avg900=x total=5 \xff=\xfe");
  EXPECT_TRUE(pressure.problems.empty());
  EXPECT_EQ(pressure.some->total_us, 5U);
}

TEST(ParsePressure, ReadsTheLargestTotal) {
  EXPECT_EQ(parse_pressure("some avg10=100.00 avg60=0.00 avg300=0.00 total=18446744073709551615")
                .some->total_us,
            18446744073709551615U);
}

// --- map

TEST(PressureFamilies, AreSecondsAndRatios) {
  const auto families = to_families({{{"memory", parse_pressure(kMemory)}}});
  EXPECT_DOUBLE_EQ(
      *value_of(families, R"(apu_pressure_stalled_seconds_total{resource="memory",kind="some"})"),
      3559.632828);
  EXPECT_DOUBLE_EQ(
      *value_of(families, R"(apu_pressure_stalled_seconds_total{resource="memory",kind="full"})"),
      3300.487258);
  const std::pair<const char*, double> ratios[] = {
      {"10s", 0.5759}, {"60s", 0.5806}, {"300s", 0.6038}};
  for (const auto& [window, ratio] : ratios) {
    EXPECT_DOUBLE_EQ(
        *value_of(families, std::string("apu_pressure_stalled_ratio{resource=\"memory\","
                                        "kind=\"full\",window=\"") +
                                window + "\"}"),
        ratio);
  }
}

TEST(PressureFamilies, AbsentLineHasNoSeries) {
  const auto families = to_families({{{"cpu", parse_case("c/proc/pressure/cpu")}}});
  EXPECT_TRUE(
      value_of(families, R"(apu_pressure_stalled_seconds_total{resource="cpu",kind="some"})"));
  EXPECT_FALSE(
      value_of(families, R"(apu_pressure_stalled_seconds_total{resource="cpu",kind="full"})"));
}

// --- collect

TEST(PressureCollector, ReadsWhatThisKernelHas) {
  const TempTree tree;
  tree.write("proc/pressure/memory", kMemory);
  tree.write("proc/pressure/irq", "full avg10=0.00 avg60=0.00 avg300=0.00 total=812345\n");
  const CollectorHost host(tree.path());
  const auto snapshot = make_pressure_collector(host.context())->collect();
  ASSERT_TRUE(snapshot);
  EXPECT_EQ(std::any_cast<const PressureFacts&>(snapshot->facts).resources.size(), 2U);
  EXPECT_TRUE(value_of(snapshot->families,
                       R"(apu_pressure_stalled_seconds_total{resource="irq",kind="full"})"));
  EXPECT_EQ(host.source(R"(apu_source_available{source="psi"})"), 1);
  EXPECT_EQ(host.parse_errors("psi"), 0);
}

TEST(PressureCollector, WithoutPsiFailsAndSaysSo) {
  const TempTree tree;
  const CollectorHost host(tree.path());
  const auto snapshot = make_pressure_collector(host.context())->collect();
  ASSERT_FALSE(snapshot);
  EXPECT_EQ(snapshot.error().kind, ErrorKind::kNotFound);
  EXPECT_EQ(host.source(R"(apu_source_unavailable_info{source="psi",reason="not_found"})"), 1);
}

TEST(PressureCollector, CountsDamagedLines) {
  const CollectorHost host(fixture_path("damaged_files"));
  const auto collector = make_pressure_collector(host.context());
  ASSERT_TRUE(collector->collect());
  EXPECT_EQ(host.parse_errors("psi"), 2);  // memory's "some" line, io without any
  ASSERT_TRUE(collector->collect());
  EXPECT_EQ(host.parse_errors("psi"), 4);
}

}  // namespace
}  // namespace apu
