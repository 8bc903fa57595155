#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "collectors/cgroup/cgroup.h"
#include "collectors/gpu.h"
#include "collectors/gpu_clients/gpu_clients.h"
#include "collectors/kfd.h"
#include "collectors/seats/index.h"

namespace apu {

/// What lies in one pool of a GPU, by pool: vram, gtt; bytes.
using PoolsOfGpu = std::map<std::string, std::uint64_t>;

/// What the clients of all processes hold. docs/memory-accounting.md has the whole account.
struct ClientMemory {
  /// By process and GPU. A process of which a client could not be read is not in it.
  std::map<ProcessKey, std::map<std::string, PoolsOfGpu>> by_process;
  /// Processes and GPUs of which the kernel may have left out locked objects.
  std::set<std::pair<ProcessKey, std::string>> may_lack;
  /// By process: clients and descriptors that could not be read.
  std::map<ProcessKey, std::uint64_t> unread;
  /// By GPU: what is in use beyond what clients show; only where all of them were read.
  std::map<std::string, PoolsOfGpu> unowned;
};

/// What the clients of a process hold on all GPUs, bytes; nullopt where a part is not known.
std::optional<std::uint64_t> held_by_clients(const ClientMemory& clients, const ProcessKey& key);

/// Whether an entry of KFD is that of this process.
bool is_of(const KfdProcess& entry, const ProcessKey& process);

/// What the collector of clients found, in these terms.
ClientMemory to_client_memory(const GpuClientsFacts& facts);

/// GPU memory and KFD's numbers of one seat.
struct SeatGpu {
  std::optional<std::uint64_t> vram;               ///< bytes, by DRM fdinfo
  std::optional<std::uint64_t> gtt;                ///< bytes, by DRM fdinfo
  std::optional<std::uint64_t> kfd_allocated;      ///< bytes: every hipMalloc, wherever it lies
  std::map<ProcessKey, std::uint64_t> evicted_ms;  ///< of each process that lives
  std::optional<KfdQueueCounts> queues;
};

struct SeatAccount {
  std::map<std::string, SeatGpu> gpus;  ///< by PCI address
  /// GTT of its processes that its memory controller does not see, bytes: never negative.
  std::optional<std::uint64_t> divergence;
  /// Clients, and descriptors of unknown ones, that could not be read.
  std::optional<std::uint64_t> unread;
};

/// The newest facts of the collectors that read; nullptr where there are none.
struct SeatInputs {
  const CgroupFacts* cgroup = nullptr;
  const GpuFacts* gpu = nullptr;
  const KfdFacts* kfd = nullptr;
  const ClientMemory* clients = nullptr;
};

/// The account of each seat, by its name.
std::map<std::string, SeatAccount> account_seats(const SeatInputs& inputs);

/// GTT of all GPUs that no memory cgroup is charged for, bytes.
std::optional<std::uint64_t> host_divergence(const SeatInputs& inputs);

/// What is used of a pool and no living process's client accounts for, bytes, by GPU and pool.
/// Absent where a client was unreadable, or may have more than was read: where the kernel leaves
/// out locked objects, that is all but processes whose clients show as much as KFD gave them.
std::map<std::pair<std::string, std::string>, std::uint64_t> unowned_memory(
    const SeatInputs& inputs);

}  // namespace apu
