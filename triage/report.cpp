#include "triage/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "collectors/cgroup/cgroup.h"
#include "collectors/gpu.h"
#include "collectors/kernel_log/kernel_log.h"
#include "collectors/memory.h"
#include "collectors/seats/seats.h"
#include "collectors/verdict.h"
#include "verdict/advice.h"
#include "verdict/log_verdict.h"

namespace apu {
namespace {

void add_state(const SeatStateFacts& facts, TriageSeat& seat) {
  seat.state = facts.state;
  seat.since = facts.since;
  seat.command = facts.command;
  seat.reasons = facts.reasons;
  if (facts.process) {
    seat.pid = facts.process->pid;
  }
}

std::optional<std::uint64_t> gpu_bytes(const SeatAccount& account) {
  std::optional<std::uint64_t> sum;
  for (const auto& [gpu, held] : account.gpus) {
    if (!held.vram || !held.gtt) {
      return std::nullopt;
    }
    sum = sum.value_or(0) + *held.vram + *held.gtt;
  }
  return sum;
}

void add_seats(const Store& store, TriageReport& report) {
  const auto cgroup = fresh_facts<CgroupFacts>(store, "cgroup");
  const auto seats = fresh_facts<SeatsFacts>(store, "seats");
  for (const Seat& each : cgroup ? cgroup->index->seats : std::vector<Seat>()) {
    TriageSeat seat;
    seat.name = each.name;
    if (const auto memory = cgroup->memory.find(each.name); memory != cgroup->memory.end()) {
      seat.charged_bytes = memory->second.current;
    }
    if (seats && seats->states.contains(each.name)) {
      add_state(seats->states.at(each.name), seat);
    }
    if (seats && seats->accounts.contains(each.name)) {
      seat.gpu_bytes = gpu_bytes(seats->accounts.at(each.name));
    }
    report.seats.push_back(std::move(seat));
  }
  const auto severity = [](const TriageSeat& seat) {
    // A unit without a process is seldom what somebody looks for.
    return !seat.state || *seat.state == SeatState::kDown ? kSeatStates
                                                          : static_cast<size_t>(*seat.state);
  };
  std::stable_sort(
      report.seats.begin(), report.seats.end(),
      [&](const TriageSeat& a, const TriageSeat& b) { return severity(a) < severity(b); });
}

void add_pools(const Store& store, TriageReport& report) {
  constexpr std::uint64_t kKilobyte = 1024;
  if (const auto memory = fresh_facts<MemoryFacts>(store, "memory")) {
    const auto total = memory->meminfo.get("MemTotal");
    const auto available = memory->meminfo.get("MemAvailable");
    if (total && available && *available <= *total) {
      report.pools.push_back(
          {"RAM not available", (*total - *available) * kKilobyte, *total * kKilobyte});
    }
    const auto swap = memory->meminfo.get("SwapTotal");
    const auto free = memory->meminfo.get("SwapFree");
    if (swap && free && *free <= *swap && *swap > 0) {
      report.pools.push_back({"swap", (*swap - *free) * kKilobyte, *swap * kKilobyte});
    }
  }
  if (const auto gpus = fresh_facts<GpuFacts>(store, "gpu")) {
    for (const Gpu& gpu : gpus->gpus) {
      if (gpu.gtt.size_bytes && gpu.gtt.used_bytes) {
        report.pools.push_back(
            {"GTT of " + gpu.device.pci_address, *gpu.gtt.used_bytes, *gpu.gtt.size_bytes});
      }
    }
  }
}

void add_events(const Store& store, TriageReport& report) {
  const auto log = fresh_facts<KernelLogFacts>(store, "kernel_log");
  if (!log) {
    return;
  }
  for (const auto& [kind, counts] : log->log.events()) {
    report.events.push_back({std::string(to_label(kind)), lines_of(counts), counts.last_time});
  }
  for (const auto& [key, series] : log->log.hogs()) {
    report.events.push_back({"hog reports of " + key.first, series.lines(), series.last_time()});
  }
  for (const auto& [key, kills] : log->log.oom().kills()) {
    report.events.push_back(
        {fmt::format("OOM kills in {}", key.second.empty() ? "no unit" : key.second), kills.kills,
         kills.last_time});
  }
  std::stable_sort(report.events.begin(), report.events.end(),
                   [](const TriageEvent& a, const TriageEvent& b) { return a.last > b.last; });
}

bool hangs(const TriageSeat& seat) {
  return seat.state == SeatState::kThrashing || seat.state == SeatState::kBlocked ||
         seat.state == SeatState::kStalled || seat.state == SeatState::kSpinning;
}

/// By the seats, or where these are newer than the verdict, by the verdict alone.
bool hangs_any(const TriageReport& report) {
  return std::any_of(report.seats.begin(), report.seats.end(), hangs) ||
         (!apu::is_fault(report.verdict.judgement.verdict) && !report.verdict.concerned.empty());
}

}  // namespace

bool TriageReport::is_fault() const {
  return apu::is_fault(verdict.judgement.verdict) || !verdict.concerned.empty();
}

TriageReport make_triage(const Store& store, TimePoint now) {
  TriageReport report;
  report.now = now;
  if (const auto host = fresh_facts<HostFacts>(store, "host")) {
    report.host = *host;
  }
  if (const auto verdict = fresh_facts<VerdictFacts>(store, "verdict")) {
    report.has_verdict = true;
    report.verdict = verdict->host;
    report.no_gpu = verdict->no_gpu;
  }
  add_seats(store, report);
  add_pools(store, report);
  add_events(store, report);
  return report;
}

std::vector<std::string> advice_for(const TriageReport& report) {
  const Verdict verdict = report.verdict.judgement.verdict;
  std::vector<std::string> advice = advice_for(verdict);
  if (verdict != Verdict::kKfdThrash && hangs_any(report)) {
    // Whatever the host has to do with it: a thrashing one has its own advice for it.
    const std::vector<std::string> for_seat{
        "Restart the seat that hangs; if it does the same again, look at its own log and at dmesg",
        "Do not run ps aux or pgrep -f on a host with a seat that hangs: they can hang, too. "
        "ps -ww -eLo tid,stat,wchan,cgroup is safe"};
    advice.insert(advice.begin(), for_seat.begin(), for_seat.end());
  }
  return advice;
}

}  // namespace apu
