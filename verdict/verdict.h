#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "exporter/clock.h"

namespace apu {

/// What is wrong with a host, the worse the later: of those that apply the last one holds.
enum class Verdict {
  kUnknown,  ///< the evidence does not suffice, or shows nothing of the kinds below
  kHealthy,
  kMemoryPressure,
  kIoStarvation,
  kGpuMemoryExhausted,
  kGpuFault,
  kKfdThrash,  ///< restore workers thrash: loads may slow down or never finish
};

/// Label value of apu_verdict.
std::string_view to_label(Verdict verdict);

/// Whether `verdict` names something that is wrong.
bool is_fault(Verdict verdict);

/// One reason for a verdict.
struct Evidence {
  std::string what;       ///< "restore hogs", in words
  std::string value;      ///< "1.02/s over 35 h 42 min"
  std::string threshold;  ///< what it is held against: "more than 0.2/s for 3 min"; may be empty
  std::optional<TimePoint> since;
  std::string source{};           ///< the file or log that says it; may be empty
  std::optional<TimePoint> at{};  ///< when it was last seen
  Verdict speaks_for = Verdict::kUnknown;
};

/// A verdict with all that it rests on.
struct Judgement {
  Verdict verdict = Verdict::kUnknown;
  std::optional<TimePoint> since;  ///< of the first evidence for it
  /// When it began by extrapolation, if the first evidence is of something long under way.
  std::optional<TimePoint> estimated_since;
  std::vector<Evidence> evidence;
  std::vector<std::string> doubts;  ///< what speaks for a fault, and does not suffice
};

/// Evidence that says nothing of its time.
Evidence make_evidence(std::string what, std::string value, std::string threshold,
                       std::string source);

/// Puts the evidence for what is worst first; what speaks for the same keeps its order.
void sort_evidence(Judgement& judgement);

/// Adds evidence for `verdict`, and raises the judgement to it. Evidence for less stays.
void convict(Judgement& judgement, Verdict verdict, Evidence evidence);

}  // namespace apu
