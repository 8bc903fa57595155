#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "exporter/clock.h"
#include "exporter/collector.h"

namespace apu {

/// A snapshot and when it was made.
struct StoredSnapshot {
  std::shared_ptr<const Snapshot> snapshot;
  TimePoint time;                               ///< by the host's clock
  std::chrono::steady_clock::time_point taken;  ///< for ages
};

/// The newest snapshot of each collector. Thread-safe; the mutex is held to copy a pointer.
class Store {
 public:
  void put(std::string_view collector, StoredSnapshot snapshot);

  /// The newest snapshot, whatever its age; its `snapshot` is null if there is none yet.
  [[nodiscard]] StoredSnapshot newest(std::string_view collector) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, StoredSnapshot, std::less<>> snapshots_;
};

/// A snapshot older than this is no longer evidence: not printed, and missing to derived
/// collectors.
std::chrono::milliseconds max_snapshot_age(std::chrono::milliseconds period);

}  // namespace apu
