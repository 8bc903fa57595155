#include "exporter/commands/once.h"

#include <algorithm>
#include <chrono>
#include <string>

#include "exporter/assembly.h"
#include "exporter/commands/output.h"
#include "exporter/log.h"

namespace apu {
namespace {

constexpr std::chrono::seconds kCollectWait{5};
constexpr std::chrono::milliseconds kStopWait{300};

bool found_anything(const Runner& runner) {
  const std::vector<CollectorView> views = runner.view();
  return std::any_of(views.begin(), views.end(), [](const CollectorView& view) {
    // That the exporter runs says nothing of the host, and a verdict there always is.
    return view.snapshot != nullptr && !view.snapshot->families.empty() && view.name != "process" &&
           view.name != "verdict";
  });
}

}  // namespace

Outcome once(const Options& options, std::span<const CollectorSpec> known) {
  auto exporter = assemble(options, known);
  if (!exporter) {
    log::error("Cannot start", {{"err", exporter.error().message}});
    return {1, true};
  }
  Runner& runner = *exporter->runner;
  runner.start();
  runner.wait_ready(kCollectWait);
  runner.pass_derived(kCollectWait);
  if (exporter->replay) {
    if (const Status error = exporter->replay->play(runner, /*wait=*/false)) {
      log::error("Replay failed", {{"err", error->message}});
    }
  }
  const bool found = found_anything(runner);
  const std::string page = exporter->endpoints->exposition();
  const bool printed = print_whole(page, "The exposition");
  if (!found) {
    log::error("Nothing could be collected");
  }
  return {found && printed ? 0 : 1, runner.stop(kStopWait)};
}

}  // namespace apu
