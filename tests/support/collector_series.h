#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "exporter/metric.h"

namespace apu {

/// A series as the exposition writes it: name{label="value",...}, labels in the metric's order.
inline std::string series_text(const prometheus::MetricFamily& family,
                               const prometheus::ClientMetric& metric) {
  std::string labels;
  for (const auto& label : metric.label) {
    labels += (labels.empty() ? "" : ",") + label.name + "=\"" + label.value + "\"";
  }
  return family.name + (labels.empty() ? "" : "{" + labels + "}");
}

inline double value_of(const prometheus::MetricFamily& family,
                       const prometheus::ClientMetric& metric) {
  return family.type == prometheus::MetricType::Counter ? metric.counter.value : metric.gauge.value;
}

/// The value of `series`, nullopt if it is not there.
inline std::optional<double> value_of(const Families& families, std::string_view series) {
  for (const auto& family : families) {
    for (const auto& metric : family.metric) {
      if (series_text(family, metric) == series) {
        return value_of(family, metric);
      }
    }
  }
  return std::nullopt;
}

/// Whether any series has this name.
inline bool has_family(const Families& families, std::string_view name) {
  for (const auto& family : families) {
    if (family.name == name) {
      return true;
    }
  }
  return false;
}

}  // namespace apu
