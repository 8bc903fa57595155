#include "collectors/kworkers.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "exporter/file_root.h"
#include "exporter/text.h"

namespace apu {
namespace {

using prometheus::MetricType;

constexpr MetricInfo kPerCpu{
    "apu_percpu_kworker_cpu_seconds_total", MetricType::Counter, "",
    "CPU time of all kworkers that are bound to a CPU, restore workers among them "
    "(/proc/PID/stat)"};
constexpr MetricInfo kByWorkqueue{
    "apu_kworker_cpu_seconds_total", MetricType::Counter, "workqueue",
    "CPU time of kworkers by the workqueue that their name shows at each pass, a sample; the "
    "restore workers use events_freezable (/proc/PID/stat)"};
constexpr std::array kMetrics{kPerCpu, kByWorkqueue};

// The queues of the restore, evict and teardown workers of KFD, and those that other drivers share
// with them. A label must come from a bounded set; the rest is "other".
constexpr std::array<std::string_view, 8> kNamedWorkqueues{
    "events",         "events_freezable", "events_highpri", "events_long",
    "events_unbound", "kfd_process_wq",   "kfd_restore_wq", "mm_percpu_wq"};

std::string label_of(const std::string& workqueue) {
  const auto* const found = std::find(kNamedWorkqueues.begin(), kNamedWorkqueues.end(), workqueue);
  return found == kNamedWorkqueues.end() ? "other" : workqueue;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Which processes are kworkers, so that the stat of all others is read once only.
class KworkerFinder {
 public:
  /// The kworkers among `names` of /proc.
  std::vector<KworkerSample> read(const FileRoot& procfs, const std::vector<std::string>& names) {
    std::set<std::string, std::less<>> others;
    std::vector<KworkerSample> kworkers;
    for (const std::string& name : names) {
      if (!is_digit(name[0])) {
        continue;
      }
      if (others_.contains(name) && passes_ % kLookAgainAfter != 0) {
        others.insert(name);
        continue;
      }
      if (auto kworker = read_one(procfs, name)) {
        kworkers.push_back(*std::move(kworker));
      } else {
        others.insert(name);
      }
    }
    others_ = std::move(others);
    ++passes_;
    return kworkers;
  }

 private:
  // A process id may be used again, by a kworker.
  static constexpr unsigned kLookAgainAfter = 20;

  static std::optional<KworkerSample> read_one(const FileRoot& procfs, const std::string& pid) {
    const auto stat = read_pid_stat(procfs, pid);
    if (!stat || !is_kernel_thread(*stat)) {
      return std::nullopt;  // it ended in between, or a process took such a name
    }
    auto name = parse_kworker_name(stat->comm);
    if (!name) {
      return std::nullopt;
    }
    return KworkerSample{stat->pid, stat->start_ticks, stat->user_ticks + stat->system_ticks,
                         *std::move(name)};
  }

  std::set<std::string, std::less<>> others_;
  unsigned passes_ = 0;
};

class KworkersCollector : public Collector {
 public:
  explicit KworkersCollector(const CollectorContext& context)
      : procfs_(context.roots.procfs), clock_(context.clock), sources_(context.sources) {}

  Result<Snapshot> collect() override {
    const auto names = procfs_.list("");
    if (!sources_.note("procfs", names)) {
      return names.error();
    }
    const std::vector<KworkerSample> kworkers = finder_.read(procfs_, *names);
    if (kworkers.empty()) {
      sources_.unavailable("kworkers", ErrorKind::kNotFound);
      return Error{ErrorKind::kNotFound, "no kworker in /proc: a process namespace of its own?"};
    }
    sources_.available("kworkers");
    totals_.add_pass(clock_->monotonic(), kworkers);
    KworkersFacts facts = to_facts();
    Families families = to_families(facts);
    return Snapshot{std::move(facts), std::move(families)};
  }

 private:
  [[nodiscard]] KworkersFacts to_facts() const {
    KworkersFacts facts;
    facts.per_cpu_seconds = static_cast<double>(totals_.per_cpu_ticks()) / ticks_per_second();
    if (const auto rate = totals_.per_cpu_rate()) {
      facts.per_cpu_cores = *rate / ticks_per_second();
    }
    for (const auto& [workqueue, ticks] : totals_.by_workqueue()) {
      facts.seconds_by_workqueue[workqueue] = static_cast<double>(ticks) / ticks_per_second();
    }
    return facts;
  }

  FileRoot procfs_;
  std::shared_ptr<const Clock> clock_;
  SourceReporter sources_;
  KworkerFinder finder_;
  KworkerTotals totals_;
};

}  // namespace

std::optional<KworkerName> parse_kworker_name(std::string_view comm) {
  std::string_view rest = comm;
  if (!consume(rest, "kworker/")) {
    return std::nullopt;
  }
  const bool rescuer = consume(rest, "R-");
  KworkerName name;
  name.per_cpu = !rescuer && !rest.empty() && is_digit(rest[0]);
  const size_t mark = rescuer ? std::string_view::npos : rest.find_first_of("+-");
  if (mark != std::string_view::npos) {
    name.workqueue = std::string(rest.substr(mark + 1));
  }
  return name;
}

void KworkerTotals::add_pass(std::chrono::nanoseconds monotonic,
                             const std::vector<KworkerSample>& kworkers) {
  const bool first = passes_++ == 0;
  for (const KworkerSample& kworker : kworkers) {
    const Identity identity{kworker.pid, kworker.start_ticks};
    const auto before = seen_.find(identity);
    // What was used before the first pass went to queues that nobody saw.
    const std::uint64_t base = before != seen_.end() ? before->second.ticks
                               : first               ? kworker.cpu_ticks
                                                     : 0;
    const std::uint64_t used = kworker.cpu_ticks > base ? kworker.cpu_ticks - base : 0;
    per_cpu_ticks_ += kworker.name.per_cpu ? used : 0;
    by_workqueue_[label_of(kworker.name.workqueue)] += used;
    seen_[identity] = {kworker.cpu_ticks, passes_};
  }
  std::erase_if(seen_, [this](const auto& kworker) {
    return kworker.second.pass + kRememberedPasses < passes_;
  });
  per_cpu_history_.add(monotonic, static_cast<double>(per_cpu_ticks_));
}

std::optional<double> KworkerTotals::per_cpu_rate() const {
  return per_cpu_history_.rate(kWindow);
}

Families to_families(const KworkersFacts& facts) {
  MetricWriter metrics;
  metrics.set(kPerCpu, facts.per_cpu_seconds);
  for (const auto& [workqueue, seconds] : facts.seconds_by_workqueue) {
    metrics.set(kByWorkqueue, {workqueue}, seconds);
  }
  return metrics.take();
}

std::span<const MetricInfo> kworkers_metrics() {
  return kMetrics;
}

std::unique_ptr<Collector> make_kworkers_collector(const CollectorContext& context) {
  return std::make_unique<KworkersCollector>(context);
}

}  // namespace apu
