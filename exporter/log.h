#pragma once

#include <chrono>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

/// The exporter's own log: lines to stderr, written by one thread behind a bounded queue, so that
/// a stderr that blocks stops nobody. Never sd_journal_print or syslog(3): they cache one
/// descriptor a process, and our workers have descriptor tables of their own.
namespace apu::log {

enum class Level { kDebug, kInfo, kWarn, kError };
enum class Format { kLogfmt, kJson };

using Fields = std::initializer_list<std::pair<std::string_view, std::string_view>>;

/// Starts the writing thread. Lines logged earlier wait in the queue.
void start(Level level, Format format);

/// Waits until all that was logged has been written, `max_wait` at most.
void flush(std::chrono::milliseconds max_wait);

void write(Level level, std::string_view message, Fields fields);

inline void debug(std::string_view message, Fields fields = {}) {
  write(Level::kDebug, message, fields);
}

inline void info(std::string_view message, Fields fields = {}) {
  write(Level::kInfo, message, fields);
}

inline void warn(std::string_view message, Fields fields = {}) {
  write(Level::kWarn, message, fields);
}

inline void error(std::string_view message, Fields fields = {}) {
  write(Level::kError, message, fields);
}

/// One line without its newline, as start() would have it written. Pure.
std::string format_line(Format format, std::chrono::system_clock::time_point time, Level level,
                        std::string_view message, Fields fields);

}  // namespace apu::log
