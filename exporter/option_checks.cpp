#include "exporter/option_checks.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>

#include "exporter/duration.h"
#include "exporter/listen_address.h"

namespace apu {
namespace {

constexpr std::chrono::milliseconds kShortestPeriod{100};

template <typename T>
std::string message_of(const Result<T>& result) {
  return result ? std::string() : result.error().message;
}

}  // namespace

std::string check_listen_address(const std::string& text) {
  return message_of(parse_listen_address(text));
}

std::string check_telemetry_path(const std::string& path) {
  const bool usable = path.starts_with('/') && !path.starts_with("/-/") &&
                      path.find_first_of("?# ") == std::string::npos && path != "/triage";
  return usable ? "" : fmt::format("'{}' is not an absolute path outside /-/, or is /triage", path);
}

std::string check_period(const std::string& text) {
  const auto period = parse_duration(text);
  if (!period) {
    return period.error().message;
  }
  return *period >= kShortestPeriod ? "" : fmt::format("'{}' is shorter than 100ms", text);
}

std::string check_duration(const std::string& text) {
  return message_of(parse_duration(text));
}

std::string check_kernel_log(const std::string& choice) {
  if (choice == "/proc/kmsg") {
    return "'/proc/kmsg': reading it takes the lines from others: use kmsg";
  }
  return choice.empty() ? "needs auto, kmsg, journal, a file, a directory or -" : "";
}

std::string check_directory(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error) ? ""
                                                    : fmt::format("'{}' is no directory", path);
}

/// fnmatch takes a bracket that is not closed for a character of the name, which nobody means.
std::string check_pattern(const std::string& pattern) {
  const size_t open = pattern.find('[');
  const bool closed = open == std::string::npos || pattern.find(']', open + 2) != std::string::npos;
  if (pattern.empty() || !closed) {
    return fmt::format("'{}' is no pattern: {}", pattern,
                       pattern.empty() ? "it is empty" : "its '[' is not closed");
  }
  return "";
}

}  // namespace apu
