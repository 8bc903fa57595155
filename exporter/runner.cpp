#include "exporter/runner.h"

#include <algorithm>
#include <utility>

namespace apu {
namespace {

using Steady = std::chrono::steady_clock;

// A scrape every second sees fresh values, several scrapers at once cost one pass.
constexpr std::chrono::seconds kFreshFor{1};

/// A pass that somebody waits for.
struct Awaited {
  const Worker* worker;
  std::uint64_t passes;
};

bool ended(const Awaited& awaited) {
  return awaited.worker->status().passes() >= awaited.passes;
}

bool all_ended(const std::vector<Awaited>& awaited) {
  return std::all_of(awaited.begin(), awaited.end(), ended);
}

}  // namespace

Runner::Runner(const std::vector<EnabledCollector>& collectors, const RunnerContext& context) {
  workers_.reserve(collectors.size());
  for (const EnabledCollector& enabled : collectors) {
    const std::string name(enabled.spec.name);
    CollectorContext own{context.roots, context.clock,      SourceReporter(context.sources, name),
                         store_,        context.kernel_log, context.state_file,
                         context.seats, context.checks};
    workers_.emplace_back(enabled.spec, enabled.period, std::move(own), store_, signal_);
  }
}

void Runner::start() {
  for (Worker& worker : workers_) {
    worker.start();
  }
}

void Runner::refresh(std::chrono::milliseconds max_wait) {
  const Steady::time_point now = Steady::now();
  std::vector<Awaited> awaited;
  for (Worker& worker : workers_) {
    const StoredSnapshot newest = store_->newest(worker.spec().name);
    const bool fresh = newest.snapshot && now - newest.taken <= kFreshFor;
    if (worker.spec().on_scrape == OnScrape::kRefresh && !fresh && !worker.status().overdue) {
      awaited.push_back({&worker, worker.request_pass()});
    }
  }
  signal_->wait_until(now + max_wait, [&] { return all_ended(awaited); });
}

bool Runner::pass_all(std::chrono::milliseconds max_wait) {
  return pass_stages(0, max_wait);
}

bool Runner::pass_derived(std::chrono::milliseconds max_wait) {
  return pass_stages(1, max_wait);
}

bool Runner::pass_stages(unsigned first, std::chrono::milliseconds max_wait) {
  const Steady::time_point deadline = Steady::now() + max_wait;
  unsigned last = 0;
  for (const Worker& worker : workers_) {
    last = std::max(last, worker.spec().stage);
  }
  bool whole = true;
  for (unsigned stage = first; stage <= last; ++stage) {
    std::vector<Awaited> awaited;
    for (Worker& worker : workers_) {
      if (worker.spec().stage == stage) {
        awaited.push_back({&worker, worker.request_pass(/*from_start=*/true)});
      }
    }
    whole = signal_->wait_until(deadline, [&] { return all_ended(awaited); }) && whole;
  }
  return whole;
}

bool Runner::wait_ready(std::chrono::milliseconds max_wait) {
  // Nobody is told when a pass becomes overdue: look again now and then.
  constexpr std::chrono::milliseconds kLookAgain{100};
  const Steady::time_point deadline = Steady::now() + max_wait;
  while (!ready() && Steady::now() < deadline) {
    signal_->wait_until(std::min(deadline, Steady::now() + kLookAgain), [this] { return ready(); });
  }
  return ready();
}

bool Runner::ready() const {
  return std::all_of(workers_.begin(), workers_.end(), [](const Worker& worker) {
    const WorkerStatus status = worker.status();
    return status.passes() > 0 || status.overdue;
  });
}

bool Runner::stop(std::chrono::milliseconds max_wait) {
  for (Worker& worker : workers_) {
    worker.stop();
  }
  return signal_->wait_until(Steady::now() + max_wait, [this] {
    return std::all_of(workers_.begin(), workers_.end(),
                       [](const Worker& worker) { return worker.status().ended; });
  });
}

std::vector<CollectorView> Runner::view() const {
  const Steady::time_point now = Steady::now();
  std::vector<CollectorView> views;
  for (const Worker& worker : workers_) {
    CollectorView view{worker.spec().name, worker.status(), nullptr, std::nullopt};
    if (const StoredSnapshot newest = store_->newest(view.name); newest.snapshot) {
      view.snapshot = newest.snapshot;
      view.age = now - newest.taken;
      view.stale = newest.is_stale(now);
    }
    views.push_back(std::move(view));
  }
  return views;
}

}  // namespace apu
