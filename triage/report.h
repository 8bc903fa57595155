#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collectors/host.h"
#include "exporter/clock.h"
#include "exporter/store.h"
#include "verdict/host_verdict.h"

namespace apu {

/// A seat, for whoever has to decide what to do with it.
struct TriageSeat {
  std::string name;
  std::optional<SeatState> state;  ///< absent while nothing is known of it
  std::optional<TimePoint> since;
  std::optional<std::int64_t> pid;  ///< of the process that is worst off
  std::string command;              ///< its comm, any bytes
  std::optional<std::uint64_t> gpu_bytes;
  std::optional<std::uint64_t> charged_bytes;  ///< memory.current
  std::vector<Evidence> reasons;
};

/// A pool of memory.
struct TriagePool {
  std::string name;
  std::uint64_t used_bytes = 0;
  std::uint64_t size_bytes = 0;
};

/// A kind of event of this boot.
struct TriageEvent {
  std::string event;  ///< label of apu_kernel_events_total, or "hog reports of FUNCTION"
  std::uint64_t count = 0;
  std::optional<TimePoint> last;
};

/// What is wrong, how that is known, and what to do.
struct TriageReport {
  TimePoint now;
  std::optional<HostFacts> host;  ///< what host it is
  bool has_verdict = false;       ///< false before the first pass
  bool no_gpu = false;
  HostJudgement verdict;
  std::vector<TriageSeat> seats;  ///< the worst first
  std::vector<TriagePool> pools;
  std::vector<TriageEvent> events;  ///< the newest first

  /// Whether the verdict, or the state of a seat, is a fault.
  [[nodiscard]] bool is_fault() const;
};

/// Gathers it from the newest facts. Reads no file.
TriageReport make_triage(const Store& store, TimePoint now);

/// For a person in an incident: 80 columns, one screen, the answer in the first line.
std::string to_triage_text(const TriageReport& report);

/// The same for a program: docs/triage-json.md.
std::string to_triage_json(const TriageReport& report);

/// The advice that both print.
std::vector<std::string> advice_for(const TriageReport& report);

}  // namespace apu
