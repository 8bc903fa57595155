#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <vector>

#include "exporter/clock.h"
#include "exporter/result.h"
#include "exporter/runner.h"

namespace apu {

/// The Unix seconds in a fixture's `time` file.
Result<TimePoint> read_fixture_time(const std::filesystem::path& file);

/// Plays a directory of numbered hosts, each with its own `time`, as one host whose time goes on:
/// DIR/0001, DIR/0002, ... in the order of their numbers. A frame's kernel.log holds what is new
/// in that frame. Collectors read through a symbolic link that is moved from frame to frame.
class Replay {
 public:
  /// Errors: no frame in `frames`, a frame without a valid `time`, no room for the link.
  static Result<Replay> open(const std::filesystem::path& frames, double speed);

  Replay(Replay&& other) noexcept;
  Replay& operator=(Replay&& other) noexcept;
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;
  ~Replay();

  /// Removes the link; nothing below root() can be read afterwards.
  void close();

  /// The root to read; the first frame already stands there.
  [[nodiscard]] std::filesystem::path root() const;
  [[nodiscard]] std::shared_ptr<const Clock> clock() const;

  /// Has every collector see each remaining frame once, frame time divided by speed apart; with
  /// `wait` false as fast as the passes go. Returns after the last frame, which stays.
  Status play(Runner& runner, bool wait);

 private:
  struct Frame {
    std::filesystem::path directory;
    TimePoint time;
  };

  Replay() = default;
  Status show(const Frame& frame);

  std::vector<Frame> frames_;
  double speed_ = 1;
  std::filesystem::path link_directory_;
  std::shared_ptr<FixedClock> clock_;
};

}  // namespace apu
