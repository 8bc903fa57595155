#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "collectors/seats/index.h"

namespace apu {

/// Makes of counters of processes, which come and go, a counter of their seat, which never falls
/// while the seat lives.
class SeatCounters {
 public:
  /// The seat's count, from those of its processes that could be read now. One that ended keeps
  /// what it had; so does one that could not be read.
  std::uint64_t total(const Seat& seat, const std::string& what,
                      const std::map<ProcessKey, std::uint64_t>& values);

  void keep_only(const SeatIndex& index);

 private:
  static constexpr size_t kRemembered = 64;  // that ended: one may come back

  struct Count {
    std::uint64_t before = 0;  // of those that are no longer remembered
    std::map<ProcessKey, std::uint64_t> ended;
    std::map<ProcessKey, std::uint64_t> living;
  };

  std::map<std::pair<std::string, std::string>, Count> counts_;
};

}  // namespace apu
