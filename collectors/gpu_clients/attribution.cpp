#include "collectors/gpu_clients/attribution.h"

#include <algorithm>
#include <set>
#include <utility>

namespace apu {
namespace {

using Bytes = std::optional<std::uint64_t>;
using Owners = std::map<ClientKey, std::int64_t>;  // process ids

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

/// `now`, or what it was if that is more; whether it was, in `fell`.
Bytes larger(const Bytes& now, const Bytes& before, bool& fell) {
  if (!now || !before || *before <= *now) {
    return now;
  }
  fell = true;
  return before;
}

void add(Bytes& sum, const Bytes& value) {
  sum = sum && value ? Bytes(*sum + *value) : std::nullopt;
}

void add_to_totals(std::map<std::string, GpuTotal>& gpus, const GpuClient& client) {
  const auto [entry, added] = gpus.try_emplace(client.key.gpu, GpuTotal{0, {0, 0}, true});
  GpuTotal& total = entry->second;
  total.clients += 1;
  total.exact = total.exact && client.exact;
  add(total.memory.vram, client.memory.vram);
  add(total.memory.gtt, client.memory.gtt);
}

GpuProcess to_process(const GpuHolder& holder) {
  return {holder.process, holder.comm, holder.kfd, {}, holder.unread + (holder.listed ? 0U : 1U)};
}

}  // namespace

GpuClientsFacts Attribution::attribute(const GpuHolders::Map& holders,
                                       const ClientReadings& readings, bool denied) {
  GpuClientsFacts facts;
  facts.all_known = !denied;
  std::map<std::int64_t, GpuProcess> processes;
  for (const auto& [pid, holder] : holders) {
    if (holder.kfd || !holder.descriptors.empty()) {
      const GpuProcess& process = processes.emplace(pid, to_process(holder)).first->second;
      facts.unread += process.unread;
      facts.all_known = facts.all_known && process.unread == 0;
    }
  }
  for (const auto& [key, pid] : find_owners(holders)) {
    const auto reading = readings.find(key);
    GpuClient client =
        to_client(key, reading == readings.end() ? ClientReading() : reading->second);
    facts.unread += client.memory.known() ? 0 : 1;
    add_to_totals(facts.gpus, client);
    processes.at(pid).clients.push_back(std::move(client));
  }
  if (!facts.all_known) {
    facts.gpus.clear();
  }
  for (auto& [pid, process] : processes) {
    facts.processes.push_back(std::move(process));
  }
  last_ = readings;
  return facts;
}

GpuClient Attribution::to_client(const ClientKey& key, const ClientReading& reading) const {
  GpuClient client{key, reading.memory, reading.memory.known()};
  const auto last = last_.find(key);
  if (!reading.may_skip || last == last_.end()) {
    return client;
  }
  bool fell = false;
  client.memory.vram = larger(reading.memory.vram, last->second.memory.vram, fell);
  client.memory.gtt = larger(reading.memory.gtt, last->second.memory.gtt, fell);
  client.exact = client.exact && !fell;
  return client;
}

}  // namespace apu
