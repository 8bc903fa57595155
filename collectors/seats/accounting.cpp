#include "collectors/seats/accounting.h"

#include <algorithm>
#include <iterator>

namespace apu {
namespace {

constexpr std::pair<const char*, std::optional<std::uint64_t> PoolBytes::*> kPools[] = {
    {"vram", &PoolBytes::vram}, {"gtt", &PoolBytes::gtt}};

std::uint64_t less(std::uint64_t from, std::uint64_t amount) {
  return from > amount ? from - amount : 0;
}

bool lives(const KfdProcess& process) {
  return process.state != KfdProcessState::kOrphan;
}

/// What KFD gave a living process on a GPU; nullopt where it does not tell.
std::optional<std::uint64_t> kfd_total_of(const SeatInputs& inputs, const ProcessKey& key,
                                          const std::string& gpu) {
  std::optional<std::uint64_t> sum;
  for (const KfdProcess& process :
       inputs.kfd == nullptr ? std::vector<KfdProcess>() : inputs.kfd->processes) {
    if (!lives(process) || !is_of(process, key)) {
      continue;
    }
    for (const KfdProcessGpu& part : process.gpus) {
      if (part.gpu == gpu && !part.vram_bytes) {
        return std::nullopt;
      }
      if (part.gpu == gpu) {
        sum = sum.value_or(0) + *part.vram_bytes;
      }
    }
  }
  return sum;
}

std::uint64_t sum_of(const PoolsOfGpu& pools) {
  std::uint64_t sum = 0;
  for (const auto& [pool, bytes] : pools) {
    sum += bytes;
  }
  return sum;
}

/// What the clients of a process hold of a pool; nullopt where that is not known.
std::optional<std::uint64_t> held_by(const SeatInputs& inputs, const SeatProcess& process,
                                     const std::string& gpu, const std::string& pool) {
  constexpr std::optional<std::uint64_t> kNone = 0;
  const auto found = inputs.clients->by_process.find(process.key);
  if (found == inputs.clients->by_process.end()) {
    return process.on_gpu ? std::nullopt : kNone;
  }
  const auto kfd_total = kfd_total_of(inputs, process.key, gpu);
  const auto pools = found->second.find(gpu);
  if (pools == found->second.end()) {
    return kfd_total.value_or(0) > 0 ? std::nullopt : kNone;
  }
  // KFD never gives less than its buffers hold: objects were left out.
  if (inputs.clients->may_lack.contains({process.key, gpu}) && kfd_total &&
      sum_of(pools->second) < *kfd_total) {
    return std::nullopt;
  }
  const auto bytes = pools->second.find(pool);
  return bytes == pools->second.end() ? std::nullopt : std::optional(bytes->second);
}

/// Sums up a pool over the processes of a seat; absent where one does not tell it: a sum without it
/// would look like memory that was freed.
std::optional<std::uint64_t> sum_of(const SeatInputs& inputs, const Seat& seat,
                                    const std::string& gpu, const std::string& pool) {
  std::uint64_t sum = 0;
  for (const SeatProcess& process : seat.processes) {
    const auto held = held_by(inputs, process, gpu, pool);
    if (!held) {
      return std::nullopt;
    }
    sum += *held;
  }
  return sum;
}

void add_clients(const SeatInputs& inputs, const Seat& seat, SeatAccount& account) {
  std::set<std::string> gpus;
  account.unread = 0;
  for (const SeatProcess& process : seat.processes) {
    const auto unread = inputs.clients->unread.find(process.key);
    *account.unread += unread == inputs.clients->unread.end() ? 0 : unread->second;
    const auto found = inputs.clients->by_process.find(process.key);
    if (found != inputs.clients->by_process.end()) {
      for (const auto& [gpu, pools] : found->second) {
        gpus.insert(gpu);
      }
    }
  }
  for (const std::string& gpu : gpus) {
    account.gpus[gpu].vram = sum_of(inputs, seat, gpu, "vram");
    account.gpus[gpu].gtt = sum_of(inputs, seat, gpu, "gtt");
  }
}

KfdQueueCounts sum_of(const KfdQueueCounts& a, const KfdQueueCounts& b) {
  return {a.compute + b.compute, a.sdma + b.sdma, a.other + b.other};
}

void add_kfd(const SeatInputs& inputs, const Seat& seat, SeatAccount& account) {
  std::set<std::string> seen;
  for (const KfdProcess& process : inputs.kfd->processes) {
    const bool ours =
        std::any_of(seat.processes.begin(), seat.processes.end(),
                    [&](const SeatProcess& each) { return is_of(process, each.key); });
    if (!ours || !lives(process)) {
      continue;
    }
    for (const KfdProcessGpu& gpu : process.gpus) {
      if (gpu.gpu.empty()) {
        continue;
      }
      SeatGpu& sums = account.gpus[gpu.gpu];
      const bool first = seen.insert(gpu.gpu).second;
      // One that cannot be read makes the sum absent, and not smaller.
      sums.kfd_allocated = gpu.vram_bytes && (first || sums.kfd_allocated)
                               ? std::optional(sums.kfd_allocated.value_or(0) + *gpu.vram_bytes)
                               : std::nullopt;
      if (gpu.evicted_ms) {
        sums.evicted_ms[{process.pid, *process.start_ticks}] = *gpu.evicted_ms;
      }
      if (!gpu.queues || !(first || sums.queues)) {
        sums.queues = std::nullopt;
      } else {
        sums.queues = sum_of(sums.queues.value_or(KfdQueueCounts{}), *gpu.queues);
      }
    }
  }
}

/// Whether what KFD allocates on a GPU lies in GTT: on an APU whose carve-out is the smaller pool.
/// Else newer kernels place it in the carve-out.
bool lies_in_gtt(const SeatInputs& inputs, const std::string& address) {
  return inputs.gpu != nullptr &&
         std::any_of(inputs.gpu->gpus.begin(), inputs.gpu->gpus.end(), [&](const Gpu& gpu) {
           return gpu.device.pci_address == address && gpu.unified_memory == true &&
                  gpu.vram.size_bytes && gpu.gtt.size_bytes &&
                  *gpu.vram.size_bytes < *gpu.gtt.size_bytes;
         });
}

/// GTT of a process, by fdinfo; where that is not known, KFD's total on an APU, which lies in GTT.
std::optional<std::uint64_t> gtt_of(const SeatInputs& inputs, const SeatProcess& process,
                                    const std::string& gpu) {
  if (inputs.clients != nullptr) {
    if (const auto held = held_by(inputs, process, gpu, "gtt")) {
      return held;
    }
  } else if (!process.on_gpu) {
    return 0;
  }
  return lies_in_gtt(inputs, gpu) ? kfd_total_of(inputs, process.key, gpu) : std::nullopt;
}

/// GTT of a seat on all GPUs; absent where that of one process is not known.
std::optional<std::uint64_t> gtt_of(const SeatInputs& inputs, const Seat& seat,
                                    const SeatAccount& account) {
  if (account.gpus.empty()) {
    return std::nullopt;
  }
  std::uint64_t sum = 0;
  for (const auto& [address, gpu] : account.gpus) {
    for (const SeatProcess& process : seat.processes) {
      const auto gtt = gtt_of(inputs, process, address);
      if (!gtt) {
        return std::nullopt;
      }
      sum += *gtt;
    }
  }
  return sum;
}

/// What a seat's cgroup is charged for GPU pages. Where the kernel charges none that is known of
/// any seat, those in a session or a slice among them, of which no cgroup is theirs alone.
std::optional<std::uint64_t> gpu_charge_of(const SeatInputs& inputs, const Seat& seat) {
  if (inputs.cgroup->charges_gpu == false) {
    return 0;
  }
  const auto memory = inputs.cgroup->memory.find(seat.name);
  return memory == inputs.cgroup->memory.end() ? std::nullopt : memory->second.gpu_charged;
}

std::optional<std::uint64_t> divergence_of(const SeatInputs& inputs, const Seat& seat,
                                           const SeatAccount& account) {
  const auto gtt = gtt_of(inputs, seat, account);
  const auto charged = gpu_charge_of(inputs, seat);
  return gtt && charged ? std::optional(less(*gtt, *charged)) : std::nullopt;
}

/// Adds a process all of whose clients are known.
void add_process(ClientMemory& memory, const GpuProcess& process) {
  auto& gpus = memory.by_process[process.process];
  for (const GpuClient& client : process.clients) {
    gpus[client.key.gpu];  // it is there, though a pool may be unknown
    if (client.may_skip) {
      memory.may_lack.insert({process.process, client.key.gpu});
    }
    for (const auto& [pool, bytes_of] : kPools) {
      const auto member = bytes_of;  // clang 14 captures no structured binding
      if (std::all_of(process.clients.begin(), process.clients.end(), [&](const GpuClient& other) {
            return other.key.gpu != client.key.gpu || other.memory.*member;
          })) {
        gpus[client.key.gpu][pool] += *(client.memory.*member);
      }
    }
  }
}

/// Whether the clients of a process show all that it holds on a GPU: beyond doubt where the kernel
/// leaves out nothing, or KFD gave it no more.
bool shows_all(const SeatInputs& inputs, const ProcessKey& process, const std::string& gpu,
               const std::map<std::string, PoolsOfGpu>& gpus) {
  const auto kfd_total = kfd_total_of(inputs, process, gpu);
  const auto pools = gpus.find(gpu);
  if (pools == gpus.end()) {
    return kfd_total.value_or(0) == 0;
  }
  return !inputs.clients->may_lack.contains({process, gpu}) ||
         (kfd_total && sum_of(pools->second) >= *kfd_total);
}

}  // namespace

std::optional<std::uint64_t> held_by_clients(const ClientMemory& clients, const ProcessKey& key) {
  const auto found = clients.by_process.find(key);
  if (found == clients.by_process.end()) {
    return std::nullopt;
  }
  std::uint64_t sum = 0;
  for (const auto& [gpu, pools] : found->second) {
    if (pools.size() < std::size(kPools)) {
      return std::nullopt;
    }
    sum += sum_of(pools);
  }
  return sum;
}

bool is_of(const KfdProcess& entry, const ProcessKey& process) {
  return entry.pid == process.pid && entry.start_ticks == process.start_ticks;
}

ClientMemory to_client_memory(const GpuClientsFacts& facts) {
  ClientMemory memory;
  for (const GpuProcess& process : facts.processes) {
    std::uint64_t& unread = memory.unread[process.process] = process.unread;
    for (const GpuClient& client : process.clients) {
      unread += client.memory.known() ? 0 : 1;
    }
    if (process.unread == 0) {
      add_process(memory, process);
    }
  }
  for (const auto& [gpu, pools] : facts.unowned) {
    for (const auto& [pool, bytes_of] : kPools) {
      if (pools.*bytes_of) {
        memory.unowned[gpu][pool] = *(pools.*bytes_of);
      }
    }
  }
  return memory;
}

std::map<std::string, SeatAccount> account_seats(const SeatInputs& inputs) {
  std::map<std::string, SeatAccount> accounts;
  if (inputs.cgroup == nullptr) {
    return accounts;
  }
  for (const Seat& seat : inputs.cgroup->index->seats) {
    SeatAccount& account = accounts[seat.name];
    if (inputs.clients != nullptr) {
      add_clients(inputs, seat, account);
    }
    if (inputs.kfd != nullptr) {
      add_kfd(inputs, seat, account);
    }
    account.divergence = divergence_of(inputs, seat, account);
  }
  return accounts;
}

std::optional<std::uint64_t> host_divergence(const SeatInputs& inputs) {
  if (inputs.gpu == nullptr || inputs.cgroup == nullptr) {
    return std::nullopt;
  }
  std::optional<std::uint64_t> used;
  for (const Gpu& gpu : inputs.gpu->gpus) {
    if (!gpu.gtt.used_bytes) {
      return std::nullopt;  // a sum without it would look like memory that was freed
    }
    used = used.value_or(0) + *gpu.gtt.used_bytes;
  }
  return used && inputs.cgroup->gpu_charged
             ? std::optional(less(*used, *inputs.cgroup->gpu_charged))
             : std::nullopt;
}

std::map<std::pair<std::string, std::string>, std::uint64_t> unowned_memory(
    const SeatInputs& inputs) {
  std::map<std::pair<std::string, std::string>, std::uint64_t> unowned;
  if (inputs.clients == nullptr) {
    return unowned;
  }
  for (const auto& [gpu, pools] : inputs.clients->unowned) {
    const auto& processes = inputs.clients->by_process;
    const std::string& address = gpu;  // clang 14 captures no structured binding
    if (!std::all_of(processes.begin(), processes.end(), [&](const auto& process) {
          return shows_all(inputs, process.first, address, process.second);
        })) {
      continue;
    }
    for (const auto& [pool, bytes] : pools) {
      unowned[{gpu, pool}] = bytes;
    }
  }
  return unowned;
}

}  // namespace apu
