#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "collectors/kernel_log/record.h"

namespace apu {

/// How far records of one kind were read: by the sequence of /dev/kmsg where they have it, else by
/// the kernel's stamp, else by the time.
struct StreamPosition {
  std::optional<std::uint64_t> sequence;
  std::optional<std::chrono::microseconds> since_boot;  ///< the largest
  std::optional<TimePoint> time;                        ///< the latest
  std::uint64_t at_stamp = 0;  ///< records that had just this stamp, or this time
};

/// How far a log was read. Records of the kernel and those of service managers are stamped by
/// different clocks, and come in their own order each.
struct LogPosition {
  StreamPosition kernel;
  StreamPosition others;

  /// Takes a record that was read.
  void pass(const LogRecord& record, std::optional<TimePoint> time);
};

/// Tells which records of a log, read again from its start, come after a position.
class PositionFilter {
 public:
  explicit PositionFilter(const LogPosition& position) : position_(position) {}

  /// Whether `record` was not read before. Ask once for each, in the log's order.
  bool is_after(const LogRecord& record, std::optional<TimePoint> time);

  /// Records known to be missing between the position and what was asked for: by the gap in the
  /// sequence, less what came without a sequence.
  [[nodiscard]] std::uint64_t missing() const { return gap_ > filled_ ? gap_ - filled_ : 0; }

 private:
  LogPosition position_;
  std::uint64_t kernel_at_stamp_ = 0;
  std::uint64_t others_at_stamp_ = 0;
  std::uint64_t gap_ = 0;
  std::uint64_t filled_ = 0;
  bool gap_known_ = false;
};

}  // namespace apu
