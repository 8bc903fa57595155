#include "collectors/gpu_clients/holders.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "collectors/parsers/pid_stat.h"
#include "exporter/text.h"

namespace apu {
namespace {

constexpr std::string_view kKfdNode = "/dev/kfd";

bool by_number(const GpuDescriptor& a, const GpuDescriptor& b) {
  return a.number.size() != b.number.size() ? a.number.size() < b.number.size()
                                            : a.number < b.number;
}

}  // namespace

Status GpuHolders::update(const KfdProcesses& kfd, const DrmMinors& minors, bool sweep_all) {
  minors_ = minors;
  if (sweep_all) {
    if (Status error = sweep(kfd)) {
      return error;
    }
  } else {
    std::set<std::int64_t> pids;
    for (const auto& [pid, process] : kfd) {
      pids.insert(pid);
    }
    for (const auto& [pid, holder] : holders_) {
      pids.insert(pid);
    }
    for (const std::int64_t pid : pids) {
      refresh(pid, kfd);
    }
  }
  for (auto& [pid, holder] : holders_) {
    holder.unread = 0;
    for (GpuDescriptor& descriptor : holder.descriptors) {
      descriptor.tried = false;
    }
  }
  return std::nullopt;
}

/// Most processes hold no GPU: of these nothing is read but their links.
Status GpuHolders::sweep(const KfdProcesses& kfd) {
  const auto names = procfs_.list("");
  if (!names) {
    return names.error();
  }
  denied_.clear();
  Map before = std::exchange(holders_, {});
  for (const std::string& name : *names) {
    const auto pid = parse_number<std::int64_t>(name);
    auto links = pid ? list(*pid) : std::nullopt;
    const bool known_to_kfd = pid && kfd.contains(*pid);
    const bool holds = links && (links->kfd || !links->descriptors.empty());
    if (holds || known_to_kfd) {
      add(*pid, kfd, std::move(links), before);
    }
  }
  return std::nullopt;
}

void GpuHolders::add(std::int64_t pid, const KfdProcesses& kfd, std::optional<Links> links,
                     Map& before) {
  GpuHolder holder;
  holder.process.pid = pid;
  if (!identify(holder, kfd)) {
    return;
  }
  if (const auto old = before.find(pid);
      old != before.end() && old->second.process == holder.process) {
    holder.descriptors = std::move(old->second.descriptors);
  }
  take(holder, std::move(links));
  for (GpuDescriptor& descriptor : holder.descriptors) {
    descriptor.foreign = descriptor.verified = false;
  }
  holders_.emplace(pid, std::move(holder));
}

void GpuHolders::refresh(std::int64_t pid, const KfdProcesses& kfd) {
  GpuHolder holder;
  holder.process.pid = pid;
  if (!identify(holder, kfd)) {
    holders_.erase(pid);
    denied_.erase(pid);
    return;
  }
  GpuHolder& known = holders_[pid];
  if (known.process != holder.process) {
    known = std::move(holder);
  } else {
    known.comm = std::move(holder.comm);
    known.kfd = holder.kfd;
    known.leader_ended = holder.leader_ended;
  }
  if (known.descriptors.empty() || known.changed) {
    take(known, list(pid));
  }
}

void GpuHolders::look_again() {
  for (auto& [pid, holder] : holders_) {
    if (holder.changed) {
      take(holder, list(pid));
    }
  }
}

/// Sets who it is. False if it has ended.
bool GpuHolders::identify(GpuHolder& holder, const KfdProcesses& kfd) {
  const auto stat = read_pid_stat(procfs_, std::to_string(holder.process.pid));
  if (!stat || has_ended(*stat)) {
    return false;
  }
  holder.process.start_ticks = stat->start_ticks;
  holder.comm = stat->comm;
  holder.leader_ended = leader_has_ended(*stat);
  const auto known = kfd.find(holder.process.pid);
  holder.kfd = known != kfd.end() && known->second == holder.process;
  return true;
}

/// The links of a process; nullopt if they cannot be listed.
std::optional<GpuHolders::Links> GpuHolders::list(std::int64_t pid) {
  Links links;
  const Status error = procfs_.for_each_link(
      std::to_string(pid) + "/fd", [&](std::string_view number, std::string_view target) {
        const auto minor = drm_minor_of(procfs_, fmt::format("{}/fd/{}", pid, number), target);
        const auto driver = minor ? minors_.driver_of(*minor) : DrmDriver::kOther;
        if (driver != DrmDriver::kOther) {
          links.descriptors.emplace_back();
          links.descriptors.back().number = number;
          links.descriptors.back().minor = *minor;
          links.descriptors.back().amdgpu = driver == DrmDriver::kAmdgpu;
        }
        links.kfd = links.kfd || target == kKfdNode;
      });
  if (error && error->kind == ErrorKind::kPermissionDenied) {
    note_denied(pid);
  }
  if (error && error->kind != ErrorKind::kNotFound) {  // it has ended, and holds nothing
    return std::nullopt;
  }
  denied_.erase(pid);
  std::sort(links.descriptors.begin(), links.descriptors.end(), by_number);
  return links;
}

/// Threads of the kernel and the dead hold nothing, and are denied all the same.
void GpuHolders::note_denied(std::int64_t pid) {
  const auto stat = read_pid_stat(procfs_, std::to_string(pid));
  if (stat && !has_ended(*stat) && !is_kernel_thread(*stat)) {
    denied_.insert(pid);
  }
}

/// Keeps what is known of descriptors that are still there.
void GpuHolders::take(GpuHolder& holder, std::optional<Links> links) {
  holder.listed = links.has_value() && !holder.leader_ended;
  holder.changed = false;
  if (!links) {
    holder.descriptors.clear();
    return;
  }
  for (GpuDescriptor& descriptor : links->descriptors) {
    const auto known = std::find_if(
        holder.descriptors.begin(), holder.descriptors.end(), [&](const GpuDescriptor& old) {
          return old.number == descriptor.number && old.minor == descriptor.minor;
        });
    if (known != holder.descriptors.end()) {
      descriptor = std::move(*known);
    }
  }
  holder.descriptors = std::move(links->descriptors);
}

}  // namespace apu
