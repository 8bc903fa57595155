#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "exporter/clock.h"
#include "exporter/collector.h"

namespace apu {

enum class KfdQueueKind { kCompute, kSdma, kOther };

/// The kind of a queue by its `type` file.
///
/// Source: enum kfd_queue_type in drivers/gpu/drm/amd/amdkfd/kfd_priv.h, which is not the ioctl's
/// numbering: 0 compute (AQL too), 1 SDMA, 2 the driver's own, then DIQ up to 6.12 or so, SDMA over
/// XGMI, SDMA by engine, whose numbers move when DIQ goes. No process has a DIQ, so 3 is SDMA.
KfdQueueKind kfd_queue_kind(std::uint64_t type);

/// The user queues of a process on a GPU that exist, evicted ones too.
struct KfdQueueCounts {
  std::uint64_t compute = 0;
  std::uint64_t sdma = 0;
  std::uint64_t other = 0;
};

/// What KFD holds for a process on one GPU. From /sys/class/kfd/kfd/proc/<pid>, by kfd_procfs_show
/// and kfd_procfs_stats_show in drivers/gpu/drm/amd/amdkfd/kfd_process.c. Sums over the contexts of
/// the process where it has several.
struct KfdProcessGpu {
  std::uint32_t gpu_id = 0;  ///< KFD's own number
  std::string gpu;           ///< PCI address by KFD's topology; empty where that does not tell

  /// vram_<gpu_id>: what was asked for as VRAM (every hipMalloc), wherever it was placed.
  std::optional<std::uint64_t> vram_bytes;

  /// stats_<gpu_id>/evicted_ms: how long queues were evicted. An eviction is added when it ends:
  /// while the queues do not come back, it stands still. Contexts that went away count on.
  std::optional<std::uint64_t> evicted_ms;

  /// queues/*; absent on kernels without that directory, or while a queue of it could not be read.
  std::optional<KfdQueueCounts> queues;
};

/// What /proc says of the process of a KFD entry.
enum class KfdProcessState {
  kUnknown,  ///< /proc does not show the host's processes, or could not be read
  kAlive,
  kOrphan,  ///< gone, or a zombie: its GPU memory is still held
};

/// A process that KFD has an entry for: from its opening of /dev/kfd until the GPU has let go of
/// all that it held, which can be long after its end.
struct KfdProcess {
  std::int64_t pid = 0;  ///< thread group id, in the host's process namespace
  KfdProcessState state = KfdProcessState::kUnknown;
  std::string comm;  ///< at most 15 bytes, any bytes; empty where the process is gone or unknown
  std::optional<std::uint64_t> start_ticks;  ///< since boot; with pid, an identity
  /// How long it has been an orphan at least: since the first pass that found it so.
  std::optional<std::chrono::duration<double>> orphan_for;
  std::vector<KfdProcessGpu> gpus;  ///< by gpu_id
};

/// The facts of a pass.
struct KfdFacts {
  std::vector<KfdProcess> processes;    ///< by pid
  bool host_processes_visible = false;  ///< else no orphan can be told
};

Families to_families(const KfdFacts& facts);

std::span<const MetricInfo> kfd_metrics();

/// The processes that use a GPU through KFD. Sources "kfd"; and "host_processes", without which
/// orphans cannot be told: not there in a process namespace of one's own, or where hidepid hides
/// others' processes. Never opens sdma_*, whose reader can wait for the process for ever.
std::unique_ptr<Collector> make_kfd_collector(const CollectorContext& context);

}  // namespace apu
