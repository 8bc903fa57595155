#include "collectors/seats/counters.h"

namespace apu {

std::uint64_t SurvivingSum::sum() {
  while (ended_.size() > kRemembered) {
    before_ += ended_.begin()->second;
    ended_.erase(ended_.begin());
  }
  std::uint64_t total = before_;
  for (const auto* values : {&living_, &ended_}) {
    for (const auto& [key, value] : *values) {
      total += value;
    }
  }
  return total;
}

std::uint64_t SeatCounters::total(const Seat& seat, const std::string& what,
                                  const std::map<ProcessKey, std::uint64_t>& values) {
  return sums_[seat.name][what].total(values, [&](const ProcessKey& key) {
    return std::any_of(seat.processes.begin(), seat.processes.end(),
                       [&](const SeatProcess& process) { return process.key == key; });
  });
}

std::uint64_t ProcessStarts::count(const Seat& seat) {
  Starts& starts = starts_[seat.name];
  const bool uses_gpu = std::any_of(seat.processes.begin(), seat.processes.end(),
                                    [](const SeatProcess& process) { return process.on_gpu; });
  starts.uses_gpu = starts.uses_gpu || uses_gpu;
  std::set<ProcessKey> living;
  for (const SeatProcess& process : seat.processes) {
    const bool counted = starts.counted.contains(process.key);
    if (counted || process.on_gpu || !starts.uses_gpu) {
      living.insert(process.key);
      starts.count += counted ? 0 : 1;
    }
  }
  starts.counted = std::move(living);
  return starts.count;
}

}  // namespace apu
