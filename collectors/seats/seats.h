#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "collectors/seats/accounting.h"
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

/// Makes of counters of processes, which come and go, a counter of their seat, which never falls
/// while the seat lives.
class SeatCounters {
 public:
  /// The seat's count, from those of its processes that could be read now. One that ended keeps
  /// what it had; so does one that could not be read.
  std::uint64_t total(const Seat& seat, const std::string& gpu,
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

/// The facts of a pass.
struct SeatsFacts {
  std::map<std::string, SeatAccount> accounts;  ///< by seat
  std::optional<std::uint64_t> host_divergence;
  std::map<std::pair<std::string, std::string>, std::uint64_t> unowned;  ///< by GPU and pool
};

std::span<const MetricInfo> seats_metrics();

/// What the seats hold on the GPUs, and what of it their memory cgroups do not see. Derived: reads
/// no file, but the newest facts of cgroup, gpu, kfd and gpu_clients.
std::unique_ptr<Collector> make_seats_collector(const CollectorContext& context);

}  // namespace apu
