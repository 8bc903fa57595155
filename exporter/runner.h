#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "exporter/collector.h"
#include "exporter/metric.h"
#include "exporter/store.h"
#include "exporter/worker.h"

namespace apu {

/// A collector that shall run, and how often.
struct EnabledCollector {
  CollectorSpec spec;
  std::chrono::milliseconds period;
};

/// What all collectors of a runner share.
struct RunnerContext {
  SourceRoots roots;
  std::shared_ptr<const Clock> clock;
  std::shared_ptr<SourceBoard> sources;
  std::string kernel_log;
  StateFile state_file;
  SeatOptions seats;
  CheckOptions checks;
};

/// A collector, its newest snapshot, and how its passes go: what a scrape prints of it.
struct CollectorView {
  std::string_view name;
  WorkerStatus status;
  std::shared_ptr<const Snapshot> snapshot;                ///< null before the first pass
  std::optional<std::chrono::steady_clock::duration> age;  ///< of the snapshot
  bool stale = false;  ///< too old to be evidence: its families are not printed
};

/// All workers. Whatever waits here waits for a bounded time.
class Runner {
 public:
  Runner(const std::vector<EnabledCollector>& collectors, const RunnerContext& context);

  void start();

  /// Asks the cheap collectors (OnScrape::kRefresh) whose snapshot is over a second old for a
  /// pass, and waits for those passes. Overdue ones are never waited for.
  void refresh(std::chrono::milliseconds max_wait);

  /// Has every collector do a whole pass that starts now, stage by stage. False if one did not end
  /// in time.
  bool pass_all(std::chrono::milliseconds max_wait);

  /// The same for those that take the facts of others alone.
  bool pass_derived(std::chrono::milliseconds max_wait);

  /// Waits until ready().
  bool wait_ready(std::chrono::milliseconds max_wait);

  /// Whether every collector has ended a pass or is overdue.
  [[nodiscard]] bool ready() const;

  /// Ends all workers that can be ended. False if one is stuck, so that the process cannot be
  /// left in the ordinary way.
  bool stop(std::chrono::milliseconds max_wait);

  [[nodiscard]] std::vector<CollectorView> view() const;

  /// The newest facts of all collectors.
  [[nodiscard]] std::shared_ptr<const Store> store() const { return store_; }

 private:
  bool pass_stages(unsigned first, std::chrono::milliseconds max_wait);

  std::shared_ptr<Store> store_ = std::make_shared<Store>();
  std::shared_ptr<PassSignal> signal_ = std::make_shared<PassSignal>();
  std::vector<Worker> workers_;
};

}  // namespace apu
