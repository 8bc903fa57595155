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

}  // namespace

Result<TimePoint> read_fixture_time(const std::filesystem::path& file) {
  const auto text = FileRoot(file.parent_path()).read(file.filename().string());
  if (!text) {
    return text.error();
  }
  const auto seconds = parse_number<double>(trim(first_line(*text)));
  if (!seconds) {
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
  TimePoint shown = frames_.front().time;
  for (const Frame& frame : frames_) {
    if (wait) {
      const std::chrono::duration<double> gap = frame.time - shown;
      std::this_thread::sleep_for(std::max(gap / speed_, std::chrono::duration<double>(0)));
    }
    shown = frame.time;
    if (Status error = show(frame)) {
      return error;
    }
    if (!runner.pass_all(kFrameWait)) {
      log::warn("Not every collector saw the frame", {{"frame", frame.directory.string()}});
    }
  }
  return std::nullopt;
}

}  // namespace apu
