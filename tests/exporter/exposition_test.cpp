#include "exporter/exposition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <string>

#include "collectors/registry.h"
#include "exporter/health.h"
#include "exporter/sources.h"

namespace apu {
namespace {

using prometheus::MetricType;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr MetricInfo kUsed{"apu_used_bytes", MetricType::Gauge, "device", "Bytes in use (test)"};
constexpr MetricInfo kReads{"apu_reads_total", MetricType::Counter, "device", "Reads (test)"};
constexpr MetricInfo kPlain{"apu_plain", MetricType::Gauge, "", "No labels (test)"};

Families one(const MetricInfo& info, std::string_view label_value, double value) {
  MetricWriter metrics;
  metrics.set(info, {label_value}, value);
  return metrics.take();
}

std::string page_of(const std::vector<const Families*>& parts) {
  return to_text(merge_families(parts).families);
}

TEST(MergeFamilies, MakesOneFamilyOfPartsWithTheSameName) {
  const Families first = one(kUsed, "sda", 1);
  const Families second = one(kUsed, "sdb", 2);
  const MergedFamilies merged = merge_families({&first, &second});
  EXPECT_THAT(merged.conflicts, IsEmpty());
  EXPECT_EQ(to_text(merged.families),
            "# HELP apu_used_bytes Bytes in use (test)\n"
            "# TYPE apu_used_bytes gauge\n"
            "apu_used_bytes{device=\"sda\"} 1\n"
            "apu_used_bytes{device=\"sdb\"} 2\n");
}

TEST(MergeFamilies, SortsFamiliesByNameAndSamplesByLabels) {
  const Families first = one(kUsed, "sdb", 1);
  const Families second = one(kReads, "sda", 2);
  const Families third = one(kUsed, "sda", 3);
  const MergedFamilies merged = merge_families({&first, &second, &third});
  ASSERT_THAT(merged.families, SizeIs(2));
  EXPECT_EQ(merged.families[0].name, "apu_reads_total");
  EXPECT_EQ(merged.families[1].name, "apu_used_bytes");
  EXPECT_EQ(merged.families[1].metric.at(0).label.at(0).value, "sda");
  EXPECT_EQ(merged.families[1].metric.at(1).label.at(0).value, "sdb");
}

TEST(MergeFamilies, DropsAndNamesAPartOfAnotherType) {
  MetricInfo other = kUsed;
  other.type = MetricType::Counter;
  const Families first = one(kUsed, "sda", 1);
  const Families second = one(other, "sdb", 2);
  const MergedFamilies merged = merge_families({&first, &second});
  EXPECT_THAT(merged.conflicts, ElementsAre("type or help differ: apu_used_bytes"));
  ASSERT_THAT(merged.families, SizeIs(1));
  EXPECT_EQ(merged.families[0].type, MetricType::Gauge);
  EXPECT_THAT(merged.families[0].metric, SizeIs(1));
}

TEST(MergeFamilies, DropsAndNamesAPartWithOtherHelp) {
  MetricInfo other = kUsed;
  other.help = "Something else (test)";
  const Families first = one(kUsed, "sda", 1);
  const Families second = one(other, "sdb", 2);
  const MergedFamilies merged = merge_families({&first, &second});
  EXPECT_THAT(merged.conflicts, ElementsAre("type or help differ: apu_used_bytes"));
  EXPECT_THAT(merged.families.at(0).metric, SizeIs(1));
}

TEST(MergeFamilies, DropsAndNamesTheLaterOfTwoEqualSeries) {
  const Families first = one(kUsed, "sda", 1);
  const Families second = one(kUsed, "sda", 2);
  const MergedFamilies merged = merge_families({&first, &second});
  EXPECT_THAT(merged.conflicts, ElementsAre("duplicate series: apu_used_bytes device=sda"));
  ASSERT_THAT(merged.families.at(0).metric, SizeIs(1));
  EXPECT_EQ(merged.families[0].metric[0].gauge.value, 1);
}

TEST(MergeFamilies, NamesEveryDuplicateSeries) {
  MetricWriter metrics;
  for (const char* device : {"sda", "sdb", "sda", "sdb"}) {
    metrics.set(kUsed, {device}, 1);
  }
  const Families families = metrics.take();
  const MergedFamilies merged = merge_families({&families});
  EXPECT_THAT(merged.conflicts, ElementsAre("duplicate series: apu_used_bytes device=sda",
                                            "duplicate series: apu_used_bytes device=sdb"));
  EXPECT_THAT(merged.families.at(0).metric, SizeIs(2));
}

TEST(MergeFamilies, DropsADuplicateWithoutLabels) {
  MetricWriter metrics;
  metrics.set(kPlain, 1);
  metrics.set(kPlain, 2);
  const Families families = metrics.take();
  const MergedFamilies merged = merge_families({&families});
  EXPECT_THAT(merged.conflicts, ElementsAre("duplicate series: apu_plain"));
  EXPECT_THAT(merged.families.at(0).metric, SizeIs(1));
}

TEST(MergeFamilies, CleansLabelValuesToValidUtf8) {
  const Families families = one(kUsed,
                                "a\xff\x01"
                                "b",
                                1);
  EXPECT_THAT(page_of({&families}), HasSubstr("{device=\"a\xef\xbf\xbd b\"} 1\n"));
}

TEST(MergeFamilies, FindsDuplicatesThatCleaningMade) {
  const Families first = one(kUsed, "a\xff", 1);
  const Families second = one(kUsed, "a\xfe", 2);
  const MergedFamilies merged = merge_families({&first, &second});
  EXPECT_THAT(merged.conflicts, SizeIs(1));
  EXPECT_THAT(merged.families.at(0).metric, SizeIs(1));
}

TEST(MergeFamilies, LeavesItsPartsAsTheyAre) {
  const Families part = one(kUsed, "a\xff", 1);
  merge_families({&part});
  EXPECT_EQ(part.at(0).metric.at(0).label.at(0).value, "a\xff");
}

TEST(MergeFamilies, MakesNothingOfNothing) {
  const Families none;
  EXPECT_THAT(merge_families({}).families, IsEmpty());
  EXPECT_THAT(merge_families({&none}).families, IsEmpty());
}

TEST(Exposition, EscapesQuotesAndBackslashesInLabelValues) {
  const Families families = one(kUsed, R"(a "b" \c)", 1);
  EXPECT_THAT(page_of({&families}), HasSubstr(R"({device="a \"b\" \\c"} 1)"));
}

TEST(Exposition, EscapesNewlinesInLabelValues) {
  EXPECT_THAT(to_text(one(kUsed, "a\nb", 1)), HasSubstr(R"({device="a\nb"} 1)"));
}

TEST(Exposition, PrintsALabelValueWithoutANewlineWhateverItHeld) {
  const Families families = one(kUsed, "a\napu_verdict 1", 1);
  EXPECT_THAT(page_of({&families}), HasSubstr("{device=\"a apu_verdict 1\"} 1\n"));
}

TEST(Exposition, PrintsCounters) {
  const Families families = one(kReads, "sda", 3);
  EXPECT_THAT(page_of({&families}),
              HasSubstr("# TYPE apu_reads_total counter\napu_reads_total{device=\"sda\"} 3\n"));
}

TEST(Exposition, PrintsLargeNumbersExactly) {
  const Families families = one(kUsed, "sda", 9007199254740991.0);
  EXPECT_THAT(page_of({&families}), HasSubstr("} 9007199254740991\n"));
}

TEST(Exposition, PrintsInfinity) {
  const Families families = one(kUsed, "sda", std::numeric_limits<double>::infinity());
  EXPECT_THAT(page_of({&families}), HasSubstr("} +Inf\n"));
}

/// Every metric of the code, with who has it.
std::vector<std::pair<std::string, MetricInfo>> all_metrics() {
  std::vector<std::pair<std::string, MetricInfo>> all;
  const auto add = [&](std::string_view owner, std::span<const MetricInfo> metrics) {
    for (const MetricInfo& metric : metrics) {
      all.emplace_back(owner, metric);
    }
  };
  for (const CollectorSpec& spec : all_collectors()) {
    add(spec.name, spec.metrics);
  }
  add("sources", source_metrics());
  add("health", health_metrics());
  return all;
}

bool is_name(std::string_view name) {
  return !name.empty() &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string_view::npos;
}

TEST(EveryMetric, IsThere) {
  EXPECT_GT(all_metrics().size(), 20U);
}

TEST(EveryMetric, HasAPlainNameOfOursAndPlainLabels) {
  for (const auto& [owner, metric] : all_metrics()) {
    EXPECT_TRUE(is_name(metric.name)) << owner << ": " << metric.name;
    EXPECT_TRUE(metric.name.starts_with("apu_") ||
                (owner == "process" && metric.name.starts_with("process_")))
        << owner << ": " << metric.name;
    for (const std::string_view label : label_names(metric)) {
      EXPECT_TRUE(is_name(label)) << metric.name << ": '" << label << "'";
    }
  }
}

TEST(EveryMetric, HasHelpOnOnePlainLine) {
  for (const auto& [owner, metric] : all_metrics()) {
    EXPECT_FALSE(metric.help.empty()) << metric.name;
    EXPECT_EQ(metric.help.find_first_of("\\\n\r"), std::string_view::npos)
        << metric.name << ": the serializer does not escape it";
    EXPECT_TRUE(metric.help.ends_with(')')) << metric.name << ": no source at the end";
  }
}

TEST(EveryMetric, EndsInTotalIfAndOnlyIfItIsACounter) {
  for (const auto& [owner, metric] : all_metrics()) {
    EXPECT_TRUE(metric.type == MetricType::Counter || metric.type == MetricType::Gauge)
        << metric.name;
    EXPECT_EQ(metric.name.ends_with("_total"), metric.type == MetricType::Counter) << metric.name;
  }
}

TEST(EveryMetric, IsTheSameWhereverItIsListed) {
  std::map<std::string_view, MetricInfo> known;
  std::map<std::pair<std::string, std::string_view>, int> listed;
  for (const auto& [owner, metric] : all_metrics()) {
    const auto [found, is_new] = known.try_emplace(metric.name, metric);
    EXPECT_EQ(found->second.type, metric.type) << metric.name;
    EXPECT_EQ(found->second.help, metric.help) << metric.name;
    EXPECT_EQ(found->second.labels, metric.labels) << metric.name;
    EXPECT_EQ((++listed[{owner, metric.name}]), 1) << owner << ": " << metric.name;
  }
}

}  // namespace
}  // namespace apu
