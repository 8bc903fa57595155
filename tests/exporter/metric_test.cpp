#include "exporter/metric.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>

namespace apu {
namespace {

using prometheus::MetricType;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr MetricInfo kPlain{"apu_plain", MetricType::Gauge, "", "A gauge (test)"};
constexpr MetricInfo kLabelled{"apu_labelled_total", MetricType::Counter, "resource,kind",
                               "A counter (test)"};

TEST(LabelNames, SplitsAtCommas) {
  EXPECT_THAT(label_names(kLabelled), ElementsAre("resource", "kind"));
  EXPECT_THAT(label_names(kPlain), IsEmpty());
}

TEST(MetricWriter, MakesAFamilyFromTheTable) {
  MetricWriter metrics;
  metrics.set(kPlain, 2.5);
  const Families families = metrics.take();
  ASSERT_THAT(families, SizeIs(1));
  EXPECT_EQ(families[0].name, "apu_plain");
  EXPECT_EQ(families[0].help, "A gauge (test)");
  EXPECT_EQ(families[0].type, MetricType::Gauge);
  ASSERT_THAT(families[0].metric, SizeIs(1));
  EXPECT_THAT(families[0].metric[0].label, IsEmpty());
  EXPECT_EQ(families[0].metric[0].gauge.value, 2.5);
}

TEST(MetricWriter, PairsLabelValuesWithNamesInOrder) {
  MetricWriter metrics;
  metrics.set(kLabelled, {"memory", "full"}, 7);
  const Families families = metrics.take();
  ASSERT_THAT(families, SizeIs(1));
  const auto& metric = families[0].metric.at(0);
  ASSERT_THAT(metric.label, SizeIs(2));
  EXPECT_EQ(metric.label[0].name, "resource");
  EXPECT_EQ(metric.label[0].value, "memory");
  EXPECT_EQ(metric.label[1].name, "kind");
  EXPECT_EQ(metric.label[1].value, "full");
  EXPECT_EQ(metric.counter.value, 7);
}

TEST(MetricWriter, GathersSamplesOfAFamilyThatAreWrittenApart) {
  MetricWriter metrics;
  metrics.set(kLabelled, {"memory", "full"}, 1);
  metrics.set(kPlain, 2);
  metrics.set(kLabelled, {"memory", "some"}, 3);
  const Families families = metrics.take();
  ASSERT_THAT(families, SizeIs(2));
  EXPECT_THAT(families[0].metric, SizeIs(2));
}

TEST(MetricWriter, WritesNothingForAnAbsentValue) {
  MetricWriter metrics;
  metrics.set(kPlain, std::optional<std::uint64_t>());
  metrics.set(kLabelled, {"memory", "full"}, std::optional<double>());
  EXPECT_THAT(metrics.take(), IsEmpty());
}

TEST(MetricWriter, WritesAPresentOptionalEvenIfItIsZero) {
  MetricWriter metrics;
  metrics.set(kPlain, std::optional<std::uint64_t>(0));
  const Families families = metrics.take();
  ASSERT_THAT(families, SizeIs(1));
  EXPECT_EQ(families[0].metric.at(0).gauge.value, 0);
}

TEST(MetricWriter, IsEmptyAfterTake) {
  MetricWriter metrics;
  metrics.set(kPlain, 1);
  metrics.take();
  EXPECT_THAT(metrics.take(), IsEmpty());
}

TEST(MetricWriter, RefusesAWrongNumberOfLabelValues) {
  MetricWriter metrics;
  EXPECT_THROW(metrics.set(kLabelled, {"memory"}, 1), std::logic_error);
  EXPECT_THROW(metrics.set(kPlain, {"memory"}, 1), std::logic_error);
}

TEST(MetricType, IsSpelledAsInTheExpositionFormat) {
  EXPECT_EQ(to_text(MetricType::Counter), "counter");
  EXPECT_EQ(to_text(MetricType::Gauge), "gauge");
}

}  // namespace
}  // namespace apu
