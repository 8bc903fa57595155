#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "collectors/kernel_log/source.h"
#include "exporter/descriptor.h"

namespace apu {
namespace {

constexpr const char* kName = "log_file";

// No line of the kernel comes near it; the rest of a longer one is dropped, and counted.
constexpr size_t kMaxLineBytes = 64 << 10;

// A last line without a newline counts once nothing was added for so long.
constexpr std::chrono::milliseconds kLineSettles{500};

/// Cuts what is read into lines and hands them on.
class LineFeeder {
 public:
  LineFeeder(std::string file, std::shared_ptr<const Clock> clock)
      : file_(std::move(file)), clock_(std::move(clock)) {}

  void feed(std::string_view bytes, LogSink& sink) {
    last_fed_ = std::chrono::steady_clock::now();
    while (!bytes.empty()) {
      const size_t end = bytes.find('\n');
      append(bytes.substr(0, end), sink);
      if (end == std::string_view::npos) {
        return;
      }
      finish_line(sink);
      bytes.remove_prefix(end + 1);
    }
  }

  /// Whether a line waits for its newline.
  [[nodiscard]] bool waits() const { return !partial_.empty(); }

  /// Takes a last line that has no newline, if nothing was added to it for a while.
  void settle(LogSink& sink) {
    if (!partial_.empty() && settled()) {
      finish_line(sink);
    }
  }

  /// The file ended here for good.
  void end(LogSink& sink) {
    if (!partial_.empty()) {
      finish_line(sink);
    }
    line_number_ = 0;
  }

 private:
  [[nodiscard]] bool settled() const {
    return std::chrono::steady_clock::now() - last_fed_ >= kLineSettles;
  }

  void append(std::string_view piece, LogSink& sink) {
    const size_t room = kMaxLineBytes - partial_.size();
    if (piece.size() > room && !too_long_) {
      too_long_ = true;
      sink.on_unreadable(
          kName, fmt::format("{}:{}: line over {} bytes", file_, line_number_ + 1, kMaxLineBytes));
    }
    partial_.append(piece.substr(0, room));
  }

  void finish_line(LogSink& sink) {
    ++line_number_;
    take(partial_, sink);
    partial_.clear();
    too_long_ = false;
  }

  void take(std::string_view line, LogSink& sink) const {
    if (line.empty()) {
      return;
    }
    const ParsedLine parsed = parse_log_line(line, clock_->now());
    if (parsed.kind == LineKind::kRecord) {
      hand_on(parsed.record, sink);
    } else if (parsed.kind == LineKind::kUnknown) {
      constexpr size_t kShown = 200;
      sink.on_unreadable(kName, fmt::format("{}:{}: no known format: '{}'", file_, line_number_,
                                            line.substr(0, kShown)));
    }
  }

  static void hand_on(LogRecord record, LogSink& sink) {
    const std::string plain = record.sequence ? unescape_kmsg(record.message) : std::string();
    if (record.sequence) {  // a copy of /dev/kmsg
      record.message = plain;
    }
    sink.on_record(record);
  }

  std::string file_;
  std::shared_ptr<const Clock> clock_;
  std::string partial_;
  std::uint64_t line_number_ = 0;
  bool too_long_ = false;
  std::chrono::steady_clock::time_point last_fed_;
};

class FileSource : public LogSource {
 public:
  FileSource(std::filesystem::path file, std::shared_ptr<const Clock> clock)
      : path_(std::move(file)), feeder_(path_.string(), std::move(clock)) {}

  [[nodiscard]] std::string name() const override { return kName; }

  Status drain(LogSink& sink) override {
    const bool first = !file_.valid();
    if (first) {
      if (Status error = open()) {
        return error;
      }
    }
    Status error = read_to_end(sink);
    if (!error && first && feeder_.waits()) {
      // What is there at the start counts whole, a last line without its newline too.
      std::this_thread::sleep_for(kLineSettles);
      error = read_to_end(sink);
    }
    if (error && offset_ == 0) {
      file_ = Descriptor();  // nothing was taken from it: another of that name may be better
    }
    return error ? error : follow_rotation(sink);
  }

