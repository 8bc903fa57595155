#include "exporter/commands/analyze.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <new>
#include <string>
#include <vector>

#include "analysis/analysis.h"
#include "analysis/log_reader.h"
#include "analysis/report.h"
#include "exporter/health.h"
#include "exporter/input.h"
#include "exporter/text.h"

namespace apu {
namespace {

constexpr int kFault = 1;
constexpr int kUnreadable = 2;

void complain(std::string_view what) {
  std::fprintf(stderr, "apu_exporter analyze: %s\n", to_valid_utf8(what).c_str());
}

LogFile read_log(const std::string& path, TimePoint now) {
  LogReader reader(path == "-" ? "stdin" : path, now);
  Status failure = read_input(path, [&](std::string_view bytes) { reader.feed(bytes); });
  return reader.finish(std::move(failure));
}

std::string print(const Analysis& analysis, const std::string& format) {
  if (format == "json") {
    return to_report_json(analysis);
  }
  return format == "metrics" ? to_report_metrics(analysis) : to_report_text(analysis);
}

int exit_code(const Analysis& analysis) {
  if (analysis.any_unreadable()) {
    return kUnreadable;
  }
  if (!analysis.any_kernel_line()) {
    complain("there is no line of the kernel in what was read");
    return kUnreadable;
  }
  const BootAnalysis* worst = analysis.worst();
  return worst != nullptr && is_fault(worst->judgement.verdict) ? kFault : 0;
}

int run(const std::vector<std::string>& paths, const std::string& format) {
  const TimePoint now = SystemClock().now();
  std::vector<LogFile> files;
  for (const std::string& path : paths) {
    files.push_back(read_log(path, now));
    if (files.back().failure) {
      complain(files.back().failure->message);
    }
  }
  const Analysis analysis = analyze(std::move(files));
  const bool printed =
      std::fputs(print(analysis, format).c_str(), stdout) >= 0 && std::fflush(stdout) == 0;
  if (!printed) {
    complain("the report could not be written to stdout");
    return kUnreadable;
  }
  return exit_code(analysis);
}

}  // namespace

int analyze_command(int argc, const char* const* argv) {
  CLI::App app(
      "Says what saved kernel logs tell of the fault: dmesg, /dev/kmsg records, journalctl "
      "(short forms, json, export), syslog files; plain, gzip, xz or zstd",
      "apu_exporter analyze");
  std::vector<std::string> paths;
  std::string format = "text";
  app.add_option("FILE", paths, "Logs of one host, in any order; - for stdin")->required();
  app.add_option("--format", format, "text, json (docs/analyze-json.md) or metrics (last boot)")
      ->capture_default_str()
      ->check(CLI::IsMember({"text", "json", "metrics"}));
  app.set_version_flag("--version", std::string(version()));
  app.footer("Exit status: 0 no fault, 1 a fault, 2 a file that cannot be read.");
  try {
    app.parse(argc, argv);
    return run(paths, format);
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    return 0;
  } catch (const CLI::CallForVersion&) {
    std::printf("%s\n", std::string(version()).c_str());
    return 0;
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "apu_exporter analyze: %s\n", error.what());
    return kUnreadable;
  } catch (const std::bad_alloc&) {
    std::fputs("apu_exporter analyze: not enough memory\n", stderr);
    return kUnreadable;
  }
}

}  // namespace apu
