#include "collectors/pressure.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <utility>

#include "collectors/report.h"
#include "exporter/file_root.h"
#include "exporter/text.h"

namespace apu {
namespace {

using prometheus::MetricType;

constexpr std::string_view kSource = "psi";

constexpr MetricInfo kSeconds{
    "apu_pressure_stalled_seconds_total", MetricType::Counter, "resource,kind",
    "Time in which some or all non-idle tasks waited for the resource (/proc/pressure)"};
constexpr MetricInfo kRatio{
    "apu_pressure_stalled_ratio", MetricType::Gauge, "resource,kind,window",
    "Share of the window, 0 to 1, in which some or all non-idle tasks waited for the resource "
    "(/proc/pressure)"};
constexpr std::array kMetrics{kSeconds, kRatio};

// --- parse

std::optional<PressureLine> parse_line(std::string_view fields) {
  PressureLine line;
  std::array<bool, 4> seen{};
  for (auto field = take_field(fields); !field.empty(); field = take_field(fields)) {
    if (consume(field, "total=")) {
      const auto total = parse_number<std::uint64_t>(field);
      line.total_us = total.value_or(0);
      seen[3] = total.has_value();
      continue;
    }
    const std::pair<std::string_view, double*> averages[] = {
        {"avg10=", &line.avg10}, {"avg60=", &line.avg60}, {"avg300=", &line.avg300}};
    for (size_t i = 0; i < std::size(averages); ++i) {
      if (consume(field, averages[i].first)) {
        const double value = parse_number<double>(field).value_or(-1);
        *averages[i].second = value;
        seen.at(i) = std::isfinite(value) && value >= 0;  // "nan" is a number to from_chars
        break;
      }
    }
  }
  const bool complete = seen[0] && seen[1] && seen[2] && seen[3];
  return complete ? std::optional(line) : std::nullopt;
}

// --- map

void add_line(MetricWriter& metrics, std::string_view resource, std::string_view kind,
              const std::optional<PressureLine>& line) {
  constexpr double kMicroseconds = 1e-6;
  constexpr double kPercent = 0.01;
  if (!line) {
    return;
  }
  metrics.set(kSeconds, {resource, kind}, static_cast<double>(line->total_us) * kMicroseconds);
  metrics.set(kRatio, {resource, kind, "10s"}, line->avg10 * kPercent);
  metrics.set(kRatio, {resource, kind, "60s"}, line->avg60 * kPercent);
  metrics.set(kRatio, {resource, kind, "300s"}, line->avg300 * kPercent);
}

// --- collect

class PressureCollector : public Collector {
 public:
  explicit PressureCollector(const CollectorContext& context)
      : procfs_(context.roots.procfs), sources_(context.sources) {}

  Result<Snapshot> collect() override {
    PressureFacts facts;
    std::optional<Error> first_error;
    for (const char* resource : {"cpu", "memory", "io", "irq"}) {
      const std::string file = std::string("pressure/") + resource;
      const auto text = procfs_.read(file);
      if (!text) {
        first_error = first_error ? first_error : text.error();
        continue;
      }
      facts.resources.push_back({resource, parse_pressure(*text)});
      report_problems(sources_, source_, file, facts.resources.back().pressure.problems);
    }
    if (facts.resources.empty()) {
      sources_.unavailable(source_, first_error->kind);
      return *first_error;
    }
    sources_.available(source_);
    Families families = to_families(facts);
    return Snapshot{std::move(facts), std::move(families)};
  }

 private:
  FileRoot procfs_;
  SourceReporter sources_;
  std::string source_{kSource};
};

}  // namespace

Pressure parse_pressure(std::string_view text) {
  Pressure pressure;
  int line_number = 0;
  bool known = false;
  for_each_line(text, [&](std::string_view line) {
    ++line_number;
    std::string_view rest = line;
    const std::string_view kind = take_field(rest);
    if (kind != "some" && kind != "full") {
      return;
    }
    known = true;
    auto& target = kind == "some" ? pressure.some : pressure.full;
    const auto parsed = parse_line(rest);
    if (!parsed || target) {
      pressure.problems.push_back({line_number, fmt::format("malformed or repeated '{}'", line)});
      return;
    }
    target = parsed;
  });
  if (!known) {
    pressure.problems.push_back({1, "neither a 'some' nor a 'full' line"});
  }
  return pressure;
}

Families to_families(const PressureFacts& facts) {
  MetricWriter metrics;
  for (const NamedPressure& named : facts.resources) {
    add_line(metrics, named.resource, "some", named.pressure.some);
    add_line(metrics, named.resource, "full", named.pressure.full);
  }
  return metrics.take();
}

std::span<const MetricInfo> pressure_metrics() {
  return kMetrics;
}

std::unique_ptr<Collector> make_pressure_collector(const CollectorContext& context) {
  return std::make_unique<PressureCollector>(context);
}

}  // namespace apu
