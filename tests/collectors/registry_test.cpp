#include "collectors/registry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <regex>
#include <set>

#include "exporter/exposition.h"
#include "tests/support/collector_files.h"
#include "tests/support/collector_host.h"

namespace apu {
namespace {

/// What all collectors say about a recorded host; one that fails says nothing.
class RecordedHost {
 public:
  explicit RecordedHost(const std::string& name) {
    const CollectorHost host(fixture_path(name));
    std::vector<CollectorSpec> specs(all_collectors().begin(), all_collectors().end());
    std::stable_sort(
        specs.begin(), specs.end(),
        [](const CollectorSpec& a, const CollectorSpec& b) { return a.stage < b.stage; });
    for (const CollectorSpec& spec : specs) {
      if (auto snapshot = spec.make(host.context(std::string(spec.name)))->collect()) {
        families[std::string(spec.name)] = snapshot->families;
        host.store->put(spec.name,
                        {std::make_shared<const Snapshot>(*std::move(snapshot)), host.clock->now(),
                         std::chrono::steady_clock::now(), spec.period});
      }
    }
  }

  [[nodiscard]] MergedFamilies merged() const {
    std::vector<const Families*> parts;
    for (const auto& [name, part] : families) {
      parts.push_back(&part);
    }
    return merge_families(parts);
  }

  std::map<std::string, Families> families;  // by collector
};

const MetricInfo* find_info(std::span<const MetricInfo> metrics, const std::string& name) {
  const auto found = std::find_if(metrics.begin(), metrics.end(),
                                  [&](const MetricInfo& info) { return info.name == name; });
  return found == metrics.end() ? nullptr : &*found;
}

std::vector<std::string_view> label_names(const prometheus::ClientMetric& metric) {
  std::vector<std::string_view> names;
  for (const auto& label : metric.label) {
    names.push_back(label.name);
  }
  return names;
}

TEST(Registry, NamesAreUniqueAndSorted) {
  const auto specs = all_collectors();
  EXPECT_FALSE(specs.empty());
  EXPECT_EQ(std::adjacent_find(specs.begin(), specs.end(),
                               [](const auto& a, const auto& b) { return a.name >= b.name; }),
            specs.end());
}

TEST(Registry, EveryCollectorHasAPeriodADeadlineAndATable) {
  using std::chrono::milliseconds;
  for (const CollectorSpec& spec : all_collectors()) {
    EXPECT_GT(spec.period, milliseconds(0)) << spec.name;
    EXPECT_GT(spec.deadline, milliseconds(0)) << spec.name;
    EXPECT_FALSE(spec.summary.empty()) << spec.name;
    EXPECT_FALSE(spec.metrics.empty()) << spec.name;
  }
}

TEST(Registry, MetricsAreNamedAndExplainedByTheRules) {
  const std::regex name_rule("(apu|process)_[a-z0-9_]*[a-z0-9]");
  const std::regex labels_rule("([a-z_]+(,[a-z_]+)*)?");
  std::set<std::string_view> names;
  for (const CollectorSpec& spec : all_collectors()) {
    for (const MetricInfo& info : spec.metrics) {
      const std::string name(info.name);
      EXPECT_TRUE(std::regex_match(name, name_rule)) << name;
      EXPECT_TRUE(std::regex_match(std::string(info.labels), labels_rule)) << name;
      EXPECT_EQ(info.type == prometheus::MetricType::Counter, name.ends_with("_total")) << name;
      EXPECT_TRUE(info.help.ends_with(')')) << name << " does not name its source";
      EXPECT_EQ(info.help.find_first_of("\n\\"), std::string_view::npos) << name;
      EXPECT_TRUE(names.insert(info.name).second) << name << " is in two tables";
    }
  }
}

TEST(Registry, EveryFamilyOfEveryRecordedHostIsInItsTable) {
  for (const std::string& fixture : fixture_names()) {
    RecordedHost host(fixture);
    for (const CollectorSpec& spec : all_collectors()) {
      for (const auto& family : host.families[std::string(spec.name)]) {
        const MetricInfo* info = find_info(spec.metrics, family.name);
        ASSERT_NE(info, nullptr) << family.name;
        EXPECT_EQ(info->type, family.type) << family.name;
        EXPECT_EQ(info->help, family.help) << family.name;
        for (const auto& metric : family.metric) {
          EXPECT_EQ(label_names(*info), label_names(metric)) << family.name;
          const bool may_be_unlimited = family.name == "apu_seat_memcg_limit_bytes";
          EXPECT_TRUE(may_be_unlimited ? !std::isnan(value_of(family, metric))
                                       : std::isfinite(value_of(family, metric)))
              << series_text(family, metric);
        }
      }
    }
    EXPECT_EQ(host.merged().conflicts, std::vector<std::string>()) << fixture;
  }
}

TEST(Registry, EveryMetricIsOnSomeRecordedHost) {
  std::set<std::string> seen;
  for (const std::string& fixture : fixture_names()) {
    for (const auto& family : RecordedHost(fixture).merged().families) {
      seen.insert(family.name);
    }
  }
  for (const CollectorSpec& spec : all_collectors()) {
    const std::set<std::string_view> elsewhere{"units", "service_users", "seat_health",
                                               "seat_ports"};
    if (elsewhere.contains(spec.name)) {
      continue;  // a host that is a directory has no D-Bus and no servers: see units_test.cpp,
                 // service_users_test.cpp and seat_health_test.cpp
    }
    for (const MetricInfo& info : spec.metrics) {
      const bool limit = info.name == "process_virtual_memory_max_bytes";  // of this shell
      EXPECT_TRUE(limit || seen.contains(std::string(info.name))) << info.name;
    }
  }
}

TEST(Registry, MetricsHaveTheValuesThatEachRecordedHostGivesForThem) {
  const std::regex row(R"(\| `(apu_[a-z_]+(?:\{[^`*]+\})?)` \| ([0-9.]+|absent) \|.*)");
  for (const std::string& fixture : fixture_names()) {
    const auto merged = RecordedHost(fixture).merged();
    const std::string readme = read_file(fixture_path(fixture) / "README.md");
    int rows = 0;
    for (std::sregex_iterator match(readme.begin(), readme.end(), row), end; match != end;
         ++match) {
      const std::string series = (*match)[1];
      const std::string value = (*match)[2];
      ++rows;
      if (value == "absent") {
        EXPECT_FALSE(value_of(merged.families, series) || has_family(merged.families, series))
            << fixture << ": " << series;
      } else {
        const double expected = std::stod(value);
        EXPECT_NEAR(value_of(merged.families, series).value_or(NAN), expected, 1e-12 * expected)
            << fixture << ": " << series;
      }
    }
    EXPECT_GT(rows, 20) << fixture;
  }
}

}  // namespace
}  // namespace apu
