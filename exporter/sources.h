#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "exporter/metric.h"
#include "exporter/result.h"

namespace apu {

/// What all collectors found out about their sources: which are there, why others are not, and
/// how much input could not be read. Outlives failed passes. Thread-safe.
class SourceBoard {
 public:
  void set_available(const std::string& collector, const std::string& source);
  void set_unavailable(const std::string& collector, const std::string& source, ErrorKind reason);

  /// Makes apu_parse_errors_total{source} exist, at 0 if it is new.
  void expect_parse_errors(const std::string& source);

  /// So many different messages of a source are worth a line in the log each hour.
  static constexpr size_t kLoggedMessages = 10;

  /// Counts one. Returns whether `message` is new and shall be logged.
  bool count_parse_error(const std::string& source, const std::string& message);

  /// Makes apu_guarded_read_timeouts_total{file} exist, at 0 if it is new.
  void expect_guarded_reads(const std::string& file);

  /// Counts a file of this kind that did not answer its guarded reader.
  void count_guarded_timeout(const std::string& file);

  /// Why the source cannot be read; nullopt if it can, or nobody has tried.
  [[nodiscard]] std::optional<ErrorKind> reason(const std::string& source) const;

  /// A source is available if no collector that uses it says otherwise.
  [[nodiscard]] Families families() const;

 private:
  using Key = std::pair<std::string, std::string>;  // source, collector

  struct ParseErrors {
    std::uint64_t count = 0;
    std::set<std::string> logged;
    std::chrono::steady_clock::time_point logged_since;
  };

  mutable std::mutex mutex_;
  std::map<Key, std::optional<ErrorKind>> states_;  // nullopt: available
  std::map<std::string, ParseErrors> parse_errors_;
  std::map<std::string, std::uint64_t> guarded_timeouts_;  // by kind of file
};

/// A collector's handle on the board. Cheap to copy, safe to use from several threads.
class SourceReporter {
 public:
  SourceReporter(std::shared_ptr<SourceBoard> board, std::string collector)
      : board_(std::move(board)), collector_(std::move(collector)) {}

  void available(const std::string& source) const;
  void unavailable(const std::string& source, ErrorKind reason) const;

  /// Why a source, of any collector, cannot be read; nullopt if it can, or nobody has tried.
  [[nodiscard]] std::optional<ErrorKind> reason(const std::string& source) const {
    return board_->reason(source);
  }

  /// Counts input of `source` that could not be read, and logs `what`, which names file and
  /// line; each message once an hour, and not too many.
  void parse_error(const std::string& source, const std::string& what) const;

  /// Files of this kind (fdinfo, cmdline) are read by a guarded reader.
  void expect_guarded_reads(const std::string& file) const;

  /// Counts a file of kind `file` that did not answer its guarded reader, and logs its `path`.
  void guarded_timeout(const std::string& file, const std::string& path) const;

  /// Notes whether the source can be read: it is available, or is not for the error's reason
  /// (kMalformed is counted as a parse error too).
  void note(const std::string& source, const Status& status) const;

  /// The same for what was read. Returns whether it came.
  template <typename T>
  [[nodiscard]] bool note(const std::string& source, const Result<T>& result) const {
    if (result) {
      available(source);
      return true;
    }
    failed(source, result.error());
    return false;
  }

 private:
  void failed(const std::string& source, const Error& error) const;

  std::shared_ptr<SourceBoard> board_;
  std::string collector_;
};

/// The metrics of SourceBoard::families.
std::span<const MetricInfo> source_metrics();

}  // namespace apu
