#include "exporter/assembly.h"

#include <utility>

namespace apu {
namespace {

/// Whether the host is a recording that has a time of its own.
bool has_own_time(const SourceRoots& roots) {
  std::error_code error;
  return roots.fixture && std::filesystem::exists(roots.fixture_time, error);
}

/// A fixture's clock stands still at its `time`; all other hosts have the real one.
Result<std::shared_ptr<const Clock>> make_clock(const SourceRoots& roots) {
  if (!has_own_time(roots)) {
    return std::shared_ptr<const Clock>(std::make_shared<SystemClock>());
  }
  const auto time = read_fixture_time(roots.fixture_time);
  if (!time) {
    return time.error();
  }
  return std::shared_ptr<const Clock>(std::make_shared<FixedClock>(*time));
}

Result<std::optional<Replay>> open_replay(const Options& options) {
  if (!options.replay_frames) {
    return std::optional<Replay>();
  }
  auto replay = Replay::open(*options.replay_frames, options.replay_speed);
  if (!replay) {
    return replay.error();
  }
  return std::optional<Replay>(*std::move(replay));
}

std::vector<std::string> names_of(std::span<const CollectorSpec> specs) {
  std::vector<std::string> names;
  for (const CollectorSpec& spec : specs) {
    names.emplace_back(spec.name);
  }
  return names;
}

}  // namespace

Result<Exporter> assemble(const Options& options, std::span<const CollectorSpec> known) {
  auto replay = open_replay(options);
  if (!replay) {
    return replay.error();
  }
  PathOptions paths = options.paths;
  if (*replay) {
    paths.rootfs = (*replay)->root();
  }
  const SourceRoots roots = make_roots(paths);
  const auto clock = *replay ? (*replay)->clock() : make_clock(roots);
  if (!clock) {
    return clock.error();
  }
  const auto sources = std::make_shared<SourceBoard>();
  Exporter exporter;
  exporter.runner = std::make_shared<Runner>(
      options.collectors,
      RunnerContext{roots, *clock, sources, options.kernel_log,
                    StateFile{options.state_file, !options.once}, options.seats, options.checks});
  exporter.endpoints = std::make_shared<Endpoints>(
      EndpointOptions{options.telemetry_path, options.max_requests, names_of(known), *clock},
      exporter.runner, sources);
  exporter.replay = *std::move(replay);
  exporter.clock = *clock;
  exporter.recorded = exporter.replay || has_own_time(roots);
  return exporter;
}

}  // namespace apu
