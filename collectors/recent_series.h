#pragma once

#include <algorithm>
#include <chrono>
#include <deque>
#include <optional>
#include <utility>

namespace apu {

/// A value over the last minute or so, as often as it was looked at.
class RecentSeries {
 public:
  using Seconds = std::chrono::duration<double>;

  /// What lies further back than `window` is forgotten.
  explicit RecentSeries(Seconds window = Seconds(60)) : window_(window) {}

  /// `time` by Clock::monotonic. A value that is not later than the last is ignored.
  void add(std::chrono::nanoseconds time, double value) {
    if (!points_.empty() && time <= points_.back().first) {
      return;
    }
    points_.emplace_back(time, value);
    while (points_.size() > 2 && time - points_[1].first >= window_) {
      points_.pop_front();
    }
  }

  /// What it rose by over the last `window`, or a little longer; absent where it does not reach
  /// back so far.
  [[nodiscard]] std::optional<double> rise(Seconds window) const {
    const auto* before = point_before(window);
    return before != nullptr ? std::optional(points_.back().second - before->second) : std::nullopt;
  }

  /// The same a second.
  [[nodiscard]] std::optional<double> rate(Seconds window) const {
    const auto* before = point_before(window);
    return before != nullptr ? std::optional((points_.back().second - before->second) /
                                             Seconds(points_.back().first - before->first).count())
                             : std::nullopt;
  }

  /// The newest value; absent before the first.
  [[nodiscard]] std::optional<double> last() const {
    return points_.empty() ? std::nullopt : std::optional(points_.back().second);
  }

 private:
  using Point = std::pair<std::chrono::nanoseconds, double>;

  [[nodiscard]] const Point* point_before(Seconds window) const {
    const auto found = std::find_if(points_.rbegin(), points_.rend(), [&](const Point& point) {
      return points_.back().first - point.first >= window;
    });
    return found == points_.rend() ? nullptr : &*found;
  }

  Seconds window_;
  std::deque<Point> points_;
};

}  // namespace apu
