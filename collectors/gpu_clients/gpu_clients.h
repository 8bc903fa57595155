#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "collectors/gpu_clients/client.h"
#include "exporter/collector.h"
#include "exporter/guarded_reader.h"

namespace apu {

/// A client, attributed to one process.
struct GpuClient {
  ClientKey key;
  /// What lies there now; absent where it could not be read in this pass. Where the kernel leaves
  /// out locked objects, what it is known to hold: see Attribution.
  PoolBytes memory;
  bool exact = false;     ///< it was read, and nothing of it can be missing
  bool may_skip = false;  ///< the kernel leaves out locked objects: it may have more
};

/// A process that holds descriptors of a GPU, or that KFD knows.
struct GpuProcess {
  ProcessIdentity process;
  std::string comm;  ///< 15 bytes at most, any bytes
  bool kfd = false;  ///< has a directory in /sys/class/kfd/kfd/proc
  /// Those attributed to it: a client that several processes hold is of the one that KFD knows, or
  /// else of the lowest id. Sum them for the process's memory on a GPU, if unread is 0.
  std::vector<GpuClient> clients;
  /// Descriptors of clients that are not known and could not be read, and 1 if its descriptors
  /// could not be listed.
  unsigned unread = 0;
};

/// All clients of a GPU.
struct GpuTotal {
  std::uint64_t clients = 0;
  PoolBytes memory;    ///< absent if that of one client is
  bool exact = false;  ///< every client's is
};

/// The facts of a pass. Bytes.
struct GpuClientsFacts {
  std::vector<GpuProcess> processes;  ///< by process id
  /// By PCI address; a GPU without a client is not in it. Empty if `all_known` is false.
  std::map<std::string, GpuTotal> gpus;
  /// What the driver says is in use beyond what clients hold, by GPU, in the same pass; absent
  /// where it is not told. Empty if `all_known` is false. Where clients may have more than they
  /// show, more than nobody's.
  GpuPools unowned;
  /// Every client found is known to be of some GPU, and no process was closed to us, or hidden.
  bool all_known = false;
  /// This pass looked at all processes. Others look at those that KFD knows and those found
  /// earlier; but where the memory in use grew, a pass always looks at all.
  bool swept = false;
  /// Clients without known memory, and descriptors of unknown clients.
  std::uint64_t unread = 0;
};

Families to_families(const GpuClientsFacts& facts);

std::span<const MetricInfo> gpu_clients_metrics();

struct GpuClientsSettings {
  std::chrono::milliseconds sweep_every{60'000};
  GuardedReaderSettings reader;
};

/// Who uses the GPU's memory: DRM fdinfo of all processes' descriptors. Amdgpu's alone count.
///
/// Sources: "fdinfo": kPermissionDenied where the descriptors of another user's process cannot be
/// seen (CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH), kBlocked where a file has not answered;
/// "guarded_reads", see GuardedReader. Reads mem_info_*_used of the GPUs, too: what is in use is
/// only comparable to what clients hold if both are of the same moment.
std::unique_ptr<Collector> make_gpu_clients_collector(const CollectorContext& context);

std::unique_ptr<Collector> make_gpu_clients_collector(const CollectorContext& context,
                                                      const GpuClientsSettings& settings);

}  // namespace apu
