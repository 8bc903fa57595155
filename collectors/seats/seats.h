#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "collectors/seats/accounting.h"
#include "collectors/seats/counters.h"
#include "collectors/seats/states.h"
#include "exporter/collector.h"

namespace apu {

/// The process that stands for a seat in apu_seat_info.
class SeatRepresentatives {
 public:
  /// The one that holds most GPU memory, the oldest on a tie; the same one until it ends. nullptr
  /// for a seat without a process.
  const SeatProcess* choose(const Seat& seat, const ClientMemory* clients);

  /// Forgets seats that are gone.
  void keep_only(const SeatIndex& index);

 private:
  std::map<std::string, ProcessKey> chosen_;  // by seat
};

/// The facts of a pass.
struct SeatsFacts {
  std::map<std::string, SeatAccount> accounts;  ///< by seat
  std::optional<std::uint64_t> host_divergence;
  std::map<std::pair<std::string, std::string>, std::uint64_t> unowned;  ///< by GPU and pool
  std::map<std::string, SeatStateFacts> states;  ///< by seat; those of which one is known
};

std::span<const MetricInfo> seats_metrics();

/// What the seats hold on the GPUs, what of it their memory cgroups do not see, and what each seat
/// does. Derived: reads no file, but the newest facts of the collectors that do.
std::unique_ptr<Collector> make_seats_collector(const CollectorContext& context);

}  // namespace apu
