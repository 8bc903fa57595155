#pragma once

#include <any>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "exporter/clock.h"
#include "exporter/collector.h"

namespace apu {

/// A snapshot older than this is no longer evidence: not printed, and missing to derived
/// collectors.
std::chrono::milliseconds max_snapshot_age(std::chrono::milliseconds period);

/// A snapshot and when it was made.
struct StoredSnapshot {
  std::shared_ptr<const Snapshot> snapshot;
  TimePoint time;                               ///< by the host's clock
  std::chrono::steady_clock::time_point taken;  ///< for ages
  std::chrono::milliseconds period{};           ///< of the collector

  /// Whether it is too old to be evidence.
  [[nodiscard]] bool is_stale(std::chrono::steady_clock::time_point now) const {
    return now - taken > max_snapshot_age(period);
  }
};

/// The newest snapshot of each collector. Thread-safe; the mutex is held to copy a pointer.
class Store {
 public:
  void put(std::string_view collector, StoredSnapshot snapshot);

  /// Notes that a pass of the collector runs, which should end at `deadline`; nullopt: none does.
  void note_pass(std::string_view collector,
                 std::optional<std::chrono::steady_clock::time_point> deadline);

  /// Whether a pass has run past its deadline: what it reads does not answer.
  [[nodiscard]] bool is_overdue(std::string_view collector) const;

  /// The newest snapshot, whatever its age; its `snapshot` is null if there is none yet.
  [[nodiscard]] StoredSnapshot newest(std::string_view collector) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, StoredSnapshot, std::less<>> snapshots_;
  std::map<std::string, std::chrono::steady_clock::time_point, std::less<>> deadlines_;  // by pass
};

/// What derived collectors read: the newest facts of `collector`, null if there are none, they are
/// too old to be evidence or older than `max_age`, or are no Facts.
template <typename Facts>
std::shared_ptr<const Facts> fresh_facts(
    const Store& store, std::string_view collector,
    std::optional<std::chrono::milliseconds> max_age = std::nullopt) {
  const StoredSnapshot newest = store.newest(collector);
  const auto now = std::chrono::steady_clock::now();
  if (newest.snapshot == nullptr || newest.is_stale(now) ||
      (max_age && now - newest.taken > *max_age)) {
    return nullptr;
  }
  return {newest.snapshot, std::any_cast<Facts>(&newest.snapshot->facts)};
}

/// The same, if they are no older than some periods: what was true then may still be.
template <typename Facts>
std::shared_ptr<const Facts> present_facts(const Store& store, std::string_view collector) {
  constexpr int kPeriods = 4;
  return fresh_facts<Facts>(store, collector, kPeriods * store.newest(collector).period);
}

}  // namespace apu
