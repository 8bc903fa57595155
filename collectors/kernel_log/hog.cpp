#include "collectors/kernel_log/hog.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "exporter/text.h"

namespace apu {
namespace {

// The kernel's symbols and modules have shorter names.
constexpr size_t kMaxName = 512;

// The first count at which the rule before 6.9 prints.
constexpr std::uint64_t kOldFirstCount = 4;
constexpr std::uint64_t kDefaultWarningThreshold = 4;

/// Removes " [module]" from `text`.
std::string_view take_module(std::string_view& text) {
  if (!consume(text, " [")) {
    return {};
  }
  const size_t end = text.find(']');
  const std::string_view module = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return module;
}

bool is_symbol_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// The function without ".cold" or ".isra.0". An address, which the kernel prints where symbols
/// are hidden, differs at each boot and must not become a label.
std::string function_name(std::string_view printed) {
  const std::string_view name = printed.substr(0, printed.find('.'));
  const bool symbol = !name.empty() && !(name[0] >= '0' && name[0] <= '9') &&
                      std::all_of(name.begin(), name.end(), is_symbol_character);
  return symbol ? std::string(name) : "unknown";
}

double seconds_between(TimePoint from, TimePoint to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

ParsedHog parse_hog_report(std::string_view message) {
  std::string_view rest = message;
  if (!consume(rest, "workqueue: ")) {
    return {};
  }
  const std::string_view function = take_field(rest);
  const std::string_view module = take_module(rest);
  if (function.empty() || !consume(rest, " hogged CPU for >")) {
    return {};
  }
  const auto threshold = take_unsigned(rest);
  const bool unit = consume(rest, "us ");
  const auto count = take_unsigned(rest);
  if (!threshold || !unit || !count || !consume(rest, " times") || module.size() > kMaxName ||
      function.size() > kMaxName) {
    return {ParsedHog::Kind::kMalformed, {}};
  }
  return {ParsedHog::Kind::kReport,
          {function_name(function), std::string(module), *threshold, *count}};
}

std::uint64_t HogRule::snap(std::uint64_t printed) const {
  const std::uint64_t offset = warning_threshold ? *warning_threshold - 1 : 0;
  return printed > offset ? offset + std::bit_floor(printed - offset) : printed;
}

unsigned HogRule::doublings(std::uint64_t count) const {
  const std::uint64_t offset = warning_threshold ? *warning_threshold - 1 : 0;
  return count > offset ? static_cast<unsigned>(std::bit_width(count - offset) - 1) : 0;
}

std::uint64_t HogRule::next(std::uint64_t count) const {
  constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
  if (count > kMax / 2) {
    return kMax;
  }
  if (!warning_threshold) {
    return std::max(kOldFirstCount, 2 * count);
  }
  return count < *warning_threshold ? *warning_threshold : 2 * count - *warning_threshold + 1;
}

HogRule guess_hog_rule(const std::vector<std::uint64_t>& printed, const HogRule& undecided) {
  // Old counts are powers of two from 4 on, new ones 3+2^k; only 4 is both. The number may have
  // grown by a few until it was printed, so the nearer rule is meant.
  const HogRule old{std::nullopt};
  const HogRule current{kDefaultWarningThreshold};
  std::uint64_t old_distance = 0;
  std::uint64_t current_distance = 0;
  for (const std::uint64_t count : printed) {
    old_distance += count - old.snap(count);
    current_distance += count - current.snap(count);
  }
  if (old_distance == current_distance) {
    return undecided;
  }
  return old_distance < current_distance ? old : current;
}

void HogSeries::add(std::uint64_t printed, std::optional<TimePoint> time) {
  ++lines_;
  if (!reports_.empty() && printed <= reports_.back().printed) {
    if (!would_reset(printed, time)) {
      return;  // repeated, or late
    }
    reports_.clear();
    ++resets_;
  }
  if (reports_.size() == kMaxReports) {
    reports_.erase(reports_.begin() + 1);
  }
  reports_.push_back({printed, time});
  lost_since_last_ = false;
}

bool HogSeries::would_reset(std::uint64_t printed, std::optional<TimePoint> time) const {
  if (reports_.empty() || printed >= reports_.back().printed) {
    return false;
  }
  const auto last = reports_.back().time;
  return !(time && last && *time < *last);
}

std::vector<std::uint64_t> HogSeries::printed() const {
  std::vector<std::uint64_t> counts;
  for (const HogReportTime& report : reports_) {
    counts.push_back(report.printed);
  }
  return counts;
}

std::optional<TimePoint> HogSeries::last_time() const {
  return reports_.empty() ? std::nullopt : reports_.back().time;
}

std::uint64_t HogSeries::count(const HogRule& rule) const {
  return reports_.empty() ? 0 : rule.snap(reports_.back().printed);
}

std::optional<std::uint64_t> HogSeries::upper_bound(const HogRule& rule) const {
  return lost_since_last_ ? std::nullopt : std::optional(rule.next(count(rule)));
}

const HogReportTime* HogSeries::earlier_report() const {
  using std::chrono::floor;
  using std::chrono::seconds;
  const auto last = last_time();
  if (!last) {
    return nullptr;
  }
  const auto found =
      std::find_if(reports_.rbegin() + 1, reports_.rend(), [&](const HogReportTime& report) {
        return report.time && floor<seconds>(*report.time) < floor<seconds>(*last);
      });
  return found == reports_.rend() ? nullptr : &*found;
}

std::optional<double> HogSeries::rate(const HogRule& rule, TimePoint now) const {
  const HogReportTime* earlier = earlier_report();
  if (earlier == nullptr) {
    return std::nullopt;
  }
  const TimePoint last = *last_time();
  const auto counted = static_cast<double>(count(rule) - rule.snap(earlier->printed));
  const double between = counted / seconds_between(*earlier->time, last);
  const double silent = seconds_between(last, now);
  if (silent <= 0 || lost_since_last_) {
    return between;
  }
  const auto hidden = static_cast<double>(rule.next(count(rule)) - 1 - count(rule));
  return std::min(between, hidden / silent);
}

std::optional<double> HogSeries::doubling_interval(const HogRule& rule, TimePoint now) const {
  const HogReportTime* earlier = earlier_report();
  if (earlier == nullptr || count(rule) < kFirstSteadyCount) {
    return std::nullopt;
  }
  const unsigned doublings =
      rule.doublings(count(rule)) - rule.doublings(rule.snap(earlier->printed));
  const double between = seconds_between(*earlier->time, *last_time()) / std::max(doublings, 1U);
  return std::max(between, seconds_between(*last_time(), now));
}

}  // namespace apu
