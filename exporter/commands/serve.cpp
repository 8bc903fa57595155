#include "exporter/commands/serve.h"

#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <memory>
#include <string>

#include "exporter/assembly.h"
#include "exporter/health.h"
#include "exporter/http.h"
#include "exporter/log.h"
#include "exporter/thread.h"

namespace apu {
namespace {

// Idle and slow connections each hold a thread for up to 3 s: as many as scrapes, and some more.
constexpr unsigned kSpareThreads = 24;
constexpr unsigned kScrapesWithoutLimit = 40;

// Together under the second in which a stop must be done.
constexpr std::chrono::milliseconds kWebStopWait{400};
constexpr std::chrono::milliseconds kRunnerStopWait{300};

HttpServerOptions server_options(const Options& options) {
  const unsigned scrapes = options.max_requests == 0 ? kScrapesWithoutLimit : options.max_requests;
  return {options.listen, scrapes + kSpareThreads};
}

void log_start(const Options& options, const HttpServer& server) {
  log::info("Starting apu_exporter", {{"version", version()}, {"revision", revision()}});
  for (const EnabledCollector& collector : options.collectors) {
    log::debug("Collector enabled", {{"collector", collector.spec.name}});
  }
  for (const std::string& address : server.addresses()) {
    log::info("Listening on", {{"address", address}});
  }
}

void wait_for_stop_signal() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  int signal = 0;
  sigwait(&signals, &signal);
  log::info("Stopping", {{"signal", std::to_string(signal)}});
}

/// Lets those that take the facts of others look again as soon as there are some: a page that is
/// asked for soon after the start has them then.
void pass_derived_once_ready(const std::shared_ptr<Runner>& runner) {
  constexpr std::chrono::seconds kWait{10};
  start_detached_thread("first-passes", [runner, kWait] {
    runner->wait_ready(kWait);
    runner->pass_derived(kWait);
  });
}

/// Plays on a thread that nobody waits for. Null if there is nothing to replay.
std::shared_ptr<Replay> start_replay(Exporter& exporter) {
  if (!exporter.replay) {
    return nullptr;
  }
  auto replay = std::make_shared<Replay>(*std::move(exporter.replay));
  start_detached_thread("replay", [replay, runner = exporter.runner] {
    if (const Status error = replay->play(*runner, /*wait=*/true)) {
      log::error("Replay failed", {{"err", error->message}});
    }
    log::info("Replay ended");
  });
  return replay;
}

Outcome failed(const Error& error) {
  log::error("Cannot start", {{"err", error.message}});
  return {1, true};
}

}  // namespace

Outcome serve(const Options& options, std::span<const CollectorSpec> known) {
  auto exporter = assemble(options, known);
  if (!exporter) {
    return failed(exporter.error());
  }
  auto server = HttpServer::start(server_options(options),
                                  [endpoints = exporter->endpoints](const HttpRequest& request) {
                                    return endpoints->handle(request);
                                  });
  if (!server) {
    return failed(server.error());
  }
  exporter->runner->start();
  pass_derived_once_ready(exporter->runner);
  const std::shared_ptr<Replay> replay = start_replay(*exporter);
  log_start(options, **server);
  wait_for_stop_signal();
  const bool web_stopped = (*server)->stop(kWebStopWait);
  const bool workers_stopped = exporter->runner->stop(kRunnerStopWait);
  if (replay) {
    replay->close();
  }
  if (!workers_stopped) {
    log::warn("A collector is stuck and is left behind");
  }
  return {0, web_stopped && workers_stopped};
}

}  // namespace apu
