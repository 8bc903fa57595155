#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "exporter/collector.h"
#include "exporter/listen_address.h"
#include "exporter/log.h"
#include "exporter/roots.h"
#include "exporter/runner.h"

namespace apu {

/// What the command line and the configuration file say, checked.
struct Options {
  std::vector<ListenAddress> listen;
  std::string telemetry_path;
  unsigned max_requests = 0;  ///< 0: no limit
  std::vector<EnabledCollector> collectors;
  PathOptions paths;
  SeatOptions seats;
  CheckOptions checks;
  std::filesystem::path state_file;  ///< empty: none
  std::string kernel_log;  ///< "auto", "kmsg", "journal", a file or directory, "-" for stdin
  log::Level log_level = log::Level::kInfo;
  log::Format log_format = log::Format::kLogfmt;
  bool once = false;
  std::string format = "text";               ///< of the commands triage and check: text or json
  std::chrono::milliseconds triage_watch{};  ///< how long it looks at the host
  std::optional<std::filesystem::path> replay_frames;
  double replay_speed = 1;
};

/// What to do: run with `options`, or print and exit.
struct CommandLine {
  std::optional<Options> options;
  int exit_code = 0;
  std::string output;  ///< for stdout: --help, --version
  std::string error;   ///< for stderr: one line that names the wrong option or value
};

enum class Command { kServe, kTriage, kCheck };

/// Reads the command line and the file of --config.file, which the command line overrides.
CommandLine parse_command_line(int argc, const char* const* argv,
                               std::span<const CollectorSpec> collectors,
                               Command command = Command::kServe);

}  // namespace apu
