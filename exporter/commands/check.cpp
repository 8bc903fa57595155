#include "exporter/commands/check.h"

#include <chrono>
#include <string>

#include "collectors/checks.h"
#include "exporter/assembly.h"
#include "exporter/commands/output.h"
#include "exporter/log.h"

namespace apu {
namespace {

// The slowest that have a part in it are allowed 10 s: the service manager, and homes on a server.
constexpr std::chrono::seconds kCollectWait{15};
constexpr std::chrono::milliseconds kStopWait{300};

constexpr int kFailed = 1;
constexpr int kNothingKnown = 2;

int exit_code(const Checks& checks) {
  const CheckCounts counts = count(checks);
  if (counts.fail > 0) {
    return kFailed;
  }
  return counts.pass > 0 ? 0 : kNothingKnown;
}

/// Empty where the collector that makes them does not run, or has not come to an end.
Checks make_checks(Runner& runner) {
  runner.start();
  runner.wait_ready(kCollectWait);
  runner.pass_derived(kCollectWait);
  const auto facts = fresh_facts<ChecksFacts>(*runner.store(), "checks");
  return facts ? facts->checks : Checks();
}

}  // namespace

Outcome check(const Options& options, std::span<const CollectorSpec> known) {
  const auto exporter = assemble(options, known);
  if (!exporter) {
    log::error("Cannot start", {{"err", exporter.error().message}});
    return {kNothingKnown, true};
  }
  const Checks checks = make_checks(*exporter->runner);
  const std::string page = options.format == "json" ? to_check_json(checks) : to_check_text(checks);
  const bool printed = print_whole(page, "The checks");
  return {printed ? exit_code(checks) : kNothingKnown, exporter->runner->stop(kStopWait)};
}

}  // namespace apu
