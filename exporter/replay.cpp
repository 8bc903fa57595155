#include "exporter/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>

#include "exporter/file_root.h"
#include "exporter/log.h"
#include "exporter/text.h"

namespace apu {
namespace {

// A frame is shown until all have seen it; one that hangs must not stop the replay.
constexpr std::chrono::seconds kFrameWait{2};

Result<std::filesystem::path> make_link_directory() {
  std::string name = (std::filesystem::temp_directory_path() / "apu-replay-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) {
    return error_from_errno(errno, "create " + name);
  }
  return std::filesystem::path(name);
}

/// The numbered directories in `directory`, by number.
Result<std::vector<std::pair<std::uint64_t, std::filesystem::path>>> numbered_directories(
    const std::filesystem::path& directory) {
  const auto names = FileRoot(directory).list("");
  if (!names) {
    return names.error();
  }
  std::vector<std::pair<std::uint64_t, std::filesystem::path>> found;
  for (const std::string& name : *names) {
    if (const auto number = parse_number<std::uint64_t>(name)) {
      found.emplace_back(*number, std::filesystem::absolute(directory / name));
    }
  }
  std::sort(found.begin(), found.end());
  if (found.empty()) {
    return Error{ErrorKind::kNotFound,
                 fmt::format("{}: no numbered directory in it", directory.string())};
  }
  return found;
}

void warn_of_unseen(const std::filesystem::path& frame) {
  log::warn("Not every collector saw the frame", {{"frame", frame.string()}});
}

}  // namespace

Result<TimePoint> read_fixture_time(const std::filesystem::path& file) {
  const auto text = FileRoot(file.parent_path()).read(file.filename().string());
  if (!text) {
    return text.error();
  }
  constexpr double kLastSecond = 9e9;  // in the year 2255; TimePoint ends soon after
  const auto seconds = parse_number<double>(trim(first_line(*text)));
  if (!seconds || !(*seconds >= 0 && *seconds <= kLastSecond)) {
    return Error{ErrorKind::kMalformed, fmt::format("{}:1: not Unix seconds", file.string())};
  }
  return from_unix_seconds(*seconds);
}

Result<Replay> Replay::open(const std::filesystem::path& frames, double speed) {
  const auto directories = numbered_directories(frames);
  if (!directories) {
    return directories.error();
  }
  Replay replay;
  replay.speed_ = speed;
  for (const auto& [number, directory] : *directories) {
    const auto time = read_fixture_time(directory / "time");
    if (!time) {
      return time.error();
    }
    replay.frames_.push_back({directory, *time});
  }
  auto link_directory = make_link_directory();
  if (!link_directory) {
    return link_directory.error();
  }
  replay.link_directory_ = *link_directory;
  replay.clock_ = std::make_shared<FixedClock>(replay.frames_.front().time);
  if (const Status error = replay.show(replay.frames_.front())) {
    return *error;
  }
  return replay;
}

Replay::Replay(Replay&& other) noexcept
    : frames_(std::move(other.frames_)),
      speed_(other.speed_),
      link_directory_(std::exchange(other.link_directory_, {})),
      clock_(std::move(other.clock_)) {}

Replay& Replay::operator=(Replay&& other) noexcept {
  std::swap(frames_, other.frames_);
  std::swap(speed_, other.speed_);
  std::swap(link_directory_, other.link_directory_);
  std::swap(clock_, other.clock_);
  return *this;
}

Replay::~Replay() {
  close();
}

void Replay::close() {
  if (!link_directory_.empty()) {
    std::error_code ignored;  // a temporary directory that stays harms nobody
    std::filesystem::remove_all(link_directory_, ignored);
  }
}

std::filesystem::path Replay::root() const {
  return link_directory_ / "host";
}

std::shared_ptr<const Clock> Replay::clock() const {
  return clock_;
}

Status Replay::show(const Frame& frame) {
  const std::filesystem::path next = link_directory_ / "next";
  std::error_code error;
  std::filesystem::create_directory_symlink(frame.directory, next, error);
  if (!error) {
    std::filesystem::rename(next, root(), error);
  }
  if (error) {
    return error_from_errno(error.value(), "show frame " + frame.directory.string());
  }
  clock_->set(frame.time);
  return std::nullopt;
}

Status Replay::play(Runner& runner, bool wait) {
  // The first frame stands there since open(): the collectors' first passes see it.
  if (!runner.wait_ready(kFrameWait)) {
    warn_of_unseen(frames_.front().directory);
  }
  for (size_t i = 1; i < frames_.size(); ++i) {
    const Frame& frame = frames_[i];
    if (wait) {
      const std::chrono::duration<double> gap = frame.time - frames_[i - 1].time;
      std::this_thread::sleep_for(std::max(gap / speed_, std::chrono::duration<double>(0)));
    }
    if (Status error = show(frame)) {
      return error;
    }
    if (!runner.pass_all(kFrameWait)) {
      warn_of_unseen(frame.directory);
    }
  }
  return std::nullopt;
}

}  // namespace apu
