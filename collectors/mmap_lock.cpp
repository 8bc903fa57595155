#include "collectors/mmap_lock.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "collectors/cgroup/cgroup.h"
#include "collectors/parsers/pid_stat.h"
#include "exporter/file_root.h"
#include "exporter/store.h"
#include "exporter/text.h"

namespace apu {
namespace {

using prometheus::MetricType;

constexpr MetricInfo kHeld{
    "apu_seat_mmap_lock_held", MetricType::Gauge, "seat",
    "1 while two probes in a row waited for the mmap_lock of a process of the seat that spins or "
    "hangs, else 0 (/proc/PID/cmdline, read by a helper)"};
constexpr std::array kMetrics{kHeld};

constexpr const char* kFile = "cmdline";

/// By the guarded reader: a helper that may be killed does the reading.
class GuardedProbe : public LockProbe {
 public:
  explicit GuardedProbe(const CollectorContext& context)
      : procfs_(context.roots.procfs), reader_({kFile}, context.sources, settings()) {}

  Answer ask(const ProcessIdentity& process) override {
    const std::string path = procfs_.path_of(fmt::format("{}/cmdline", process.pid)).string();
    const GuardedFile file{kFile, path, process};
    const auto results = reader_.read({&file, 1});
    if (results.front()) {
      return Answer::kFree;
    }
    if (results.front().error().kind != ErrorKind::kBlocked) {
      return Answer::kNoProof;
    }
    const auto& wait = reader_.last_wait();
    return !wait                        ? Answer::kNotAsked
           : waits_for_mmap_lock(*wait) ? Answer::kWaits
                                        : Answer::kNoProof;
  }

 private:
  static GuardedReaderSettings settings() {
    GuardedReaderSettings settings;
    // The next probe comes after half a minute, and has to be made.
    settings.retry_after = std::chrono::seconds(4);
    settings.call_wait = std::chrono::milliseconds(2500);
    return settings;
  }

  FileRoot procfs_;
  GuardedReader reader_;
};

class MmapLockCollector : public Collector {
 public:
  MmapLockCollector(const CollectorContext& context, std::unique_ptr<LockProbe> probe)
      : procfs_(context.roots.procfs), store_(context.store), probe_(std::move(probe)) {}

  Result<Snapshot> collect() override {
    MmapLockFacts facts;
    std::vector<ProcessIdentity> living;
    probes_left_ = kMaxProbes;
    if (const auto cgroup = fresh_facts<CgroupFacts>(*store_, "cgroup")) {
      for (const Seat& seat : cgroup->index->seats) {
        look_at(seat, facts, living);
      }
    }
    suspects_.keep_only(living);
    MetricWriter metrics;
    for (const auto& [seat, held] : facts.held) {
      metrics.set(kHeld, {seat}, held ? 1 : 0);
    }
    return Snapshot{std::move(facts), metrics.take()};
  }

 private:
  // A probe may take two seconds; a seat that is not reached keeps what was known of it.
  static constexpr unsigned kMaxProbes = 6;

  void look_at(const Seat& seat, MmapLockFacts& facts, std::vector<ProcessIdentity>& living) {
    for (const SeatProcess& process : seat.processes) {
      living.push_back(process.key);
      const bool held = probe_if_suspect(process.key);
      facts.held[seat.name] = held || facts.held[seat.name];
      if (held) {
        facts.processes.insert(process.key);
      }
    }
  }

  bool probe_if_suspect(const ProcessIdentity& process) {
    const auto stat = read_pid_stat(procfs_, std::to_string(process.pid));
    if (!stat || stat->start_ticks != process.start_ticks) {
      return false;  // it ended
    }
    const double cpu =
        static_cast<double>(stat->user_ticks + stat->system_ticks) / ticks_per_second();
    const bool suspect = suspects_.is_suspect(process, has_thread_in_disk_sleep(process.pid), cpu,
                                              std::chrono::steady_clock::now());
    if (suspect && probes_left_ > 0) {
      --probes_left_;
      suspects_.note(process, probe_->ask(process));
    }
    return suspects_.is_held(process);
  }

  [[nodiscard]] bool has_thread_in_disk_sleep(std::int64_t pid) const {
    const std::string tasks = fmt::format("{}/task", pid);
    const auto names = procfs_.list(tasks);
    for (const std::string& name : names ? *names : std::vector<std::string>()) {
      const auto stat = read_pid_stat(procfs_, fmt::format("{}/{}", tasks, name));
      if (stat && stat->state == 'D') {
        return true;
      }
    }
    return false;
  }

  FileRoot procfs_;
  std::shared_ptr<const Store> store_;
  std::unique_ptr<LockProbe> probe_;
  LockSuspects suspects_;
  unsigned probes_left_ = 0;  // of this pass
};

}  // namespace

bool waits_for_mmap_lock(std::string_view wchan) {
  const std::string_view name = trim(first_line(wchan));
  // The kernel leaves the lock's own functions out of a wchan, so that it is its caller's.
  return name == "__access_remote_vm" || name == "access_remote_vm" || name.starts_with("rwsem_") ||
         name.starts_with("down_read") || name.starts_with("rwbase_read");
}

bool LockSuspects::is_suspect(const ProcessIdentity& process, bool in_disk_sleep,
                              double cpu_seconds, std::chrono::steady_clock::time_point now) {
  Suspect& suspect = suspects_[process];
  bool pegged = false;
  if (suspect.since) {
    const double elapsed = std::chrono::duration<double>(now - *suspect.since).count();
    pegged = elapsed > 0 && (cpu_seconds - suspect.cpu_seconds) / elapsed >= kPegged;
  }
  suspect.cpu_seconds = cpu_seconds;
  suspect.since = now;
  // On a busy host one that spins gets less of a core now and then: only an answer clears it.
  return pegged || in_disk_sleep || suspect.waits > 0;
}

void LockSuspects::note(const ProcessIdentity& process, LockProbe::Answer answer) {
  if (answer == LockProbe::Answer::kNotAsked) {
    return;
  }
  Suspect& suspect = suspects_[process];
  suspect.waits = answer == LockProbe::Answer::kWaits ? suspect.waits + 1 : 0;
}

bool LockSuspects::is_held(const ProcessIdentity& process) const {
  const auto found = suspects_.find(process);
  return found != suspects_.end() && found->second.waits >= kProof;
}

void LockSuspects::keep_only(const std::vector<ProcessIdentity>& living) {
  std::erase_if(suspects_, [&](const auto& entry) {
    return std::find(living.begin(), living.end(), entry.first) == living.end();
  });
}

std::span<const MetricInfo> mmap_lock_metrics() {
  return kMetrics;
}

std::unique_ptr<Collector> make_mmap_lock_collector(const CollectorContext& context,
                                                    std::unique_ptr<LockProbe> probe) {
  return std::make_unique<MmapLockCollector>(context, std::move(probe));
}

std::unique_ptr<Collector> make_mmap_lock_collector(const CollectorContext& context) {
  return make_mmap_lock_collector(context, std::make_unique<GuardedProbe>(context));
}

}  // namespace apu
