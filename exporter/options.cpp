#include "exporter/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <set>
#include <utility>

#include "exporter/config_file.h"
#include "exporter/duration.h"
#include "exporter/health.h"
#include "exporter/option_checks.h"

namespace apu {
namespace {

constexpr int kUsageError = 2;
constexpr std::string_view kProgram = "apu_exporter";
constexpr std::string_view kDefaultAddress = ":10151";

// More threads than any scraper needs, and few enough to fit under a unit's TasksMax.
constexpr unsigned kMaxMaxRequests = 1000;

/// What CLI11 fills in for one collector.
struct CollectorFlags {
  bool enabled = false;
  CLI::Option* switched = nullptr;
  std::string period;
};

/// What CLI11 fills in, still unchecked across options.
struct RawOptions {
  std::vector<std::string> listen;
  std::string telemetry_path = "/metrics";
  unsigned max_requests = 40;
  bool disable_exporter_metrics = false;
  bool disable_defaults = false;
  std::deque<CollectorFlags> collectors;  // CLI11 keeps references: a deque does not move them
  std::map<std::string, std::string> paths;
  std::string kernel_log = "auto";
  std::string state_file;
  SeatOptions seats;
  std::string log_level = "info";
  std::string log_format = "logfmt";
  std::string config_file;
  std::string replay_frames;
  double replay_speed = 1;
  bool once = false;
  CheckOptions checks;
  std::string format = "text";
  std::string triage_watch = "12s";
};

void add_web_options(CLI::App& app, RawOptions& raw) {
  app.add_option("--web.listen-address", raw.listen,
                 fmt::format("IPv4 address to listen on, host:port or :port; repeatable ({})",
                             kDefaultAddress))
      ->type_name("ADDRESS")
      ->allow_extra_args(false)
      ->check(check_listen_address)
      ->group("Web");
  app.add_option("--web.telemetry-path", raw.telemetry_path, "Path of the metrics")
      ->capture_default_str()
      ->type_name("PATH")
      ->check(check_telemetry_path)
      ->group("Web");
  app.add_option("--web.max-requests", raw.max_requests, "Most scrapes at a time; 0 for no limit")
      ->capture_default_str()
      ->type_name("N")
      ->check(CLI::Range(0U, kMaxMaxRequests))
      ->group("Web");
  app.add_flag("--web.disable-exporter-metrics", raw.disable_exporter_metrics,
               "Leave out metrics about the exporter itself (process_*)")
      ->group("Web");
}

void add_collector_options(CLI::App& app, RawOptions& raw,
                           std::span<const CollectorSpec> collectors) {
  app.add_flag("--collector.disable-defaults", raw.disable_defaults,
               "Run only the collectors that are switched on by --collector.NAME")
      ->group("Collectors");
  for (const CollectorSpec& spec : collectors) {
    CollectorFlags& flags = raw.collectors.emplace_back();
    flags.switched =
        app.add_flag(fmt::format("--collector.{0},!--no-collector.{0}", spec.name), flags.enabled,
                     fmt::format("{} ({})", spec.summary, spec.enabled_by_default ? "on" : "off"))
            ->group("Collectors");
    app.add_option(fmt::format("--collector.{}.period", spec.name), flags.period,
                   fmt::format("Time between its passes ({})", format_duration(spec.period)))
        ->type_name("DURATION")
        ->check(check_period)
        ->group("Collectors");
  }
}

void add_path_options(CLI::App& app, RawOptions& raw) {
  constexpr std::pair<std::string_view, std::string_view> kPaths[] = {
      {"rootfs", "Where the host's root is seen; the others follow from it (/)"},
      {"procfs", "proc (ROOTFS/proc)"},
      {"sysfs", "sysfs (ROOTFS/sys)"},
      {"debugfs", "debugfs (SYSFS/kernel/debug)"},
      {"cgroupfs", "cgroup v2 (SYSFS/fs/cgroup)"},
      {"kmsg", "kernel log device (ROOTFS/dev/kmsg)"},
      {"journal", "journal directory (ROOTFS/var/log/journal and ROOTFS/run/log/journal)"}};
  for (const auto& [name, help] : kPaths) {
    auto* option = app.add_option(fmt::format("--path.{}", name), raw.paths[std::string(name)],
                                  std::string(help))
                       ->type_name("PATH")
                       ->group("Paths");
    if (name == "rootfs" || name == "procfs" || name == "sysfs") {
      option->check(check_directory);  // the others may be mounted later
    }
  }
}

void add_log_options(CLI::App& app, RawOptions& raw) {
  app.add_option("--kernel-log", raw.kernel_log,
                 "Kernel log to read: auto (kmsg and the journal), kmsg, journal, a file (followed "
                 "over rotation), a directory of journal files, - for stdin")
      ->capture_default_str()
      ->type_name("SOURCE")
      ->check(check_kernel_log);
  app.add_option("--state.file", raw.state_file,
                 "File in which the kernel log's counts outlast a restart, where the log does not "
                 "reach back to the boot; none by default")
      ->take_last()
      ->type_name("FILE");
  app.add_option("--log.level", raw.log_level, "Least severe level to log")
      ->capture_default_str()
      ->check(CLI::IsMember({"debug", "info", "warn", "error"}))
      ->type_name("LEVEL");
  app.add_option("--log.format", raw.log_format, "Format of log lines")
      ->capture_default_str()
      ->check(CLI::IsMember({"logfmt", "json"}))
      ->type_name("FORMAT");
}

void add_seat_options(CLI::App& app, RawOptions& raw) {
  constexpr unsigned kMaxSeats = 1000;
  app.add_option("--seat.pattern", raw.seats.patterns,
                 "Units that are seats even when no process of theirs is on the GPU, as a shell "
                 "pattern; repeatable (those of the common model servers)")
      ->type_name("PATTERN")
      ->allow_extra_args(false)
      ->check(check_pattern)
      ->group("Seats");
  app.add_option("--seat.max", raw.seats.max, "Most seats that get series of their own")
      ->capture_default_str()
      ->type_name("N")
      ->check(CLI::Range(1U, kMaxSeats))
      ->group("Seats");
}

void add_run_options(CLI::App& app, RawOptions& raw) {
  app.add_option("--config.file", raw.config_file,
                 "YAML map of option names to values; the command line overrides it")
      ->type_name("FILE")
      ->configurable(false);
  app.add_flag("--once", raw.once, "Print one complete exposition and exit; 1 if it is empty");
  // For demonstrations and tests: hidden from --help.
  app.add_option("--replay.frames", raw.replay_frames)->check(check_directory);
  app.add_option("--replay.speed", raw.replay_speed)->check(CLI::PositiveNumber);
}

void add_format_option(CLI::App& app, RawOptions& raw, const char* reference) {
  app.add_option("--format", raw.format, fmt::format("text, or json ({})", reference))
      ->capture_default_str()
      ->check(CLI::IsMember({"text", "json"}))
      ->type_name("FORMAT");
}

void add_check_options(CLI::App& app, RawOptions& raw) {
  app.add_option("--check.allow-mmap", raw.checks.allow_mmap,
                 "Seats whose server may map its model's file, as a shell pattern; repeatable")
      ->type_name("PATTERN")
      ->allow_extra_args(false)
      ->check(check_pattern)
      ->group("Seats");
}

void add_triage_options(CLI::App& app, RawOptions& raw) {
  add_format_option(app, raw, "docs/triage-json.md");
  app.add_option("--watch", raw.triage_watch,
                 "How long to look at the host: what a seat does shows after some seconds, a spin "
                 "after 90s")
      ->capture_default_str()
      ->check(check_duration)
      ->type_name("DURATION");
  app.footer("Exit status: 0 healthy, 1 a fault, 2 too little can be read to tell.");
}

/// The text of --help. Options are hidden here and not when they are added, since CLI11 leaves the
/// names of hidden ones out of its errors.
std::string help_text(CLI::App& app) {
  for (const char* hidden : {"--replay.frames", "--replay.speed"}) {
    app.get_option(hidden)->group("");
  }
  // CLI11 marks the negative names of flags.
  constexpr std::string_view kMark = "{false}";
  std::string text = app.help();
  for (size_t at = text.find(kMark); at != std::string::npos; at = text.find(kMark, at)) {
    text.erase(at, kMark.size());
  }
  return text;
}

/// The options that the configuration file has set so far.
using Configured = std::set<const CLI::Option*>;

Status apply_entry(CLI::App& app, const ConfigEntry& entry, Configured& configured) {
  CLI::Option* option = app.get_option_no_throw("--" + entry.name);
  if (option == nullptr || !option->get_configurable()) {
    return Error{ErrorKind::kMalformed, fmt::format("unknown option '{}'", entry.name)};
  }
  if (!configured.insert(option).second) {  // by its other name: collector.x, no-collector.x
    return Error{ErrorKind::kMalformed, fmt::format("'{}' is set twice", entry.name)};
  }
  if (option->count() > 0) {
    return std::nullopt;  // the command line has the last word
  }
  const bool is_flag = option->get_expected_min() == 0;
  if (entry.values.size() > 1 && option->get_items_expected_max() <= 1) {
    return Error{ErrorKind::kMalformed, fmt::format("'{}' takes one value", entry.name)};
  }
  try {
    if (is_flag) {
      option->add_result(option->get_flag_value(entry.name, entry.values.front()));
    } else {
      option->add_result(entry.values);
    }
    option->run_callback();
  } catch (const CLI::Error& error) {
    return Error{ErrorKind::kMalformed, error.what()};
  }
  return std::nullopt;
}

Status apply_config_file(CLI::App& app, const std::string& path) {
  const auto entries = read_config_file(path);
  if (!entries) {
    return Error{entries.error().kind, "--config.file: " + entries.error().message};
  }
  Configured configured;
  for (const ConfigEntry& entry : *entries) {
    if (const Status error = apply_entry(app, entry, configured)) {
      return Error{error->kind, fmt::format("{}:{}: {}", path, entry.line, error->message)};
    }
  }
  return std::nullopt;
}

std::vector<ListenAddress> listen_addresses(const std::vector<std::string>& texts) {
  std::vector<ListenAddress> addresses;
  for (const std::string& text : texts) {
    if (auto address = parse_listen_address(text)) {  // checked already
      addresses.push_back(*std::move(address));
    }
  }
  return addresses;
}

bool shall_run(const RawOptions& raw, const CollectorSpec& spec, const CollectorFlags& flags) {
  if (spec.name == "process" && raw.disable_exporter_metrics) {
    return false;
  }
  if (flags.switched->count() > 0) {
    return flags.enabled;
  }
  return spec.enabled_by_default && !raw.disable_defaults;
}

std::vector<EnabledCollector> enabled_collectors(const RawOptions& raw,
                                                 std::span<const CollectorSpec> specs) {
  std::vector<EnabledCollector> enabled;
  for (size_t i = 0; i < specs.size(); ++i) {
    const CollectorFlags& flags = raw.collectors[i];
    if (shall_run(raw, specs[i], flags)) {
      const auto period = parse_duration(flags.period);
      enabled.push_back({specs[i], period ? *period : specs[i].period});
    }
  }
  return enabled;
}

PathOptions path_options(const RawOptions& raw) {
  const auto given = [&](const char* name) -> std::optional<std::filesystem::path> {
    const std::string& path = raw.paths.at(name);
    return path.empty() ? std::nullopt : std::optional<std::filesystem::path>(path);
  };
  return {given("rootfs").value_or("/"),
          given("procfs"),
          given("sysfs"),
          given("debugfs"),
          given("cgroupfs"),
          given("kmsg"),
          given("journal")};
}

log::Level log_level(const std::string& text) {
  const std::map<std::string_view, log::Level> levels{{"debug", log::Level::kDebug},
                                                      {"info", log::Level::kInfo},
                                                      {"warn", log::Level::kWarn},
                                                      {"error", log::Level::kError}};
  return levels.at(text);
}

Options to_options(const RawOptions& raw, std::span<const CollectorSpec> specs) {
  Options options;
  options.listen =
      listen_addresses(raw.listen.empty() ? std::vector{std::string(kDefaultAddress)} : raw.listen);
  options.telemetry_path = raw.telemetry_path;
  options.max_requests = raw.max_requests;
  options.collectors = enabled_collectors(raw, specs);
  options.paths = path_options(raw);
  options.kernel_log = raw.kernel_log;
  options.state_file = raw.state_file;
  options.seats = raw.seats;
  options.log_level = log_level(raw.log_level);
  options.log_format = raw.log_format == "json" ? log::Format::kJson : log::Format::kLogfmt;
  options.once = raw.once;
  options.checks = raw.checks;
  options.format = raw.format;
  if (const auto watch = parse_duration(raw.triage_watch)) {  // checked already
    options.triage_watch = *watch;
  }
  if (!raw.replay_frames.empty()) {
    options.replay_frames = raw.replay_frames;
  }
  options.replay_speed = raw.replay_speed;
  return options;
}

CommandLine usage_error(std::string message) {
  std::replace(message.begin(), message.end(), '\n', ' ');
  return {std::nullopt, kUsageError, "", fmt::format("{}: {}\n", kProgram, message)};
}

std::string version_text() {
  return fmt::format("{}, version {} (revision: {}, compiler: {})\n", kProgram, version(),
                     revision(), compiler());
}

}  // namespace

CommandLine parse_command_line(int argc, const char* const* argv,
                               std::span<const CollectorSpec> collectors, Command command) {
  CLI::App app("Prometheus exporter for hosts whose AMD GPU shares memory with the CPU",
               std::string(kProgram));
  app.set_help_flag("-h,--help", "Print this help and exit")->configurable(false);
  app.set_version_flag("--version", version_text(), "Print the version and exit")
      ->configurable(false);
  RawOptions raw;
  add_web_options(app, raw);
  add_collector_options(app, raw, collectors);
  add_path_options(app, raw);
  add_log_options(app, raw);
  add_seat_options(app, raw);
  add_run_options(app, raw);
  add_check_options(app, raw);
  if (command == Command::kTriage) {
    add_triage_options(app, raw);
  } else if (command == Command::kCheck) {
    add_format_option(app, raw, "docs/checks.md");
    app.footer("Exit status: 0 no check fails, 1 one does, 2 none could be made.");
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return {std::nullopt, 0, help_text(app), ""};
  } catch (const CLI::CallForVersion&) {
    return {std::nullopt, 0, version_text(), ""};
  } catch (const CLI::Error& error) {
    return usage_error(error.what());
  }
  if (!raw.config_file.empty()) {
    if (const Status error = apply_config_file(app, raw.config_file)) {
      return usage_error(error->message);
    }
  }
  CommandLine parsed{to_options(raw, collectors), 0, "", ""};
  parsed.options->once = parsed.options->once || command != Command::kServe;
  return parsed;
}

}  // namespace apu
