#include "exporter/log.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>

#include "exporter/thread.h"

namespace apu::log {
namespace {

// Enough for a start-up burst; past it lines are dropped and their number is logged.
constexpr size_t kMaxQueuedLines = 512;

std::string_view to_text(Level level) {
  switch (level) {
    case Level::kDebug:
      return "debug";
    case Level::kInfo:
      return "info";
    case Level::kWarn:
      return "warn";
    case Level::kError:
      break;
  }
  return "error";
}

std::string time_text(std::chrono::system_clock::time_point time) {
  const auto whole = std::chrono::floor<std::chrono::seconds>(time);
  const auto millis = std::chrono::floor<std::chrono::milliseconds>(time - whole);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(whole)), millis.count());
}

std::string json_text(std::string_view text) {
  using Json = nlohmann::json;
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

bool is_bare(std::string_view value) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_-./:+@").find(c) != std::string_view::npos;
  };
  return !value.empty() && std::all_of(value.begin(), value.end(), plain);
}

std::string logfmt_value(std::string_view value) {
  return is_bare(value) ? std::string(value) : json_text(value);
}

class Logger {
 public:
  void start(Level level, Format format) {
    {
      const std::lock_guard lock(mutex_);
      level_ = level;
      format_ = format;
    }
    start_detached_thread("log", [this] { write_forever(); });
  }

  void write(Level level, std::string_view message, Fields fields) {
    const std::lock_guard lock(mutex_);
    if (level < level_) {
      return;
    }
    if (queue_.size() >= kMaxQueuedLines) {
      ++dropped_;
      return;
    }
    queue_.push_back(
        format_line(format_, std::chrono::system_clock::now(), level, message, fields));
    wake_.notify_all();
  }

  void flush(std::chrono::milliseconds max_wait) {
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, max_wait, [this] { return queue_.empty() && !writing_; });
  }

 private:
  [[noreturn]] void write_forever() {
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [this] { return !queue_.empty(); });
      std::deque<std::string> lines = std::exchange(queue_, {});
      if (const size_t dropped = std::exchange(dropped_, 0); dropped > 0) {
        lines.push_back(format_line(format_, std::chrono::system_clock::now(), Level::kWarn,
                                    "Log lines dropped", {{"count", std::to_string(dropped)}}));
      }
      writing_ = true;
      lock.unlock();
      for (const std::string& line : lines) {
        write_line(line);
      }
      lock.lock();
      writing_ = false;
      wake_.notify_all();
    }
  }

  static void write_line(std::string line) {
    line += '\n';
    std::string_view rest = line;
    while (!rest.empty()) {
      const ssize_t count = ::write(STDERR_FILENO, rest.data(), rest.size());
      if (count < 0 && errno != EINTR) {
        return;  // nobody reads stderr; there is no better place to say so
      }
      rest.remove_prefix(count > 0 ? static_cast<size_t>(count) : 0);
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::string> queue_;
  size_t dropped_ = 0;
  bool writing_ = false;
  Level level_ = Level::kInfo;
  Format format_ = Format::kLogfmt;
};

/// Never destroyed: its detached thread may outlive main.
Logger& logger() {
  static auto* const instance = new Logger;
  return *instance;
}

}  // namespace

void start(Level level, Format format) {
  logger().start(level, format);
}

void flush(std::chrono::milliseconds max_wait) {
  logger().flush(max_wait);
}

void write(Level level, std::string_view message, Fields fields) {
  logger().write(level, message, fields);
}

std::string format_line(Format format, std::chrono::system_clock::time_point time, Level level,
                        std::string_view message, Fields fields) {
  const bool json = format == Format::kJson;
  std::string line;
  const auto add = [&](std::string_view key, std::string_view value) {
    line += line.empty() ? (json ? "{" : "") : (json ? "," : " ");
    line += json ? json_text(key) + ":" + json_text(value)
                 : fmt::format("{}={}", key, logfmt_value(value));
  };
  add("ts", time_text(time));
  add("level", to_text(level));
  add("msg", message);
  for (const auto& [key, value] : fields) {
    add(key, value);
  }
  return json ? line + "}" : line;
}

}  // namespace apu::log
