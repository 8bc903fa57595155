#include "exporter/sources.h"

#include <array>

#include "exporter/log.h"

namespace apu {
namespace {

using prometheus::MetricType;

constexpr MetricInfo kAvailable{"apu_source_available", MetricType::Gauge, "source",
                                "1 if the source of data can be read, 0 if not; the reason is in "
                                "apu_source_unavailable_info (exporter)"};
constexpr MetricInfo kUnavailable{"apu_source_unavailable_info", MetricType::Gauge, "source,reason",
                                  "1, only while the source cannot be read (exporter)"};
constexpr MetricInfo kParseErrors{"apu_parse_errors_total", MetricType::Counter, "source",
                                  "Pieces of input that could not be read (exporter)"};
constexpr MetricInfo kGuardedTimeouts{"apu_guarded_read_timeouts_total", MetricType::Counter,
                                      "file",
                                      "Files of /proc/PID that did not answer in time, 2 s at "
                                      "most; the process is left out for a while "
                                      "(exporter)"};
constexpr std::array kMetrics{kAvailable, kUnavailable, kParseErrors, kGuardedTimeouts};

}  // namespace

std::span<const MetricInfo> source_metrics() {
  return kMetrics;
}

void SourceBoard::set_available(const std::string& collector, const std::string& source) {
  const std::lock_guard lock(mutex_);
  states_[{source, collector}] = std::nullopt;
}

void SourceBoard::set_unavailable(const std::string& collector, const std::string& source,
                                  ErrorKind reason) {
  const std::lock_guard lock(mutex_);
  states_[{source, collector}] = reason;
}

void SourceBoard::expect_parse_errors(const std::string& source) {
  const std::lock_guard lock(mutex_);
  parse_errors_.try_emplace(source);
}

bool SourceBoard::count_parse_error(const std::string& source, const std::string& message) {
  const std::lock_guard lock(mutex_);
  ParseErrors& errors = parse_errors_[source];
  errors.count += 1;
  const auto now = std::chrono::steady_clock::now();
  if (now - errors.logged_since > std::chrono::hours(1)) {
    errors.logged.clear();
    errors.logged_since = now;
  }
  return errors.logged.size() < kLoggedMessages && errors.logged.insert(message).second;
}

void SourceBoard::expect_guarded_reads(const std::string& file) {
  const std::lock_guard lock(mutex_);
  guarded_timeouts_.try_emplace(file);
}

void SourceBoard::count_guarded_timeout(const std::string& file) {
  const std::lock_guard lock(mutex_);
  guarded_timeouts_[file] += 1;
}

std::optional<ErrorKind> SourceBoard::reason(const std::string& source) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [key, state] : states_) {
    if (key.first == source && state) {
      return state;
    }
  }
  return std::nullopt;
}

Families SourceBoard::families() const {
  const std::lock_guard lock(mutex_);
  std::map<std::string, std::optional<ErrorKind>> merged;
  for (const auto& [key, state] : states_) {
    auto& source = merged.try_emplace(key.first, std::nullopt).first->second;
    source = source ? source : state;
  }
  MetricWriter metrics;
  for (const auto& [source, reason] : merged) {
    metrics.set(kAvailable, {source}, reason ? 0 : 1);
    if (reason) {
      metrics.set(kUnavailable, {source, to_label(*reason)}, 1);
    }
  }
  for (const auto& [source, errors] : parse_errors_) {
    metrics.set(kParseErrors, {source}, static_cast<double>(errors.count));
  }
  for (const auto& [file, count] : guarded_timeouts_) {
    metrics.set(kGuardedTimeouts, {file}, static_cast<double>(count));
  }
  return metrics.take();
}

void SourceReporter::available(const std::string& source) const {
  board_->set_available(collector_, source);
  board_->expect_parse_errors(source);
}

void SourceReporter::unavailable(const std::string& source, ErrorKind reason) const {
  board_->set_unavailable(collector_, source, reason);
}

void SourceReporter::parse_error(const std::string& source, const std::string& what) const {
  constexpr size_t kShownBytes = 300;  // it may quote a whole file
  const std::string message = what.substr(0, kShownBytes);
  if (board_->count_parse_error(source, message)) {
    log::warn("Input could not be read", {{"collector", collector_}, {"err", message}});
  }
}

void SourceReporter::expect_guarded_reads(const std::string& file) const {
  board_->expect_guarded_reads(file);
}

void SourceReporter::guarded_timeout(const std::string& file, const std::string& path) const {
  board_->count_guarded_timeout(file);
  log::warn("A file does not answer, its process is left out for a while",
            {{"collector", collector_}, {"path", path}});
}

void SourceReporter::note(const std::string& source, const Status& status) const {
  if (status) {
    failed(source, *status);
  } else {
    available(source);
  }
}

void SourceReporter::failed(const std::string& source, const Error& error) const {
  unavailable(source, error.kind);
  if (error.kind == ErrorKind::kMalformed) {
    parse_error(source, error.message);
  }
}

}  // namespace apu
