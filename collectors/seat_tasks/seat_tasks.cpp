#include "collectors/seat_tasks/seat_tasks.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "collectors/cgroup/cgroup.h"
#include "collectors/parsers/boot_time.h"
#include "collectors/seat_tasks/task_reader.h"
#include "collectors/seats/counters.h"
#include "exporter/store.h"

namespace apu {
namespace {

using prometheus::MetricType;
using Value = std::optional<std::uint64_t>;

constexpr MetricInfo kStarts{
    "apu_seat_process_starts_total", MetricType::Counter, "seat",
    "Processes of the seat that were seen to use the GPU; of one that uses none, all of its "
    "processes (cgroup.procs)"};
constexpr MetricInfo kThreads{"apu_seat_threads", MetricType::Gauge, "seat,state",
                              "Threads by state: running, sleeping, disk_sleep, stopped, zombie "
                              "(/proc/PID/task/TID/stat)"};
constexpr MetricInfo kStart{"apu_seat_start_time_seconds", MetricType::Gauge, "seat",
                            "Unix time at which the seat's oldest process started "
                            "(/proc/PID/stat, /proc/stat btime)"};
constexpr MetricInfo kCpu{"apu_seat_cpu_seconds_total", MetricType::Counter, "seat,mode",
                          "CPU time of the seat's processes, user or system (/proc/PID/stat)"};
constexpr MetricInfo kSwitches{
    "apu_seat_context_switches_total", MetricType::Counter, "seat,kind",
    "Context switches of all threads, voluntary or involuntary (/proc/PID/task/TID/status)"};
constexpr MetricInfo kFaults{"apu_seat_page_faults_total", MetricType::Counter, "seat,kind",
                             "Page faults, minor or major (/proc/PID/stat)"};
constexpr MetricInfo kReads{"apu_seat_read_bytes_total", MetricType::Counter, "seat",
                            "Bytes that the seat had storage read for, mapped files too "
                            "(/proc/PID/io read_bytes)"};
constexpr MetricInfo kResident{
    "apu_seat_memory_resident_bytes", MetricType::Gauge, "seat,kind",
    "Resident memory by kind: anon, file, shmem; what processes share counts for each "
    "(/proc/PID/status)"};
constexpr MetricInfo kSwapped{"apu_seat_memory_swapped_bytes", MetricType::Gauge, "seat",
                              "Anonymous memory that is swapped out (/proc/PID/status VmSwap)"};
constexpr MetricInfo kLocked{"apu_seat_memory_locked_bytes", MetricType::Gauge, "seat",
                             "Memory that mlock holds (/proc/PID/status VmLck)"};
constexpr MetricInfo kHottest{
    "apu_seat_hottest_thread_cpu_ratio", MetricType::Gauge, "seat,mode",
    "Share of a core that the busiest thread took since the pass before, user or system "
    "(/proc/PID/task/TID/schedstat, stat)"};
constexpr MetricInfo kSpinning{
    "apu_seat_spinning_threads", MetricType::Gauge, "seat",
    "Threads that took a whole core in user mode since the pass before, which healthy ones do too "
    "(/proc/PID/task/TID/schedstat, stat)"};
constexpr MetricInfo kBlocked{"apu_seat_blocked_threads", MetricType::Gauge, "seat,wait",
                              "Threads in disk sleep by what they wait for: kfd, memory, io, other "
                              "(/proc/PID/task/TID/stat, wchan, syscall)"};
constexpr std::array kMetrics{kStarts,   kThreads, kStart,  kCpu,     kSwitches, kFaults, kReads,
                              kResident, kSwapped, kLocked, kHottest, kSpinning, kBlocked};

constexpr std::array<std::string_view, 5> kThreadStates{"running", "sleeping", "disk_sleep",
                                                        "stopped", "zombie"};

/// Index in kThreadStates of a state letter of /proc/PID/stat.
size_t thread_state(char letter) {
  switch (letter) {
    case 'R':
      return 0;
    case 'D':
      return 2;
    case 'T':
    case 't':
      return 3;
    case 'Z':
    case 'X':
      return 4;
    default:
      return 1;  // S, I, P and what may come
  }
}

using Samples = std::vector<const ProcessSample*>;

/// The sum over all processes; nullopt if one of them has no such number.
template <typename Get>
Value sum_of(const Samples& samples, Get get) {
  Value sum;
  for (const ProcessSample* sample : samples) {
    const Value value = get(*sample);
    if (!value) {
      return std::nullopt;
    }
    sum = sum.value_or(0) + *value;
  }
  return sum;
}

class SeatTasksCollector : public Collector {
 public:
  explicit SeatTasksCollector(const CollectorContext& context)
      : procfs_(context.roots.procfs),
        clock_(context.clock),
        store_(context.store),
        sources_(context.sources),
        reader_(procfs_, context.sources) {}

