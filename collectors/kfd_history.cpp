#include "collectors/kfd_history.h"

#include <algorithm>
#include <utility>

namespace apu {

void KfdEvictions::update(std::int64_t pid, const Times& times) {
  for (const auto& [gpu_id, contexts] : times) {
    for (const auto& [context, ms] : contexts) {
      times_[pid][gpu_id][context] = ms;
    }
  }
}

std::optional<std::uint64_t> KfdEvictions::total(std::int64_t pid, std::uint32_t gpu_id) const {
  const auto process = times_.find(pid);
  if (process == times_.end() || !process->second.contains(gpu_id)) {
    return std::nullopt;
  }
  std::uint64_t sum = 0;
  for (const auto& [context, ms] : process->second.at(gpu_id)) {
    sum += ms;
  }
  return sum;
}

void KfdEvictions::keep_only(const std::vector<KfdProcess>& processes) {
  std::erase_if(times_, [&](const auto& entry) {
    return std::none_of(processes.begin(), processes.end(),
                        [&](const KfdProcess& process) { return process.pid == entry.first; });
  });
}

/// Whether the entry's process is not, or no longer, the one of `process`.
bool KfdOrphans::has_ended(const KfdProcess& process) const {
  const auto start = starts_.find(process.pid);
  const bool other_start =
      start != starts_.end() && process.start_ticks && process.start_ticks != start->second;
  return process.state == KfdProcessState::kOrphan || since_.contains(process.pid) || other_start;
}

void KfdOrphans::update(TimePoint now, std::vector<KfdProcess>& processes) {
  std::map<std::int64_t, TimePoint> since;
  std::map<std::int64_t, std::uint64_t> starts;
  for (KfdProcess& process : processes) {
    if (!has_ended(process)) {
      const auto before = starts_.find(process.pid);
      if (process.start_ticks || before != starts_.end()) {
        starts[process.pid] = process.start_ticks ? *process.start_ticks : before->second;
      }
      continue;
    }
    if (process.state == KfdProcessState::kAlive) {  // a stranger's
      process.comm.clear();
      process.start_ticks.reset();
    }
    process.state = KfdProcessState::kOrphan;
    const auto before = since_.find(process.pid);
    const TimePoint start = before == since_.end() ? now : std::min(before->second, now);
    since[process.pid] = start;
    process.orphan_for = now - start;
  }
  since_ = std::move(since);
  starts_ = std::move(starts);
}

}  // namespace apu
