#include "collectors/gpu_clients/attribution.h"

#include <algorithm>
#include <set>
#include <utility>

namespace apu {
namespace {

using Bytes = std::optional<std::uint64_t>;
using Owners = std::map<ClientKey, std::int64_t>;  // process ids

constexpr Bytes PoolBytes::*kPools[] = {&PoolBytes::vram, &PoolBytes::gtt};

/// The process that KFD knows before others, then the lowest id.
Owners find_owners(const GpuHolders::Map& holders) {
  Owners owners;
  for (const bool kfd : {true, false}) {
    for (const auto& [pid, holder] : holders) {
      for (const GpuDescriptor& descriptor : holder.descriptors) {
        if (holder.kfd == kfd && descriptor.client) {
          owners.try_emplace(*descriptor.client, pid);
        }
      }
    }
  }
  return owners;
}

void add(Bytes& sum, const Bytes& value) {
  sum = sum && value ? Bytes(*sum + *value) : std::nullopt;
}

void add(PoolBytes& sum, const PoolBytes& value) {
  for (const auto pool : kPools) {
    add(sum.*pool, value.*pool);
  }
}

Bytes less(const Bytes& from, const Bytes& amount) {
  return from && amount ? Bytes(*from > *amount ? *from - *amount : 0) : std::nullopt;
}

/// The larger, or the one that is known.
Bytes larger(const Bytes& a, const Bytes& b) {
  return std::max(a, b);  // nothing is less than any number
}

void add_to_totals(std::map<std::string, GpuTotal>& gpus, const GpuClient& client) {
  const auto [entry, added] = gpus.try_emplace(client.key.gpu, GpuTotal{0, {0, 0}, true});
  GpuTotal& total = entry->second;
  total.clients += 1;
  total.exact = total.exact && client.exact;
  add(total.memory, client.memory);
}

/// What is in use beyond what clients hold.
GpuPools unowned_of(const GpuPools& used, const std::map<std::string, GpuTotal>& gpus) {
  GpuPools unowned;
  for (const auto& [gpu, pools] : used) {
    const auto total = gpus.find(gpu);
    const PoolBytes owned = total == gpus.end() ? PoolBytes{0, 0} : total->second.memory;
    unowned[gpu] = {less(pools.vram, owned.vram), less(pools.gtt, owned.gtt)};
  }
  return unowned;
}

GpuProcess to_process(const GpuHolder& holder) {
  return {holder.process, holder.comm, holder.kfd, {}, holder.unread + (holder.listed ? 0U : 1U)};
}

}  // namespace

GpuClientsFacts Attribution::attribute(const GpuHolders::Map& holders,
                                       const ClientReadings& readings, const GpuPools& used,
                                       bool complete) {
  GpuClientsFacts facts;
  facts.all_known = complete;
  std::map<std::int64_t, GpuProcess> processes;
  for (const auto& [pid, holder] : holders) {
    if (holder.kfd || !holder.descriptors.empty()) {
      const GpuProcess& process = processes.emplace(pid, to_process(holder)).first->second;
      facts.unread += process.unread;
      facts.all_known = facts.all_known && process.unread == 0;
    }
  }
  const Owners owners = find_owners(holders);
  Clients clients;
  for (const auto& [key, pid] : owners) {
    const auto reading = readings.find(key);
    clients[key] = reading == readings.end() ? ClientReading() : reading->second;
  }
  for (auto& [key, reading] : keep_what_is_held(clients, used)) {
    GpuClient client{key, reading.memory, reading.memory.known() && !reading.may_skip,
                     reading.may_skip};
    facts.unread += client.memory.known() ? 0 : 1;
    add_to_totals(facts.gpus, client);
    processes.at(owners.at(key)).clients.push_back(std::move(client));
  }
  if (facts.all_known) {
    facts.unowned = unowned_of(used, facts.gpus);
  } else {
    facts.gpus.clear();
  }
  for (auto& [pid, process] : processes) {
    facts.processes.push_back(std::move(process));
  }
  unowned_ = facts.unowned;
  return facts;
}

/// The clients with what they hold, as far as that is known.
Attribution::Clients Attribution::keep_what_is_held(const Clients& clients, const GpuPools& used) {
  GpuPools held;
  for (const auto& [key, reading] : clients) {
    const auto before = held_.find(key);
    const PoolBytes known = before == held_.end() ? PoolBytes() : before->second;
    add(held.try_emplace(key.gpu, PoolBytes{0, 0}).first->second,
        {larger(reading.memory.vram, known.vram), larger(reading.memory.gtt, known.gtt)});
  }
  GpuPools released;
  for (const auto& [gpu, pools] : used) {
    PoolBytes& sum = held[gpu];
    const auto before = unowned_.find(gpu);
    if (before != unowned_.end()) {
      add(sum, {before->second.vram.value_or(0), before->second.gtt.value_or(0)});
    }
    released[gpu] = {less(sum.vram, pools.vram), less(sum.gtt, pools.gtt)};
  }
  Clients kept;
  std::map<ClientKey, PoolBytes> now_held;
  for (const auto& [key, reading] : clients) {
    const PoolBytes memory = to_memory(key, reading, released);
    kept[key] = {memory, reading.may_skip};
    const auto before = held_.find(key);
    now_held[key] = memory.known() || before == held_.end() ? memory : before->second;
  }
  held_ = std::move(now_held);
  return kept;
}

PoolBytes Attribution::to_memory(const ClientKey& key, const ClientReading& reading,
                                 const GpuPools& released) const {
  PoolBytes memory = reading.memory;
  const auto before = held_.find(key);
  const auto gpu = released.find(key.gpu);
  if (!reading.may_skip || before == held_.end()) {
    return memory;
  }
  for (const auto pool : kPools) {
    const std::uint64_t gone = gpu == released.end() ? 0 : (gpu->second.*pool).value_or(0);
    if (memory.*pool && before->second.*pool) {
      memory.*pool = larger(memory.*pool, less(before->second.*pool, gone));
    }
  }
  return memory;
}

}  // namespace apu
