#include "exporter/metric.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace apu {
namespace {

void store_value(prometheus::ClientMetric& metric, prometheus::MetricType type, double value) {
  if (type == prometheus::MetricType::Counter) {
    metric.counter.value = value;
  } else {
    metric.gauge.value = value;
  }
}

}  // namespace

std::vector<std::string_view> label_names(const MetricInfo& info) {
  std::vector<std::string_view> names;
  std::string_view rest = info.labels;
  while (!rest.empty()) {
    const size_t comma = std::min(rest.find(','), rest.size());
    names.push_back(rest.substr(0, comma));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return names;
}

std::string_view to_text(prometheus::MetricType type) {
  return type == prometheus::MetricType::Counter ? "counter" : "gauge";
}

void MetricWriter::set(const MetricInfo& info, LabelValues label_values, double value) {
  const std::vector<std::string_view> names = label_names(info);
  if (names.size() != label_values.size()) {
    throw std::logic_error(fmt::format("{}: {} label values for labels '{}'", info.name,
                                       label_values.size(), info.labels));
  }
  prometheus::ClientMetric metric;
  const auto* label_value = label_values.begin();
  for (const std::string_view name : names) {
    metric.label.push_back({std::string(name), std::string(*label_value++)});
  }
  store_value(metric, info.type, value);
  family_of(info).metric.push_back(std::move(metric));
}

Families MetricWriter::take() {
  return std::exchange(families_, {});
}

prometheus::MetricFamily& MetricWriter::family_of(const MetricInfo& info) {
  // Samples of a family are mostly written in a row, so the search starts at the end.
  const auto found = std::find_if(families_.rbegin(), families_.rend(),
                                  [&](const auto& family) { return family.name == info.name; });
  if (found != families_.rend()) {
    return *found;
  }
  families_.push_back({std::string(info.name), std::string(info.help), info.type, {}});
  return families_.back();
}

}  // namespace apu
