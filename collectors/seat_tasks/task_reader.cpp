#include "collectors/seat_tasks/task_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "collectors/report.h"
#include "exporter/text.h"

namespace apu {
namespace {

constexpr const char* kSource = "procfs";
constexpr const char* kIoSource = "process_io";
constexpr const char* kWaitSource = "process_wait";

bool is_denied(const Error& error) {
  return error.kind == ErrorKind::kPermissionDenied;
}

}  // namespace

void TaskReader::begin_pass(size_t seats) {
  tasks_of_seat_ = std::max(kLeastTasks, kMaxTasksOfAll / std::max<size_t>(seats, 1));
  io_problem_.reset();
  wait_problem_.reset();
  read_any_ = false;
}

void TaskReader::end_pass() {
  if (read_any_) {
    sources_.note(kIoSource, io_problem_);
    sources_.note(kWaitSource, wait_problem_);
  }
}

std::optional<ProcessSample> TaskReader::read(const ProcessIdentity& process,
                                              std::chrono::nanoseconds time) {
  const std::string directory = std::to_string(process.pid);
  auto stat = stat_of(directory);
  if (!stat || stat->start_ticks != process.start_ticks) {
    return std::nullopt;
  }
  read_any_ = true;
  ProcessSample sample;
  sample.key = process;
  sample.comm = stat->comm;
  sample.time = time;
  sample.stat = *std::move(stat);
  sample.status = status_of(directory);
  const auto io = procfs_.read(directory + "/io");
  if (io) {
    sample.read_bytes = parse_read_bytes(*io);
  } else if (is_denied(io.error())) {
    io_problem_ = io.error();
  }
  read_tasks(directory + "/task", sample);
  return sample;
}

std::optional<std::string> TaskReader::text_of(const std::string& file) const {
  auto text = procfs_.read(file);
  return text ? std::optional(*std::move(text)) : std::nullopt;
}

std::optional<PidStat> TaskReader::stat_of(const std::string& directory) const {
  auto stat = read_pid_stat(procfs_, directory);
  if (stat) {
    return *std::move(stat);
  }
  if (stat.error().kind == ErrorKind::kMalformed) {  // else it ended
    sources_.parse_error(kSource, fmt::format("{}/{}", directory, stat.error().message));
  }
  return std::nullopt;
}

PidStatus TaskReader::status_of(const std::string& directory) const {
  const auto text = text_of(directory + "/status");
  PidStatus status = text ? parse_pid_status(*text) : PidStatus{};
  report_problems(sources_, kSource, directory + "/status", status.problems);
  return status;
}

void TaskReader::read_tasks(const std::string& directory, ProcessSample& sample) {
  const auto names = procfs_.list(directory);
  const size_t most = std::min(kMaxTasks, tasks_left_);
  sample.all_tasks = names && names->size() <= most;
  for (const std::string& name : names ? *names : std::vector<std::string>()) {
    if (sample.tasks.size() == most) {
      break;
    }
    if (const auto task = read_task(fmt::format("{}/{}", directory, name))) {
      sample.tasks.push_back(*task);
    }
  }
  tasks_left_ -= sample.tasks.size();
}

std::optional<TaskSample> TaskReader::read_task(const std::string& directory) {
  const auto stat = stat_of(directory);
  if (!stat) {
    return std::nullopt;
  }
  TaskSample task;
  task.key = {stat->pid, stat->start_ticks};
  task.state = stat->state;
  task.user_ticks = stat->user_ticks;
  task.system_ticks = stat->system_ticks;
  const PidStatus status = status_of(directory);
  task.voluntary_switches = status.voluntary_switches;
  task.involuntary_switches = status.involuntary_switches;
  if (const auto text = text_of(directory + "/schedstat")) {
    task.sched = parse_schedstat(*text);
  }
  if (task.state == 'D') {
    task.wait = wait_of(directory);
  }
  return task;
}

TaskWait TaskReader::wait_of(const std::string& directory) {
  const auto syscall = procfs_.read(directory + "/syscall");
  if (!syscall && is_denied(syscall.error())) {
    wait_problem_ = syscall.error();
  }
  return classify_wait(text_of(directory + "/wchan").value_or(""),
                       syscall ? parse_syscall(*syscall) : std::nullopt);
}

}  // namespace apu
