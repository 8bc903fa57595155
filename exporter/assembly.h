#pragma once

#include <memory>
#include <optional>
#include <span>

#include "exporter/endpoints.h"
#include "exporter/options.h"
#include "exporter/replay.h"
#include "exporter/result.h"
#include "exporter/runner.h"

namespace apu {

/// The parts of a running exporter, made but not started.
struct Exporter {
  std::shared_ptr<Runner> runner;
  std::shared_ptr<Endpoints> endpoints;
  std::optional<Replay> replay;  ///< with --replay.frames
  std::shared_ptr<const Clock> clock;
  bool recorded = false;  ///< the host is a recording: its time stands still, or is replayed
};

/// Errors: a fixture's clock, or the frames of a replay, that cannot be read.
Result<Exporter> assemble(const Options& options, std::span<const CollectorSpec> known);

}  // namespace apu
