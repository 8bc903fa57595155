#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string_view>

#include "collectors/kernel_log/journal_query.h"
#include "collectors/kernel_log/journal_reader.h"
#include "collectors/registry.h"
#include "exporter/commands/analyze.h"
#include "exporter/commands/check.h"
#include "exporter/commands/once.h"
#include "exporter/commands/serve.h"
#include "exporter/commands/triage.h"
#include "exporter/guarded_helper.h"
#include "exporter/http_client.h"
#include "exporter/log.h"
#include "exporter/options.h"
#include "exporter/thread.h"

namespace {

/// So that every thread has them blocked, and the main thread alone takes them.
void block_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
}

int leave(const apu::Outcome& outcome) {
  constexpr std::chrono::milliseconds kFlushWait{100};
  apu::log::flush(kFlushWait);
  if (!outcome.clean) {
    std::quick_exit(outcome.exit_code);  // a stuck thread still uses what destructors would take
  }
  return outcome.exit_code;
}

/// The command that the first argument names.
apu::Command command_of(int argc, char** argv) {
  const std::string_view name = argc > 1 ? argv[1] : "";
  if (name == "triage") {
    return apu::Command::kTriage;
  }
  return name == "check" ? apu::Command::kCheck : apu::Command::kServe;
}

apu::Outcome run(apu::Command command, const apu::Options& options) {
  switch (command) {
    case apu::Command::kTriage:
      return apu::triage(options, apu::all_collectors());
    case apu::Command::kCheck:
      return apu::check(options, apu::all_collectors());
    case apu::Command::kServe:
      break;
  }
  return options.once ? apu::once(options, apu::all_collectors())
                      : apu::serve(options, apu::all_collectors());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "analyze") {
    return apu::analyze_command(argc - 1, argv + 1);
  }
  if (argc > 1 && argv[1] == apu::kJournalReaderOption) {
    return apu::run_journal_reader({argv + 1, static_cast<size_t>(argc) - 1});
  }
  if (argc > 1 && argv[1] == apu::kGuardedReaderOption) {
    return apu::run_guarded_reader();
  }
  const apu::Command command = command_of(argc, argv);
  const int named = command == apu::Command::kServe ? 0 : 1;
  const apu::CommandLine command_line =
      apu::parse_command_line(argc - named, argv + named, apu::all_collectors(), command);
  if (!command_line.options) {
    std::fputs(command_line.output.c_str(), stdout);
    std::fputs(command_line.error.c_str(), stderr);
    return command_line.exit_code;
  }
  const apu::Options& options = *command_line.options;
  if (!options.once) {  // as it is for all commands but to serve
    block_signals();
  }
  apu::prepare_descriptors();
  apu::use_small_thread_stacks();
  apu::prepare_http_client();
  apu::log::start(options.log_level, options.log_format);
  try {
    return leave(run(command, options));
  } catch (const std::exception& exception) {  // no thread, no memory: a limit that is too low
    apu::log::error("Cannot go on", {{"err", exception.what()}});
    return leave({1, false});
  }
}
