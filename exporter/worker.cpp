#include "exporter/worker.h"

#include <exception>
#include <string>
#include <utility>

#include "exporter/log.h"
#include "exporter/thread.h"

namespace apu {

using Steady = std::chrono::steady_clock;

void PassSignal::notify() {
  // A waiter between its check and its sleep holds the mutex: taking it here loses no wake-up.
  { const std::lock_guard lock(mutex_); }
  changed_.notify_all();
}

struct Worker::State {
  State(const CollectorSpec& the_spec, std::chrono::milliseconds the_period,
        CollectorContext the_context, std::shared_ptr<Store> the_store,
        std::shared_ptr<PassSignal> the_signal)
      : spec(the_spec),
        period(the_period),
        context(std::move(the_context)),
        store(std::move(the_store)),
        signal(std::move(the_signal)) {}

  void run();
  bool wait_for_turn(Steady::time_point due);
  void run_pass(std::unique_ptr<Collector>& collector);
  void finish_pass(Steady::time_point started, Result<Snapshot> result);
  void log_change(bool ok, const std::string& reason);

  const CollectorSpec spec;
  const std::chrono::milliseconds period;
  const CollectorContext context;
  const std::shared_ptr<Store> store;
  const std::shared_ptr<PassSignal> signal;

  std::mutex mutex;
  std::condition_variable wake;
  WorkerStatus status;
  bool requested = false;
  bool stopping = false;
  std::string last_reason = "none yet";  // of the last failure; the thread's own
};

void Worker::State::run() {
  own_descriptor_table();
  {
    std::unique_ptr<Collector> collector;
    Steady::time_point due = Steady::now();
    while (wait_for_turn(due)) {
      due = Steady::now() + period;
      run_pass(collector);
    }
  }
  {
    const std::lock_guard lock(mutex);
    status.ended = true;
  }
  signal->notify();
}

bool Worker::State::wait_for_turn(Steady::time_point due) {
  std::unique_lock lock(mutex);
  wake.wait_until(lock, due, [this] { return requested || stopping; });
  requested = false;
  if (!stopping) {
    status.pass_started = Steady::now();
  }
  return !stopping;
}

void Worker::State::run_pass(std::unique_ptr<Collector>& collector) {
  const Steady::time_point started = Steady::now();
  store->note_pass(spec.name, started + spec.deadline);
  // The one catch for what libraries throw: nothing may end the process.
  try {
    if (!collector) {
      collector = spec.make(context);  // may block too, so it is part of a pass
    }
    finish_pass(started, collector->collect());
  } catch (const std::exception& exception) {
    finish_pass(started, Error{ErrorKind::kUnknown, exception.what()});
  } catch (...) {
    finish_pass(started, Error{ErrorKind::kUnknown, "unknown exception"});
  }
}

void Worker::State::finish_pass(Steady::time_point started, Result<Snapshot> result) {
  const bool ok = result.ok();
  store->note_pass(spec.name, std::nullopt);
  log_change(ok, ok ? std::string() : result.error().message);
  if (ok) {
    store->put(spec.name, {std::make_shared<const Snapshot>(*std::move(result)),
                           context.clock->now(), Steady::now(), period});
  }
  {
    const std::lock_guard lock(mutex);
    (ok ? status.passes_ok : status.passes_failed) += 1;
    status.last_pass_ok = ok;
    status.last_duration = Steady::now() - started;
    status.pass_started.reset();
  }
  signal->notify();
}

void Worker::State::log_change(bool ok, const std::string& reason) {
  if (reason == last_reason) {
    return;
  }
  const bool recovered = ok && last_reason != "none yet";
  last_reason = reason;
  if (!ok) {
    log::warn("Collector failed", {{"collector", spec.name}, {"err", reason}});
  } else if (recovered) {
    log::info("Collector recovered", {{"collector", spec.name}});
  }
}

Worker::Worker(const CollectorSpec& spec, std::chrono::milliseconds period,
               CollectorContext context, std::shared_ptr<Store> store,
               std::shared_ptr<PassSignal> signal)
    : state_(std::make_shared<State>(spec, period, std::move(context), std::move(store),
                                     std::move(signal))) {}

Worker::~Worker() {
  if (state_) {
    stop();
  }
}

void Worker::start() {
  start_detached_thread(state_->spec.name, [state = state_] { state->run(); });
}

std::uint64_t Worker::request_pass(bool from_start) {
  const std::lock_guard lock(state_->mutex);
  const bool running = state_->status.pass_started.has_value();
  if (!running || from_start) {
    state_->requested = true;
    state_->wake.notify_all();
  }
  return state_->status.passes() + (running && from_start ? 2 : 1);
}

void Worker::stop() {
  const std::lock_guard lock(state_->mutex);
  state_->stopping = true;
  state_->wake.notify_all();
}

WorkerStatus Worker::status() const {
  const std::lock_guard lock(state_->mutex);
  WorkerStatus status = state_->status;
  status.overdue =
      status.pass_started && Steady::now() - *status.pass_started > state_->spec.deadline;
  return status;
}

const CollectorSpec& Worker::spec() const {
  return state_->spec;
}

std::chrono::milliseconds Worker::period() const {
  return state_->period;
}

}  // namespace apu
