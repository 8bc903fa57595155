#include "collectors/kfd_owners.h"

#include <utility>
#include <vector>

#include "collectors/parsers/pid_stat.h"
#include "exporter/text.h"

namespace apu {

Status check_host_processes(const FileRoot& procfs) {
  const auto stat = read_pid_stat(procfs, "2");
  if (!stat) {
    return stat.error();
  }
  return is_kernel_thread(*stat)
             ? Status()
             : Error{ErrorKind::kUnsupported, "/proc does not show the host's processes"};
}

Status read_kfd_process_state(const FileRoot& procfs, KfdProcess& process) {
  const auto stat = read_pid_stat(procfs, std::to_string(process.pid));
  if (!stat) {
    const bool gone = stat.error().kind == ErrorKind::kNotFound;
    process.state = gone ? KfdProcessState::kOrphan : KfdProcessState::kUnknown;
    return stat.error().kind == ErrorKind::kMalformed ? Status(stat.error()) : std::nullopt;
  }
  process.state = has_ended(*stat) ? KfdProcessState::kOrphan : KfdProcessState::kAlive;
  process.comm = stat->comm;
  process.start_ticks = stat->start_ticks;
  return std::nullopt;
}

KfdOwners::Found KfdOwners::update() {
  Found found;
  found.complete = !check_host_processes(procfs_);
  if (!found.complete) {
    return found;
  }
  const auto names = sysfs_.list("class/kfd/kfd/proc");
  std::vector<KfdProcess> processes;
  for (const std::string& name : names ? *names : std::vector<std::string>()) {
    if (const auto pid = parse_number<std::int64_t>(name)) {
      processes.emplace_back().pid = *pid;
      (void)read_kfd_process_state(procfs_, processes.back());  // which the kfd collector reports
    }
  }
  orphans_.update(TimePoint(), processes);
  for (const KfdProcess& process : processes) {
    found.complete = found.complete && process.state != KfdProcessState::kUnknown;
    if (process.state == KfdProcessState::kAlive) {
      found.living[process.pid] = {process.pid, *process.start_ticks};
    }
  }
  return found;
}

}  // namespace apu
