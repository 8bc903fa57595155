#include "tests/support/fake_collectors.h"

#include <any>
#include <array>
#include <chrono>
#include <stdexcept>
#include <utility>

#include "tests/support/wait.h"

namespace apu {
namespace {

class FakeCollector : public Collector {
 public:
  FakeCollector(CollectorContext context, CollectFunction collect)
      : context_(std::move(context)), collect_(std::move(collect)) {}

  Result<Snapshot> collect() override { return collect_(context_); }

 private:
  CollectorContext context_;
  CollectFunction collect_;
};

// CollectorSpec::make is a plain function, so what it makes stands in one of these slots. They are
// used in turn, since a thread of the test before may make its collector late.
constexpr size_t kSlots = 64;

struct Slots {
  std::mutex mutex;
  std::array<CollectFunction, kSlots> functions;
  size_t next = 0;
};

/// Never destroyed: detached threads may outlive main.
Slots& slots() {
  static auto* const instance = new Slots;
  return *instance;
}

template <size_t Slot>
std::unique_ptr<Collector> make_from_slot(const CollectorContext& context) {
  const std::lock_guard lock(slots().mutex);
  return std::make_unique<FakeCollector>(context, slots().functions.at(Slot));
}

using Make = decltype(CollectorSpec::make);

template <size_t... Slot>
constexpr std::array<Make, kSlots> makers(std::index_sequence<Slot...> /*slots*/) {
  return {make_from_slot<Slot>...};
}

}  // namespace

const MetricInfo kFakeMetric{"apu_fake_value", prometheus::MetricType::Gauge, "",
                             "What a fake collector found (test)"};

CollectorSpec fake_spec(std::string_view name, CollectFunction collect) {
  static constexpr std::array kMakers = makers(std::make_index_sequence<kSlots>());
  constexpr std::chrono::hours kNeverInATest{1};
  const std::lock_guard lock(slots().mutex);
  const size_t slot = slots().next++ % kSlots;
  slots().functions.at(slot) = std::move(collect);
  return {name,
          true,
          kNeverInATest,
          kNeverInATest,
          OnScrape::kUseNewest,
          "A fake",
          std::span(&kFakeMetric, 1),
          kMakers.at(slot)};
}

Snapshot fake_snapshot(int value) {
  MetricWriter metrics;
  metrics.set(kFakeMetric, value);
  return {value, metrics.take()};
}

int value_of(const std::shared_ptr<const Snapshot>& snapshot) {
  return snapshot ? std::any_cast<int>(snapshot->facts) : -1;
}

CollectFunction CountingCollector::function() const {
  return [passes = passes_](const CollectorContext&) { return fake_snapshot(++*passes); };
}

CollectFunction BlockingCollector::function() const {
  return [state = state_](const CollectorContext&) {
    std::unique_lock lock(state->mutex);
    const int number = ++state->begun;
    state->changed.notify_all();
    state->changed.wait(lock, [&] { return state->released; });
    return fake_snapshot(number);
  };
}

void BlockingCollector::release() {
  const std::lock_guard lock(state_->mutex);
  state_->released = true;
  state_->changed.notify_all();
}

int BlockingCollector::begun() const {
  const std::lock_guard lock(state_->mutex);
  return state_->begun;
}

bool BlockingCollector::wait_begun(int count) const {
  std::unique_lock lock(state_->mutex);
  return state_->changed.wait_for(lock, kLongWait, [&] { return state_->begun >= count; });
}

CollectFunction failing_collector(std::string message) {
  return [message = std::move(message)](const CollectorContext&) -> Result<Snapshot> {
    return Error{ErrorKind::kUnknown, message};
  };
}

CollectFunction throwing_collector(std::string message) {
  return [message = std::move(message)](const CollectorContext&) -> Result<Snapshot> {
    throw std::runtime_error(message);
  };
}

RunnerContext fake_runner_context(TimePoint time) {
  return {SourceRoots{},
          std::make_shared<FixedClock>(time),
          std::make_shared<SourceBoard>(),
          "auto",
          {},
          {},
          {}};
}

CollectorContext fake_context(std::shared_ptr<const Store> store, TimePoint time) {
  const RunnerContext shared = fake_runner_context(time);
  return {shared.roots,     shared.clock,      SourceReporter(shared.sources, "fake"),
          std::move(store), shared.kernel_log, shared.state_file,
          shared.seats,     shared.checks};
}

}  // namespace apu
