#include "exporter/store.h"

#include <algorithm>
#include <utility>

namespace apu {

void Store::put(std::string_view collector, StoredSnapshot snapshot) {
  // The replaced snapshot is freed outside the lock, by whoever used it last.
  const std::lock_guard lock(mutex_);
  auto found = snapshots_.find(collector);
  if (found == snapshots_.end()) {
    found = snapshots_.emplace(collector, StoredSnapshot{}).first;
  }
  std::swap(found->second, snapshot);
}

void Store::note_pass(std::string_view collector,
                      std::optional<std::chrono::steady_clock::time_point> deadline) {
  const std::lock_guard lock(mutex_);
  if (deadline) {
    deadlines_.insert_or_assign(std::string(collector), *deadline);
  } else if (const auto found = deadlines_.find(collector); found != deadlines_.end()) {
    deadlines_.erase(found);
  }
}

bool Store::is_overdue(std::string_view collector) const {
  const std::lock_guard lock(mutex_);
  const auto found = deadlines_.find(collector);
  return found != deadlines_.end() && std::chrono::steady_clock::now() > found->second;
}

StoredSnapshot Store::newest(std::string_view collector) const {
  const std::lock_guard lock(mutex_);
  const auto found = snapshots_.find(collector);
  return found == snapshots_.end() ? StoredSnapshot{} : found->second;
}

std::chrono::milliseconds max_snapshot_age(std::chrono::milliseconds period) {
  constexpr std::chrono::milliseconds kLeast = std::chrono::minutes(5);
  constexpr int kPeriods = 10;
  return std::max(kLeast, kPeriods * period);
}

}  // namespace apu
