#include "collectors/gpu_clients/client_reader.h"

#include <set>
#include <utility>

#include "collectors/report.h"

namespace apu {
namespace {

constexpr const char* kFdinfo = "fdinfo";

std::string path_of(const GpuHolder& holder, const GpuDescriptor& descriptor) {
  return std::to_string(holder.process.pid) + "/fdinfo/" + descriptor.number;
}

}  // namespace

ClientReader::ClientReader(FileRoot procfs, SourceReporter sources, GuardedReaderSettings settings)
    : procfs_(std::move(procfs)),
      sources_(sources),
      guarded_({kFdinfo}, std::move(sources), std::move(settings)) {}

ClientReadings ClientReader::read(GpuHolders& holders) {
  denied_ = blocked_ = false;
  ClientReadings readings;
  read_round(pick(holders.all(), readings), readings);
  // Descriptors that went away since they were listed: others may be of the same clients.
  holders.look_again();
  read_round(pick(holders.all(), readings), readings);
  for (auto& [pid, holder] : holders.all()) {
    for (const GpuDescriptor& descriptor : holder.descriptors) {
      if (descriptor.client) {
        readings.try_emplace(*descriptor.client);
      }
    }
  }
  return readings;
}

/// One descriptor for each client that has no reading, and all of which it is not known.
std::vector<ClientReader::Pick> ClientReader::pick(GpuHolders::Map& holders,
                                                   const ClientReadings& readings) {
  std::vector<Pick> picks;
  std::set<ClientKey> picked;
  for (auto& [pid, holder] : holders) {
    for (GpuDescriptor& descriptor : holder.descriptors) {
      const bool done =
          descriptor.client && descriptor.verified &&
          (readings.contains(*descriptor.client) || !picked.insert(*descriptor.client).second);
      if (!done && !descriptor.foreign && !descriptor.tried) {
        descriptor.tried = true;
        picks.push_back({&holder, &descriptor});
      }
    }
  }
  return picks;
}

void ClientReader::read_round(const std::vector<Pick>& picks, ClientReadings& readings) {
  if (picks.empty()) {
    return;
  }
  std::vector<GuardedFile> files;
  for (const Pick& pick : picks) {
    const std::string path = path_of(*pick.holder, *pick.descriptor);
    files.push_back({kFdinfo, procfs_.path_of(path).string(), pick.holder->process});
  }
  const auto results = guarded_.read(files);
  for (size_t i = 0; i < results.size(); ++i) {
    take(picks[i], results[i], readings);
  }
}

void ClientReader::take(const Pick& pick, const Result<std::string>& text,
                        ClientReadings& readings) {
  if (!text) {
    take_error(pick, text.error(), readings);
    return;
  }
  const Fdinfo info = parse_fdinfo(*text);
  report_problems(sources_, kFdinfo, path_of(*pick.holder, *pick.descriptor), info.problems);
  switch (info.kind) {
    case FdinfoKind::kForeign:
      pick.descriptor->foreign = true;
      pick.descriptor->client.reset();
      break;
    case FdinfoKind::kAmdgpu:
      take_client(pick, info, readings);
      break;
    case FdinfoKind::kNoClient:
      take_silence(pick);
      break;
  }
}

void ClientReader::take_error(const Pick& pick, const Error& error, ClientReadings& readings) {
  if (error.kind == ErrorKind::kNotFound) {
    pick.holder->changed = true;
    return;
  }
  denied_ = denied_ || error.kind == ErrorKind::kPermissionDenied;
  blocked_ = blocked_ || error.kind == ErrorKind::kBlocked;
  if (pick.descriptor->client) {
    readings.try_emplace(*pick.descriptor->client);
  } else {
    pick.holder->unread += 1;
  }
}

void ClientReader::take_client(const Pick& pick, const Fdinfo& info, ClientReadings& readings) {
  const auto id = info.client_id ? info.client_id : info.pasid;
  if (info.gpu.empty() || !id) {
    pick.descriptor->client.reset();
    pick.holder->unread += 1;
    return;
  }
  ClientKey key{info.gpu, *id};
  GpuDescriptor& descriptor = *pick.descriptor;
  // Another client may have lost its last descriptor here, or have it elsewhere.
  pick.holder->changed = pick.holder->changed || (descriptor.client && *descriptor.client != key);
  descriptor.client = key;
  descriptor.verified = true;
  readings[std::move(key)] = {{memory_of(info.vram), memory_of(info.gtt)}, !info.lock_free};
}

/// The driver said nothing: its wait was interrupted, or it never says anything (before 5.14), and
/// what is there is not known. Or it is no client any more, or another driver's.
void ClientReader::take_silence(const Pick& pick) {
  pick.holder->changed = true;
  if (!pick.descriptor->client && pick.descriptor->amdgpu) {
    pick.holder->unread += 1;
  }
}

}  // namespace apu
