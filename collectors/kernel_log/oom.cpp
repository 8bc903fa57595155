#include "collectors/kernel_log/oom.h"

#include <utility>

#include "collectors/kernel_log/unit_name.h"
#include "exporter/text.h"

namespace apu {
namespace {

/// The cgroup in "task_memcg=PATH,task=COMM,pid=...". Both names are users' choice: the task's has
/// 15 bytes at most, so its key stands that close before the pid.
std::string_view victim_cgroup(std::string_view line) {
  constexpr std::string_view kKey = "task_memcg=";
  constexpr std::string_view kTask = ",task=";
  constexpr size_t kMaxComm = 15;
  const size_t at = line.find(kKey);
  if (at == std::string_view::npos) {
    return {};
  }
  const std::string_view rest = line.substr(at + kKey.size());
  const size_t pid = rest.rfind(",pid=");
  const size_t reach = kMaxComm + kTask.size();
  const size_t from = pid == std::string_view::npos || pid < reach ? 0 : pid - reach;
  const size_t task = rest.find(kTask, from);
  return rest.substr(0, task);
}

/// The number after the last ",pid=": a task's name before it may hold the same.
std::optional<std::int64_t> victim_pid(std::string_view line) {
  constexpr std::string_view kKey = ",pid=";
  const size_t at = line.rfind(kKey);
  if (at == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view rest = line.substr(at + kKey.size());
  return parse_number<std::int64_t>(rest.substr(0, rest.find(',')));
}

}  // namespace

std::string_view to_label(OomScope scope) {
  return scope == OomScope::kHost ? "host" : "memcg";
}

std::optional<OomEvent> parse_oom_event(std::string_view message) {
  if (!message.starts_with("oom-kill:constraint=")) {
    return std::nullopt;
  }
  OomEvent event;
  const std::string_view head = message.substr(0, message.find("task_memcg="));
  event.scope =
      head.find(",global_oom") != std::string_view::npos ? OomScope::kHost : OomScope::kMemcg;
  event.victim_cgroup = victim_cgroup(message);
  event.pid = victim_pid(message);
  return event;
}

std::optional<OomKill> parse_oom_kill(std::string_view message) {
  OomKill kill;
  if (consume(message, "Memory cgroup out of memory")) {
    kill.scope = OomScope::kMemcg;
  } else if (!consume(message, "Out of memory")) {
    return std::nullopt;
  }
  consume(message, " (oom_kill_allocating_task)");
  if (!consume(message, ": Killed process ")) {
    return std::nullopt;
  }
  const auto pid = take_unsigned(message);
  if (!pid || !consume(message, " (")) {
    return std::nullopt;
  }
  kill.pid = static_cast<std::int64_t>(*pid);
  return kill;
}

std::optional<std::string_view> parse_oom_group(std::string_view message) {
  constexpr std::string_view kEnd = " are going to be killed due to memory.oom.group set";
  if (!consume(message, "Tasks in ") || !message.ends_with(kEnd)) {
    return std::nullopt;
  }
  return message.substr(0, message.size() - kEnd.size());
}

bool OomState::fold(std::string_view message, std::optional<TimePoint> time) {
  if (const auto event = parse_oom_event(message)) {
    begin_event(*event, time);
    return true;
  }
  if (const auto cgroup = parse_oom_group(message)) {
    begin_group(*cgroup);
    return true;
  }
  if (const auto kill = parse_oom_kill(message)) {
    add_kill(*kill, time);
    return true;
  }
  return false;
}

void OomState::begin_event(const OomEvent& event, std::optional<TimePoint> time) {
  events_[event.scope] += 1;
  if (event.scope == OomScope::kHost && !first_host_) {
    first_host_ = time;
  }
  current_ = {unit_of_cgroup(event.victim_cgroup), event.pid, false, {}};
}

void OomState::begin_group(std::string_view cgroup) {
  current_.whole_group = true;
  if (std::string unit = unit_of_cgroup(cgroup); !unit.empty()) {
    current_.unit = std::move(unit);
  }
}

void OomState::add_kill(const OomKill& kill, std::optional<TimePoint> time) {
  const bool of_event = current_.whole_group || !current_.victim || *current_.victim == kill.pid;
  if (!of_event) {
    current_ = {"", kill.pid, false, {}};  // its event's line was not printed, or not read
  }
  if (!current_.killed.insert(kill.pid).second) {
    return;
  }
  OomKillCounts& counts = counts_of(kill.scope, current_.unit);
  counts.kills += 1;
  if (time && (!counts.last_time || *counts.last_time < *time)) {
    counts.last_time = time;
  }
}

OomKillCounts& OomState::counts_of(OomScope scope, const std::string& unit) {
  const bool room = kills_.size() < kMaxUnits || kills_.contains({scope, unit});
  return kills_[{scope, room ? unit : "other"}];
}

}  // namespace apu