  Result<Snapshot> collect() override {
    MetricWriter metrics;
    SeatTasksFacts facts;
    facts.time = clock_->monotonic();
    const auto boot_time = read_boot_time(procfs_);
    if (!sources_.note("procfs", boot_time)) {
      return boot_time.error();
    }
    boot_time_ = *boot_time;
    const auto cgroup = fresh_facts<CgroupFacts>(*store_, "cgroup");
    living_.clear();
    if (cgroup) {
      watched_lately_ = last_pass_ && facts.time - *last_pass_ <= ProcessHistory::kBirth;
      last_pass_ = facts.time;
      reader_.begin_pass(cgroup->index->seats.size());
      for (const Seat& seat : cgroup->index->seats) {
        look_at(seat, facts, metrics);
      }
      forget_all_but(*cgroup->index);
    }
    reader_.end_pass();
    return Snapshot{std::move(facts), metrics.take()};
  }

 private:
  // Of one seat; what it runs beside the model server is not looked at without limit.
  static constexpr size_t kMaxProcesses = 128;

  struct Watched {
    ProcessHistory history;
    SurvivingSum voluntary;
    SurvivingSum involuntary;
  };

  void look_at(const Seat& seat, SeatTasksFacts& facts, MetricWriter& metrics) {
    metrics.set(kStarts, {seat.name}, static_cast<double>(starts_.count(seat)));
    std::vector<SeatProcess> processes = seat.processes;
    std::stable_partition(processes.begin(), processes.end(),
                          [](const SeatProcess& process) { return process.on_gpu; });
    processes.resize(std::min(processes.size(), kMaxProcesses));
    Samples samples;
    reader_.begin_seat();
    for (const SeatProcess& process : processes) {
      if (const ProcessSample* sample = sample_of(process.key, facts.time)) {
        samples.push_back(sample);
        facts.seats[seat.name].push_back({process.key, sample->comm, process.on_gpu,
                                          start_of(*sample),
                                          watched_.at(process.key).history.activity()});
      }
    }
    if (samples.empty()) {
      return;
    }
    add_counters(seat, samples, metrics);
    add_threads(seat.name, samples, metrics);
    add_memory(seat.name, samples, metrics);
    add_activity(seat.name, facts.seats.at(seat.name), metrics);
  }

  const ProcessSample* sample_of(const ProcessKey& key, std::chrono::nanoseconds time) {
    auto sample = reader_.read(key, time);
    if (!sample) {
      return nullptr;
    }
    sample->age = clock_->now() - start_of(*sample);
    sample->joined = watched_lately_ && !watched_.contains(key);
    living_.insert(key);
    ProcessHistory& history = watched_[key].history;
    history.add(*std::move(sample));
    return &history.last();
  }

  [[nodiscard]] TimePoint start_of(const ProcessSample& sample) const {
    const std::chrono::duration<double> since_boot(static_cast<double>(sample.stat.start_ticks) /
                                                   ticks_per_second());
    return boot_time_ + std::chrono::duration_cast<TimePoint::duration>(since_boot);
  }

  /// A counter of the seat, of what `get` says of each process; absent if one has no such number.
  template <typename Get>
  std::optional<double> counter(const Seat& seat, const char* what, const Samples& samples,
                                Get get) {
    std::map<ProcessKey, std::uint64_t> values;
    for (const ProcessSample* sample : samples) {
      const Value value = get(*sample);
      if (!value) {
        return std::nullopt;
      }
      values[sample->key] = *value;
    }
    return static_cast<double>(counters_.total(seat, what, values));
  }

  void add_counters(const Seat& seat, const Samples& samples, MetricWriter& metrics) {
    const double tick = 1.0 / ticks_per_second();
    const auto of_stat = [&](const char* what, std::uint64_t PidStat::*member) {
      return counter(seat, what, samples,
                     [&](const ProcessSample& sample) { return Value(sample.stat.*member); });
    };
    metrics.set(kCpu, {seat.name, "user"}, *of_stat("user", &PidStat::user_ticks) * tick);
    metrics.set(kCpu, {seat.name, "system"}, *of_stat("system", &PidStat::system_ticks) * tick);
    metrics.set(kFaults, {seat.name, "minor"}, of_stat("minor", &PidStat::minor_faults));
    metrics.set(kFaults, {seat.name, "major"}, of_stat("major", &PidStat::major_faults));
    metrics.set(kReads, {seat.name},
                counter(seat, "read", samples,
                        [](const ProcessSample& sample) { return sample.read_bytes; }));
    metrics.set(kSwitches, {seat.name, "voluntary"},
                counter(seat, "voluntary", samples, [&](const ProcessSample& sample) {
                  return switches(sample, &TaskSample::voluntary_switches,
                                  watched_[sample.key].voluntary);
                }));
    metrics.set(kSwitches, {seat.name, "involuntary"},
                counter(seat, "involuntary", samples, [&](const ProcessSample& sample) {
                  return switches(sample, &TaskSample::involuntary_switches,
                                  watched_[sample.key].involuntary);
                }));
  }

