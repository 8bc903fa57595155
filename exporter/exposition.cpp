#include "exporter/exposition.h"

#include <prometheus/text_serializer.h>

#include <algorithm>
#include <map>
#include <utility>

#include "exporter/text.h"

namespace apu {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;

ClientMetric clean(const ClientMetric& metric) {
  ClientMetric cleaned = metric;
  for (ClientMetric::Label& label : cleaned.label) {
    label.value = to_valid_utf8(label.value);
  }
  return cleaned;
}

bool by_labels(const ClientMetric& a, const ClientMetric& b) {
  return a.label < b.label;
}

std::string series_text(const MetricFamily& family, const ClientMetric& metric) {
  std::string text = family.name;
  for (const ClientMetric::Label& label : metric.label) {
    text += " " + label.name + "=" + label.value;
  }
  return text;
}

void drop_duplicates(MetricFamily& family, std::vector<std::string>& conflicts) {
  auto& metrics = family.metric;
  const auto same = [](const ClientMetric& a, const ClientMetric& b) { return a.label == b.label; };
  std::stable_sort(metrics.begin(), metrics.end(), by_labels);
  for (auto first = std::adjacent_find(metrics.begin(), metrics.end(), same);
       first != metrics.end(); first = std::adjacent_find(first + 1, metrics.end(), same)) {
    conflicts.push_back("duplicate series: " + series_text(family, *first));
  }
  metrics.erase(std::unique(metrics.begin(), metrics.end(), same), metrics.end());
}

void append(MetricFamily& merged, const MetricFamily& part, std::vector<std::string>& conflicts) {
  if (merged.type != part.type || merged.help != part.help) {
    conflicts.push_back("type or help differ: " + part.name);
    return;
  }
  std::transform(part.metric.begin(), part.metric.end(), std::back_inserter(merged.metric), clean);
}

}  // namespace

MergedFamilies merge_families(const std::vector<const Families*>& parts) {
  std::map<std::string_view, MetricFamily> by_name;
  MergedFamilies merged;
  for (const Families* families : parts) {
    for (const MetricFamily& part : *families) {
      const auto [found, is_new] = by_name.try_emplace(part.name);
      if (is_new) {
        found->second = {part.name, part.help, part.type, {}};
      }
      append(found->second, part, merged.conflicts);
    }
  }
  for (auto& [name, family] : by_name) {
    drop_duplicates(family, merged.conflicts);
    merged.families.push_back(std::move(family));
  }
  return merged;
}

std::string to_text(const Families& families) {
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace apu
