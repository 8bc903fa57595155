#include "verdict/advice.h"

namespace apu {
namespace {

std::vector<std::string> thrash_advice() {
  return {
      "While it lasts: free memory first (stop the process that was started "
      "last, swapoff is too slow), then restart the seats whose loads hang. If loads still hang, "
      "reboot; a stuck process can keep the reboot waiting",
      "Do not run ps aux, pgrep -f or anything else that reads /proc/PID/cmdline: it can hang too. "
      "ps -ww -eLo tid,stat,wchan,cgroup is safe",
      "Prevent it: load models without mmap (--no-mmap), lock them (--mlock), set "
      "HSA_USERPTR_FOR_PAGED_MEM=0, give each seat a MemoryLow that reaches through its slices, "
      "lower vm.swappiness, leave headroom for GTT: no cgroup is charged for it",
      "For a bug report add: kernel and driver version, the amdgpu and ttm parameters, RAM and "
      "swap, how many processes hold GPU memory, and the output of apu_exporter --once"};
}

std::vector<std::string> exhausted_advice() {
  return {
      "Compare what the seats need with the limits: apu_gpu_memory_size_bytes, "
      "/sys/module/ttm/parameters/pages_limit, /sys/kernel/debug/kfd/mem_limit",
      "A refusal is accounting: it came on hosts with half their RAM free, and says nothing about "
      "thrashing by itself"};
}

std::vector<std::string> fault_advice() {
  return {
      "Look at what came first: a hang of MES or of a ring after memory pressure is often its "
      "result, one without it is the firmware's or the driver's",
      "For a bug report add: kernel, linux-firmware and ROCm versions, and what ran on the GPU"};
}

std::vector<std::string> pressure_advice() {
  return {
      "Set budgets: GTT is charged to no cgroup, so the OOM killer of the host takes "
      "containers that are far below their limit"};
}

std::vector<std::string> starvation_advice() {
  return {
      "Find what else uses the disk, and stop or slow it (systemd-cgtop -b -n 2 -i reads cgroups "
      "alone; iotop reads /proc/PID/cmdline, which can hang): a load that starves ends once it "
      "gets "
      "its share",
      "Load one large seat at a time; give the seats' units IOWeight above the others'",
      "Do not restart a load that still reads: it would begin anew"};
}

}  // namespace

std::string_view explain(Verdict verdict) {
  switch (verdict) {
    case Verdict::kKfdThrash:
      return "The kernel takes pages that the GPU has mapped, and KFD maps them again without end. "
             "Model loads may slow down or never finish.";
    case Verdict::kGpuFault:
      return "The GPU, its firmware or its driver failed.";
    case Verdict::kGpuMemoryExhausted:
      return "Memory for the GPU was refused, or nearly none is left.";
    case Verdict::kIoStarvation:
      return "A load waits for storage. It goes on, slowly.";
    case Verdict::kMemoryPressure:
      return "The host is short of memory. The next load may start a storm of evictions.";
    default:
      return "";
  }
}

std::vector<std::string> advice_for(Verdict verdict) {
  switch (verdict) {
    case Verdict::kKfdThrash:
      return thrash_advice();
    case Verdict::kGpuFault:
      return fault_advice();
    case Verdict::kGpuMemoryExhausted:
      return exhausted_advice();
    case Verdict::kIoStarvation:
      return starvation_advice();
    case Verdict::kMemoryPressure:
      return pressure_advice();
    default:
      return {};
  }
}

}  // namespace apu