  static Value switches(const ProcessSample& sample,
                        std::optional<std::uint64_t> TaskSample::*member, SurvivingSum& threads) {
    std::set<ProcessIdentity> living;
    std::map<ProcessIdentity, std::uint64_t> values;
    for (const TaskSample& task : sample.tasks) {
      living.insert(task.key);
      if (const Value& value = task.*member) {
        values[task.key] = *value;
      }
    }
    const std::uint64_t total = threads.total(
        values, [&](const ProcessIdentity& thread) { return living.contains(thread); });
    return sample.all_tasks ? Value(total) : std::nullopt;
  }

  static void add_threads(const std::string& seat, const Samples& samples, MetricWriter& metrics) {
    std::array<unsigned, kThreadStates.size()> states{};
    for (const ProcessSample* sample : samples) {
      if (!sample->all_tasks) {
        return;
      }
      for (const TaskSample& task : sample->tasks) {
        ++states.at(thread_state(task.state));
      }
    }
    for (size_t i = 0; i < states.size(); ++i) {
      metrics.set(kThreads, {seat, kThreadStates.at(i)}, states.at(i));
    }
  }

  void add_memory(const std::string& seat, const Samples& samples, MetricWriter& metrics) const {
    const auto sum = [&](std::optional<std::uint64_t> PidStatus::*member) {
      return sum_of(samples, [&](const ProcessSample& sample) { return sample.status.*member; });
    };
    metrics.set(kResident, {seat, "anon"}, sum(&PidStatus::anon_bytes));
    metrics.set(kResident, {seat, "file"}, sum(&PidStatus::file_bytes));
    metrics.set(kResident, {seat, "shmem"}, sum(&PidStatus::shmem_bytes));
    metrics.set(kSwapped, {seat}, sum(&PidStatus::swap_bytes));
    metrics.set(kLocked, {seat}, sum(&PidStatus::locked_bytes));
    const auto oldest = std::min_element(
        samples.begin(), samples.end(),
        [](const auto* a, const auto* b) { return a->stat.start_ticks < b->stat.start_ticks; });
    metrics.set(kStart, {seat}, to_unix_seconds(start_of(**oldest)));
  }

  static void add_activity(const std::string& seat, const std::vector<SeatProcessFacts>& processes,
                           MetricWriter& metrics) {
    std::optional<CpuShare> hottest;
    unsigned spinning = 0;
    std::array<unsigned, 4> blocked{};
    for (const SeatProcessFacts& process : processes) {
      if (const auto& last = process.activity.last) {
        if (!hottest || last->hottest.total() > hottest->total()) {
          hottest = last->hottest;
        }
        spinning += last->spinning_threads;
      }
      for (size_t i = 0; i < blocked.size(); ++i) {
        blocked.at(i) += process.activity.blocked_threads.at(i);
      }
    }
    if (hottest) {
      metrics.set(kHottest, {seat, "user"}, hottest->user);
      metrics.set(kHottest, {seat, "system"}, hottest->system);
      metrics.set(kSpinning, {seat}, spinning);
    }
    for (size_t i = 0; i < blocked.size(); ++i) {
      metrics.set(kBlocked, {seat, to_label(static_cast<TaskWait>(i))}, blocked.at(i));
    }
  }

  void forget_all_but(const SeatIndex& index) {
    std::erase_if(watched_, [&](const auto& entry) { return !living_.contains(entry.first); });
    starts_.keep_only(index);
    counters_.keep_only(index);
  }

  FileRoot procfs_;
  std::shared_ptr<const Clock> clock_;
  std::shared_ptr<const Store> store_;
  SourceReporter sources_;
  TaskReader reader_;
  std::optional<std::chrono::nanoseconds> last_pass_;  // with seats
  bool watched_lately_ = false;
  TimePoint boot_time_;
  std::map<ProcessKey, Watched> watched_;
  std::set<ProcessKey> living_;  // of this pass
  ProcessStarts starts_;
  SeatCounters counters_;
};

}  // namespace

std::span<const MetricInfo> seat_tasks_metrics() {
  return kMetrics;
}

std::unique_ptr<Collector> make_seat_tasks_collector(const CollectorContext& context) {
  return std::make_unique<SeatTasksCollector>(context);
}

}  // namespace apu
