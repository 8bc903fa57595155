#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "collectors/kernel_log/kernel_log.h"
#include "verdict/seat_state.h"
#include "verdict/verdict.h"

namespace apu {

// --- thresholds

/// Share of the last minute in which some task waited for memory. The engines of the record died at
/// 5.55 %, with 87 GiB available.
constexpr double kMemoryStalled = 0.02;

/// Pages a second that were reclaimed, moved or swapped out over the last minute; each that the GPU
/// has mapped stops queues.
constexpr double kPagesTaken = 1000;

/// What must be left of a limit: the larger of the two. A model's next buffer is of that size.
constexpr double kHeadroomBytes = 2.0 * 1024 * 1024 * 1024;
constexpr double kHeadroomShare = 0.02;

/// An event of the kernel's log is news for so long.
constexpr std::chrono::minutes kRecentEvent{15};

/// An event may be later than now by so much, by the error of the boot's time.
constexpr std::chrono::minutes kClockError{1};

// --- evidence

/// Memory for the GPU that is limited, bytes.
struct GpuLimit {
  std::string what;    ///< "GTT of 0000:c5:00.0"
  std::string source;  ///< the file
  double size = 0;
  double used = 0;

  [[nodiscard]] bool is_nearly_reached() const;
};

/// A seat as the verdict sees it.
struct SeatEvidence {
  SeatState state = SeatState::kDown;
  TimePoint since;
  std::vector<Evidence> reasons;
  bool serves = false;  ///< it was seen to have loaded, and to serve
};

/// All that the verdict follows from. What is absent is not known.
struct HostEvidence {
  TimePoint now;
  bool has_procfs = false;
  bool has_kfd = false;
  bool no_gpu = false;                         ///< known: no card is the driver's
  const KernelLogFacts* kernel_log = nullptr;  ///< of this boot
  std::optional<double> memory_stalled;        ///< PSI memory some avg60, 0 to 1
  std::optional<double> pages_taken;  ///< a second: stolen, migrated and swapped out, over 60 s
  std::vector<GpuLimit> limits;
  std::map<std::string, SeatEvidence> seats;
  std::uint64_t seats_omitted = 0;
  std::vector<std::string> not_known;  ///< in words, each the name of what is missing and why
};

/// The verdict, and which seats it concerns.
struct HostJudgement {
  Judgement judgement;
  std::vector<std::string> concerned;  ///< seats in a state that is a fault
  std::vector<std::string> safe;       ///< seats that serve: a storm does not reach those resident
  /// Seats that compute or idle, and were not seen to serve: a load that hangs can look so.
  std::vector<std::string> unproven;
  std::vector<std::string> not_known;  ///< in words
};

/// The verdict on the host. Pure.
HostJudgement judge_host(const HostEvidence& evidence);

}  // namespace apu
