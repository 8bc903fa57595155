#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "exporter/collector.h"
#include "exporter/store.h"

namespace apu {

/// Wakes whoever waits for passes to end. Shared by all workers.
class PassSignal {
 public:
  void notify();

  /// Waits until `done()` holds or `deadline` has passed; returns what `done()` said last.
  /// `done` may lock what it reads.
  template <typename Done>
  bool wait_until(std::chrono::steady_clock::time_point deadline, Done done) {
    std::unique_lock lock(mutex_);
    return changed_.wait_until(lock, deadline, done);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
};

/// What is known of a collector's passes.
struct WorkerStatus {
  std::uint64_t passes_ok = 0;
  std::uint64_t passes_failed = 0;
  bool last_pass_ok = false;                                          ///< false before the first
  std::optional<std::chrono::steady_clock::duration> last_duration;   ///< of the last ended pass
  std::optional<std::chrono::steady_clock::time_point> pass_started;  ///< while one runs
  bool overdue = false;  ///< the running pass is past its deadline
  bool ended = false;    ///< the thread has returned, after stop()

  [[nodiscard]] std::uint64_t passes() const { return passes_ok + passes_failed; }
};

/// Runs one collector on a thread of its own: a pass each period, one in flight at most. The
/// thread is detached and never joined, since a pass may never return; it shares ownership of all
/// it touches. A worker that is stuck stays stuck: no second thread is made behind it.
class Worker {
 public:
  Worker(const CollectorSpec& spec, std::chrono::milliseconds period, CollectorContext context,
         std::shared_ptr<Store> store, std::shared_ptr<PassSignal> signal);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  Worker(Worker&&) = default;
  Worker& operator=(Worker&&) = delete;

  void start();

  /// Asks for a pass now. Returns the number of ended passes at which it will have been done; a
  /// pass already running counts unless `from_start`.
  std::uint64_t request_pass(bool from_start = false);

  /// Asks the thread to end after the pass it is in. Returns at once.
  void stop();

  [[nodiscard]] WorkerStatus status() const;
  [[nodiscard]] const CollectorSpec& spec() const;
  [[nodiscard]] std::chrono::milliseconds period() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace apu