  [[nodiscard]] std::vector<int> poll_descriptors() const override { return {}; }

 private:
  Status open() {
    file_ = Descriptor(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    offset_ = 0;
    if (!file_.valid()) {
      return error_from_errno(errno, "open " + path_.string());
    }
    return std::nullopt;
  }

  Status read_to_end(LogSink& sink) {
    std::array<char, 65536> piece{};
    while (true) {
      const ssize_t count = ::read(file_.get(), piece.data(), piece.size());
      if (count > 0) {
        offset_ += count;
        feeder_.feed({piece.data(), static_cast<size_t>(count)}, sink);
      } else if (count == 0) {
        feeder_.settle(sink);
        return std::nullopt;
      } else if (errno != EINTR) {
        return error_from_errno(errno, "read " + path_.string());
      }
    }
  }

  /// A new file of that name is read from its start, one that shrank as well. While there is no
  /// file of that name, the old one is all there is.
  Status follow_rotation(LogSink& sink) {
    struct stat opened {};

    struct stat named {};

    if (::fstat(file_.get(), &opened) != 0 || ::stat(path_.c_str(), &named) != 0) {
      return std::nullopt;
    }
    const bool replaced = opened.st_dev != named.st_dev || opened.st_ino != named.st_ino;
    const bool shrank = S_ISREG(named.st_mode) && named.st_size < offset_;
    if (!replaced && !shrank) {
      return std::nullopt;
    }
    // The writer may have gone on in the old file between its end and its replacement.
    if (Status error = read_to_end(sink)) {
      return error;
    }
    feeder_.end(sink);
    if (Status error = open()) {
      return error;
    }
    return read_to_end(sink);
  }

  std::filesystem::path path_;
  Descriptor file_;
  off_t offset_ = 0;
  LineFeeder feeder_;
};

class StdinSource : public LogSource {
 public:
  explicit StdinSource(std::shared_ptr<const Clock> clock) : feeder_("stdin", std::move(clock)) {}

  [[nodiscard]] std::string name() const override { return kName; }

  Status drain(LogSink& sink) override {
    std::array<char, 65536> piece{};
    const int silence = std::exchange(first_, false) ? kFirstSilenceMs : 0;
    while (!ended_ && readable(silence)) {
      const ssize_t count = ::read(STDIN_FILENO, piece.data(), piece.size());
      if (count > 0) {
        feeder_.feed({piece.data(), static_cast<size_t>(count)}, sink);
      } else if (count == 0) {
        feeder_.end(sink);
        ended_ = true;
      } else if (errno != EINTR) {
        return error_from_errno(errno, "read stdin");
      }
    }
    return std::nullopt;
  }

  [[nodiscard]] std::vector<int> poll_descriptors() const override {
    return ended_ ? std::vector<int>() : std::vector{STDIN_FILENO};
  }

 private:
  // What is there at the start counts whole: whoever writes it may be slower than we are. One that
  // says nothing for so long is a log that is followed.
  static constexpr int kFirstSilenceMs = 3000;

  static bool readable(int wait_ms) {
    pollfd descriptor{STDIN_FILENO, POLLIN, 0};
    return ::poll(&descriptor, 1, wait_ms) > 0;
  }

  LineFeeder feeder_;
  bool first_ = true;
  bool ended_ = false;
};

}  // namespace

std::unique_ptr<LogSource> make_file_source(const std::filesystem::path& file,
                                            std::shared_ptr<const Clock> clock) {
  return std::make_unique<FileSource>(file, std::move(clock));
}

std::unique_ptr<LogSource> make_stdin_source(std::shared_ptr<const Clock> clock) {
  return std::make_unique<StdinSource>(std::move(clock));
}

}  // namespace apu
