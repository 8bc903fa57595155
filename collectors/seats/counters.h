#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "collectors/seats/index.h"

namespace apu {

/// Adds up a counter of things that come and go, threads or processes: the sum never falls.
class SurvivingSum {
 public:
  /// What all of them counted so far, from what could be read now. One of which `lives` is false
  /// keeps what it had; so does one that lives and could not be read.
  template <typename Lives>
  std::uint64_t total(const std::map<ProcessIdentity, std::uint64_t>& values, Lives lives) {
    for (const auto& [key, value] : values) {
      if (const auto ended = ended_.find(key); ended != ended_.end()) {
        living_[key] = ended->second;  // it was away for a pass
        ended_.erase(ended);
      }
      std::uint64_t& last = living_[key];
      before_ += value < last ? last : 0;  // it began anew
      last = value;
    }
    std::erase_if(living_, [&](const auto& entry) {
      const bool ended = !lives(entry.first);
      if (ended) {
        ended_[entry.first] = entry.second;
      }
      return ended;
    });
    return sum();
  }

 private:
  static constexpr size_t kRemembered = 1024;  // that ended: one may come back

  std::uint64_t sum();

  std::uint64_t before_ = 0;  // of those that are no longer remembered, or began anew
  std::map<ProcessIdentity, std::uint64_t> ended_;
  std::map<ProcessIdentity, std::uint64_t> living_;
};

/// Makes of counters of processes a counter of their seat, which never falls while the seat lives.
class SeatCounters {
 public:
  /// The seat's count, from those of its processes that could be read now.
  std::uint64_t total(const Seat& seat, const std::string& what,
                      const std::map<ProcessKey, std::uint64_t>& values);

  void keep_only(const SeatIndex& index) { apu::keep_only(index, sums_); }

 private:
  std::map<std::string, std::map<std::string, SurvivingSum>> sums_;  // by seat and counter
};

/// Counts the processes of a seat that started, as far as it was watched.
class ProcessStarts {
 public:
  /// Those that were seen to use the GPU; of a seat that uses none, all of its processes.
  std::uint64_t count(const Seat& seat);

  void keep_only(const SeatIndex& index) { apu::keep_only(index, starts_); }

 private:
  struct Starts {
    std::uint64_t count = 0;
    bool uses_gpu = false;
    std::set<ProcessKey> counted;  // that live
  };

  std::map<std::string, Starts> starts_;
};

}  // namespace apu
