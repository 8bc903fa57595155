#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "exporter/collector.h"
#include "exporter/runner.h"
#include "exporter/store.h"

namespace apu {

/// What a fake collector does in a pass.
using CollectFunction = std::function<Result<Snapshot>(const CollectorContext&)>;

/// A table row whose collector does `collect`. One pass at the start and none after it unless one
/// is asked for: period and deadline are an hour. A scrape takes its newest snapshot.
CollectorSpec fake_spec(std::string_view name, CollectFunction collect);

/// The metric of all fake collectors: a gauge without labels.
extern const MetricInfo kFakeMetric;

/// A snapshot whose facts are `value` and whose only family is kFakeMetric at that value.
Snapshot fake_snapshot(int value);

/// The value of a fake_snapshot; -1 if there is no snapshot.
int value_of(const std::shared_ptr<const Snapshot>& snapshot);

/// Counts its passes: the first finds 1, the second 2.
class CountingCollector {
 public:
  [[nodiscard]] CollectFunction function() const;

  [[nodiscard]] int passes() const { return *passes_; }

 private:
  std::shared_ptr<std::atomic<int>> passes_ = std::make_shared<std::atomic<int>>(0);
};

/// Blocks in each pass until the test releases it, and in no pass afterwards. Finds the number of
/// its pass. Released with this object at the latest.
class BlockingCollector {
 public:
  BlockingCollector() = default;

  ~BlockingCollector() { release(); }

  BlockingCollector(const BlockingCollector&) = delete;
  BlockingCollector& operator=(const BlockingCollector&) = delete;

  [[nodiscard]] CollectFunction function() const;
  void release();

  /// The number of passes that have begun.
  [[nodiscard]] int begun() const;

  /// Waits until `count` passes have begun; false if they do not.
  [[nodiscard]] bool wait_begun(int count = 1) const;

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    int begun = 0;
    bool released = false;
  };

  std::shared_ptr<State> state_ = std::make_shared<State>();
};

CollectFunction failing_collector(std::string message);

/// Throws std::runtime_error.
CollectFunction throwing_collector(std::string message);

/// What runners of fake collectors share: no roots, a clock that stands at `time`.
RunnerContext fake_runner_context(TimePoint time = {});

/// What a worker of a fake collector gets.
CollectorContext fake_context(std::shared_ptr<const Store> store, TimePoint time = {});

}  // namespace apu
