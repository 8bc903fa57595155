#include "verdict/verdict.h"

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

}  // namespace apu
