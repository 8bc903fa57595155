#include "exporter/commands/triage.h"

#include <chrono>
#include <string>
#include <thread>

#include "exporter/assembly.h"
#include "exporter/commands/output.h"
#include "exporter/log.h"
#include "triage/report.h"

namespace apu {
namespace {

constexpr std::chrono::seconds kCollectWait{5};
constexpr std::chrono::milliseconds kStopWait{300};

constexpr int kFault = 1;
constexpr int kCannotTell = 2;

int exit_code(const TriageReport& report) {
  if (report.is_fault()) {
    return kFault;
  }
  return report.verdict.judgement.verdict == Verdict::kHealthy ? 0 : kCannotTell;
}

/// Lets the collectors look at the host until the time is up; a recorded host does not change.
void watch(Exporter& exporter, std::chrono::milliseconds length) {
  Runner& runner = *exporter.runner;
  runner.start();
  runner.wait_ready(kCollectWait);
  if (exporter.replay) {
    if (const Status error = exporter.replay->play(runner, /*wait=*/false)) {
      log::error("Replay failed", {{"err", error->message}});
    }
    return;
  }
  if (!exporter.recorded) {
    std::this_thread::sleep_for(length);
  }
  runner.pass_derived(kCollectWait);
}

}  // namespace

Outcome triage(const Options& options, std::span<const CollectorSpec> known) {
  auto exporter = assemble(options, known);
  if (!exporter) {
    log::error("Cannot start", {{"err", exporter.error().message}});
    return {kCannotTell, true};
  }
  watch(*exporter, options.triage_watch);
  const TriageReport report = make_triage(*exporter->runner->store(), exporter->clock->now());
  const std::string page =
      options.format == "json" ? to_triage_json(report) : to_triage_text(report);
  const bool printed = print_whole(page, "The report");
  return {printed ? exit_code(report) : kCannotTell, exporter->runner->stop(kStopWait)};
}

}  // namespace apu
