#include "collectors/seats/counters.h"

#include <algorithm>
#include <set>

namespace apu {

std::uint64_t SeatCounters::total(const Seat& seat, const std::string& what,
                                  const std::map<ProcessKey, std::uint64_t>& values) {
  Count& count = counts_[{seat.name, what}];
  for (const auto& [process, value] : values) {
    count.living[process] = value;
    count.ended.erase(process);  // it was away for a pass
  }
  std::erase_if(count.living, [&](const auto& entry) {
    const bool lives =
        std::any_of(seat.processes.begin(), seat.processes.end(),
                    [&](const SeatProcess& process) { return process.key == entry.first; });
    if (!lives) {
      count.ended[entry.first] = entry.second;
    }
    return !lives;
  });
  while (count.ended.size() > kRemembered) {
    count.before += count.ended.begin()->second;
    count.ended.erase(count.ended.begin());
  }
  std::uint64_t total = count.before;
  for (const auto* processes : {&count.living, &count.ended}) {
    for (const auto& [process, value] : *processes) {
      total += value;
    }
  }
  return total;
}

void SeatCounters::keep_only(const SeatIndex& index) {
  std::set<std::string> names;
  for (const Seat& seat : index.seats) {
    names.insert(seat.name);
  }
  std::erase_if(counts_, [&](const auto& entry) { return !names.contains(entry.first.first); });
}

}  // namespace apu
