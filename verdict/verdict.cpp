#include "verdict/verdict.h"

#include <algorithm>
#include <utility>

namespace apu {

std::string_view to_label(Verdict verdict) {
  switch (verdict) {
    case Verdict::kUnknown:
      return "unknown";
    case Verdict::kHealthy:
      return "healthy";
    case Verdict::kMemoryPressure:
      return "memory_pressure";
    case Verdict::kIoStarvation:
      return "io_starvation";
    case Verdict::kGpuMemoryExhausted:
      return "gpu_memory_exhausted";
    case Verdict::kGpuFault:
      return "gpu_fault";
    case Verdict::kKfdThrash:
      return "kfd_thrash";
  }
  return "unknown";
}

bool is_fault(Verdict verdict) {
  return verdict != Verdict::kUnknown && verdict != Verdict::kHealthy;
}

Evidence make_evidence(std::string what, std::string value, std::string threshold,
                       std::string source) {
  return {std::move(what), std::move(value), std::move(threshold), std::nullopt, std::move(source)};
}

void convict(Judgement& judgement, Verdict verdict, Evidence evidence) {
  if (verdict > judgement.verdict) {
    judgement.verdict = verdict;
    judgement.since = evidence.since;
  } else if (verdict == judgement.verdict && evidence.since) {
    judgement.since = std::min(judgement.since.value_or(*evidence.since), *evidence.since);
  }
  evidence.speaks_for = verdict;
  judgement.evidence.push_back(std::move(evidence));
}

void sort_evidence(Judgement& judgement) {
  std::stable_sort(
      judgement.evidence.begin(), judgement.evidence.end(),
      [](const Evidence& a, const Evidence& b) { return a.speaks_for > b.speaks_for; });
}

}  // namespace apu
