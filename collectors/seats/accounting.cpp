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

std::uint64_t less(std::uint64_t from, std::uint64_t amount) {
  return from > amount ? from - amount : 0;
}

void add_clients(const SeatInputs& inputs, const Seat& seat, SeatAccount& account) {
  bool all_known = true;
  for (const SeatProcess& process : seat.processes) {
    if (!process.on_gpu) {
      continue;
    }
    const auto found = inputs.clients->by_process.find(process.key);
    if (found == inputs.clients->by_process.end()) {
      all_known = false;  // a sum without it would look like memory that was freed
      continue;
    }
    for (const auto& [gpu, pools] : found->second) {
      SeatGpu& sums = account.gpus[gpu];
      for (const auto& [pool, bytes] : pools) {
        add(pool == "gtt" ? sums.gtt : sums.vram, std::optional(bytes));
      }
    }
  }
  if (!all_known) {
    for (auto& [gpu, sums] : account.gpus) {
      sums.vram = sums.gtt = std::nullopt;
    }
  }
}

void add_queues(std::optional<KfdQueueCounts>& sum, const std::optional<KfdQueueCounts>& queues) {
  if (!queues) {
    return;
  }
  KfdQueueCounts total = sum.value_or(KfdQueueCounts{});
  total.compute += queues->compute;
  total.sdma += queues->sdma;
  total.other += queues->other;
  sum = total;
}

void add_kfd(const SeatInputs& inputs, const Seat& seat, SeatAccount& account) {
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
      add(sums.kfd_allocated, gpu.vram_bytes);
      if (gpu.evicted_ms) {
        sums.evicted_ms[{process.pid, *process.start_ticks}] = *gpu.evicted_ms;
      }
      add_queues(sums.queues, gpu.queues);
    }
  }
}

bool is_unified(const SeatInputs& inputs, const std::string& address) {
  return inputs.gpu != nullptr &&
         std::any_of(inputs.gpu->gpus.begin(), inputs.gpu->gpus.end(), [&](const Gpu& gpu) {
           return gpu.device.pci_address == address && gpu.unified_memory == true;
         });
}

/// GTT of a seat, by fdinfo; where that cannot be read, KFD's total on an APU, which lies in GTT.
std::optional<std::uint64_t> gtt_of(const SeatInputs& inputs, const SeatAccount& account) {
  std::optional<std::uint64_t> sum;
  for (const auto& [address, gpu] : account.gpus) {
    add(sum, gpu.gtt ? gpu.gtt : is_unified(inputs, address) ? gpu.kfd_allocated : std::nullopt);
  }
  return sum;
}

std::optional<std::uint64_t> divergence_of(const SeatInputs& inputs, const Seat& seat,
                                           const SeatAccount& account) {
  const auto memory = inputs.cgroup->memory.find(seat.name);
  const auto gtt = gtt_of(inputs, account);
  if (memory == inputs.cgroup->memory.end() || !gtt) {
    return std::nullopt;
  }
  return less(*gtt, memory->second.gpu_charged.value_or(0));
}

}  // namespace

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
    add(used, gpu.gtt.used_bytes);
  }
  return used ? std::optional(less(*used, inputs.cgroup->gpu_charged.value_or(0))) : std::nullopt;
}

std::map<std::pair<std::string, std::string>, std::uint64_t> unowned_memory(
    const SeatInputs& inputs) {
  std::map<std::pair<std::string, std::string>, std::uint64_t> unowned;
  if (inputs.gpu == nullptr || inputs.clients == nullptr) {
    return unowned;
  }
  for (const Gpu& gpu : inputs.gpu->gpus) {
    const auto clients = inputs.clients->by_gpu.find(gpu.device.pci_address);
    if (clients == inputs.clients->by_gpu.end()) {
      continue;
    }
    for (const auto& [pool, used] :
         {std::pair{"vram", gpu.vram.used_bytes}, {"gtt", gpu.gtt.used_bytes}}) {
      const auto owned = clients->second.find(pool);
      if (used && owned != clients->second.end()) {
        unowned[{gpu.device.pci_address, pool}] = less(*used, owned->second);
      }
    }
  }
  return unowned;
}

}  // namespace apu
