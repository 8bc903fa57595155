#include "collectors/seats/accounting.h"

#include <algorithm>

namespace apu {
namespace {

template <typename Number>
void add(std::optional<Number>& sum, std::optional<Number> value) {
  if (value) {
    sum = sum.value_or(0) + *value;
  }
}

constexpr std::pair<const char*, std::optional<std::uint64_t> PoolBytes::*> kPools[] = {
    {"vram", &PoolBytes::vram}, {"gtt", &PoolBytes::gtt}};

std::uint64_t less(std::uint64_t from, std::uint64_t amount) {
  return from > amount ? from - amount : 0;
}

/// Sums up a pool over the processes of a seat; absent where one does not tell it.
std::optional<std::uint64_t> sum_of(const SeatInputs& inputs, const Seat& seat,
                                    const std::string& gpu, const std::string& pool) {
  std::uint64_t sum = 0;
  for (const SeatProcess& process : seat.processes) {
    const auto found = inputs.clients->by_process.find(process.key);
    if (found == inputs.clients->by_process.end()) {
      if (process.on_gpu) {
        return std::nullopt;  // a sum without it would look like memory that was freed
      }
      continue;
    }
    const auto pools = found->second.find(gpu);
    if (pools == found->second.end()) {
      continue;
    }
    const auto bytes = pools->second.find(pool);
    if (bytes == pools->second.end()) {
      return std::nullopt;
    }
    sum += bytes->second;
  }
  return sum;
}

void add_clients(const SeatInputs& inputs, const Seat& seat, SeatAccount& account) {
  std::set<std::string> gpus;
  for (const SeatProcess& process : seat.processes) {
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
        std::any_of(seat.processes.begin(), seat.processes.end(), [&](const SeatProcess& each) {
          return each.key.pid == process.pid && each.key.start_ticks == process.start_ticks;
        });
    if (!ours) {
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

/// Whether what KFD allocates on a GPU lies in GTT: on an APU whose carve-out is not the larger
/// pool, where newer kernels place it.
bool lies_in_gtt(const SeatInputs& inputs, const std::string& address) {
  return inputs.gpu != nullptr &&
         std::any_of(inputs.gpu->gpus.begin(), inputs.gpu->gpus.end(), [&](const Gpu& gpu) {
           return gpu.device.pci_address == address && gpu.unified_memory == true &&
                  gpu.vram.size_bytes && gpu.gtt.size_bytes &&
                  *gpu.vram.size_bytes <= *gpu.gtt.size_bytes;
         });
}

/// GTT of a seat, by fdinfo; where that cannot be read, KFD's total on an APU, which lies in GTT.
std::optional<std::uint64_t> gtt_of(const SeatInputs& inputs, const SeatAccount& account) {
  std::optional<std::uint64_t> sum;
  for (const auto& [address, gpu] : account.gpus) {
    const auto gtt = gpu.gtt                        ? gpu.gtt
                     : lies_in_gtt(inputs, address) ? gpu.kfd_allocated
                                                    : std::nullopt;
    if (!gtt) {
      return std::nullopt;
    }
    add(sum, gtt);
  }
  return sum;
}

std::optional<std::uint64_t> divergence_of(const SeatInputs& inputs, const Seat& seat,
                                           const SeatAccount& account) {
  const auto memory = inputs.cgroup->memory.find(seat.name);
  const auto gtt = gtt_of(inputs, account);
  if (memory == inputs.cgroup->memory.end() || !gtt || !memory->second.gpu_charged) {
    return std::nullopt;
  }
  return less(*gtt, *memory->second.gpu_charged);
}

}  // namespace

ClientMemory to_client_memory(const GpuClientsFacts& facts) {
  ClientMemory memory;
  memory.complete = facts.all_known;
  for (const GpuProcess& process : facts.processes) {
    if (process.unread > 0) {
      continue;
    }
    auto& gpus = memory.by_process[process.process];
    for (const GpuClient& client : process.clients) {
      gpus[client.key.gpu];  // it is there, though a pool may be unknown
      for (const auto& [pool, bytes_of] : kPools) {
        const auto member = bytes_of;  // clang 14 captures no structured binding
        if (std::all_of(process.clients.begin(), process.clients.end(),
                        [&](const GpuClient& other) {
                          return other.key.gpu != client.key.gpu || other.memory.*member;
                        })) {
          gpus[client.key.gpu][pool] += *(client.memory.*member);
        }
      }
    }
  }
  for (const auto& [gpu, total] : facts.gpus) {
    if (total.exact && total.memory.known()) {
      memory.by_gpu[gpu] = {{"vram", *total.memory.vram}, {"gtt", *total.memory.gtt}};
    } else {
      memory.uncertain.insert(gpu);
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
    add(used, gpu.gtt.used_bytes);
  }
  return used && inputs.cgroup->gpu_charged
             ? std::optional(less(*used, *inputs.cgroup->gpu_charged))
             : std::nullopt;
}

std::map<std::pair<std::string, std::string>, std::uint64_t> unowned_memory(
    const SeatInputs& inputs) {
  std::map<std::pair<std::string, std::string>, std::uint64_t> unowned;
  if (inputs.gpu == nullptr || inputs.clients == nullptr) {
    return unowned;
  }
  for (const Gpu& gpu : inputs.gpu->gpus) {
    const std::string& address = gpu.device.pci_address;
    if (!inputs.clients->complete || inputs.clients->uncertain.contains(address)) {
      continue;
    }
    const auto clients = inputs.clients->by_gpu.find(address);
    const PoolsOfGpu owned_pools =
        clients == inputs.clients->by_gpu.end() ? PoolsOfGpu() : clients->second;
    for (const auto& [pool, used] :
         {std::pair{"vram", gpu.vram.used_bytes}, {"gtt", gpu.gtt.used_bytes}}) {
      const auto owned = owned_pools.find(pool);
      if (used) {
        unowned[{address, pool}] = less(*used, owned == owned_pools.end() ? 0 : owned->second);
      }
    }
  }
  return unowned;
}

}  // namespace apu
