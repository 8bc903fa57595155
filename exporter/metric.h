#pragma once

#include <prometheus/metric_family.h>

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace apu {

using Families = std::vector<prometheus::MetricFamily>;

/// What a metric is. Each collector lists its own in a constant table, from which its families
/// and the reference in docs/metrics.md are made.
struct MetricInfo {
  std::string_view name;
  prometheus::MetricType type;
  std::string_view labels;  ///< names separated by commas; empty for none
  std::string_view help;    ///< one plain line that ends with the source file in parentheses
};

/// Gathers the samples of one pass into families, one for each metric that has a sample.
class MetricWriter {
 public:
  using LabelValues = std::initializer_list<std::string_view>;

  /// Adds a sample. `label_values` stand in the order of `info.labels`.
  /// Throws std::logic_error if their number differs: a bug, which any test of the caller finds.
  void set(const MetricInfo& info, LabelValues label_values, double value);

  void set(const MetricInfo& info, double value) { set(info, {}, value); }

  /// Adds a sample if there is a value: absent is never zero.
  template <typename Number>
  void set(const MetricInfo& info, LabelValues label_values, const std::optional<Number>& value) {
    if (value) {
      set(info, label_values, static_cast<double>(*value));
    }
  }

  template <typename Number>
  void set(const MetricInfo& info, const std::optional<Number>& value) {
    set(info, {}, value);
  }

  /// The families gathered so far; the writer is empty afterwards.
  Families take();

 private:
  prometheus::MetricFamily& family_of(const MetricInfo& info);

  Families families_;
};

/// The names in a MetricInfo's `labels`.
std::vector<std::string_view> label_names(const MetricInfo& info);

/// "gauge" or "counter", as the exposition format spells it.
std::string_view to_text(prometheus::MetricType type);

}  // namespace apu
