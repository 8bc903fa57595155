#pragma once

#include <atomic>
#include <chrono>

namespace apu {

using TimePoint = std::chrono::system_clock::time_point;

/// Seconds since 1970, as the exposition has them.
double to_unix_seconds(TimePoint time);

/// The inverse of to_unix_seconds.
TimePoint from_unix_seconds(double seconds);

/// The time of day, injected so that a fixture's host lives at its own time. Ages and deadlines
/// of the exporter itself are measured by std::chrono::steady_clock instead.
class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual TimePoint now() const = 0;

  /// Time since some moment, which no step of the time of day changes: for rates of what the host
  /// counts. It stands still where the host is suspended, as CPU time does.
  [[nodiscard]] virtual std::chrono::nanoseconds monotonic() const = 0;
};

class SystemClock : public Clock {
 public:
  [[nodiscard]] TimePoint now() const override { return std::chrono::system_clock::now(); }

  [[nodiscard]] std::chrono::nanoseconds monotonic() const override {
    return std::chrono::steady_clock::now().time_since_epoch();
  }
};

/// Stands still at the time it was last set to. Safe to set and read from several threads.
class FixedClock : public Clock {
 public:
  explicit FixedClock(TimePoint time) : time_(time) {}

  [[nodiscard]] TimePoint now() const override { return time_; }

  [[nodiscard]] std::chrono::nanoseconds monotonic() const override {
    return now().time_since_epoch();
  }

  void set(TimePoint time) { time_ = time; }

 private:
  std::atomic<TimePoint> time_;
};

}  // namespace apu
