#include "collectors/seat_config/seat_config.h"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "collectors/cgroup/cgroup.h"
#include "collectors/parsers/pid_stat.h"
#include "exporter/file_root.h"
#include "exporter/store.h"

namespace apu {
namespace {

using prometheus::MetricType;

constexpr MetricInfo kUnread{
    "apu_seat_config_unread_processes", MetricType::Gauge, "file",
    "Processes of seats whose file could not be read yet: cmdline or environ (/proc/PID/cmdline "
    "and environ, read by a helper)"};
constexpr std::array kMetrics{kUnread};

constexpr const char* kSource = "process_config";
constexpr const char* kCommandLine = "cmdline";
constexpr const char* kEnvironment = "environ";

/// What is known of a process.
struct KnownProcess {
  std::string comm;  ///< when its files were read
  std::optional<ServerArguments> command_line;
  std::optional<ToldConfig> environment;
};

class SeatConfigCollector : public Collector {
 public:
  explicit SeatConfigCollector(const CollectorContext& context)
      : procfs_(context.roots.procfs),
        store_(context.store),
        sources_(context.sources),
        reader_({kCommandLine, kEnvironment}, context.sources, settings()) {}

  Result<Snapshot> collect() override {
    const auto cgroup = fresh_facts<CgroupFacts>(*store_, "cgroup");
    if (!cgroup) {
      return Snapshot{SeatConfigFacts(), {}};
    }
    errors_.clear();
    unread_ = {{kCommandLine, {}}, {kEnvironment, {}}};
    follow(living_processes(*cgroup->index));
    read_command_lines();
    read_environments();
    note_source();
    SeatConfigFacts facts;
    for (const auto& [process, known] : known_) {
      facts.processes[process] = combine(known.command_line, known.environment);
    }
    MetricWriter metrics;
    for (const auto& [file, processes] : unread_) {
      metrics.set(kUnread, {file}, static_cast<double>(processes.size()));
    }
    return Snapshot{std::move(facts), metrics.take()};
  }

 private:
  using Processes = std::map<ProcessKey, std::string>;  // with their comm

  static GuardedReaderSettings settings() {
    GuardedReaderSettings settings;
    settings.call_wait = std::chrono::milliseconds(6000);  // two calls a pass
    settings.max_bytes = 4U << 20;  // execve takes 2 MiB of both, with the default stack limit
    return settings;
  }

  /// The processes of seats, as they are now.
  [[nodiscard]] Processes living_processes(const SeatIndex& index) const {
    Processes living;
    for (const Seat& seat : index.seats) {
      for (const SeatProcess& process : seat.processes) {
        if (auto comm = comm_of(process.key)) {
          living[process.key] = *std::move(comm);
        }
      }
    }
    return living;
  }

  /// nullopt if it has ended.
  [[nodiscard]] std::optional<std::string> comm_of(const ProcessKey& process) const {
    const auto stat = read_pid_stat(procfs_, std::to_string(process.pid));
    return stat && stat->start_ticks == process.start_ticks ? std::optional(stat->comm)
                                                            : std::nullopt;
  }

  /// Forgets processes that have ended, and what those were told that have become another program.
  void follow(const Processes& living) {
    std::erase_if(known_, [&](const auto& entry) {
      const auto found = living.find(entry.first);
      return found == living.end() || found->second != entry.second.comm;
    });
    for (const auto& [process, comm] : living) {
      known_.try_emplace(process, KnownProcess{comm, std::nullopt, std::nullopt});
    }
  }

  void read_command_lines() {
    std::vector<ProcessKey> wanted;
    for (const auto& [process, known] : known_) {
      if (!known.command_line) {
        wanted.push_back(process);
      }
    }
    read(kCommandLine, wanted, [](KnownProcess& known, std::string_view text) {
      known.command_line = parse_command_line(text, known.comm);
    });
  }

  /// A process whose command line did not answer holds this file's reader up for as long.
  void read_environments() {
    std::vector<ProcessKey> wanted;
    for (const auto& [process, known] : known_) {
      if (!known.environment && unread_[kCommandLine].contains(process)) {
        unread_[kEnvironment].insert(process);
      } else if (!known.environment) {
        wanted.push_back(process);
      }
    }
    read(kEnvironment, wanted, [](KnownProcess& known, std::string_view text) {
      known.environment = parse_environment(text);
    });
  }

  template <typename Take>
  void read(const char* kind, const std::vector<ProcessKey>& processes, Take take) {
    std::vector<GuardedFile> files;
    files.reserve(processes.size());
    for (const ProcessKey& process : processes) {
      files.push_back(
          {kind, procfs_.path_of(fmt::format("{}/{}", process.pid, kind)).string(), process});
    }
    const auto results = reader_.read(files);
    for (size_t i = 0; i < processes.size(); ++i) {
      const auto known = known_.find(processes[i]);
      if (comm_of(processes[i]) != known->second.comm) {
        known_.erase(known);  // what was read may be another program's, or another process's
      } else if (results[i] && !results[i]->empty()) {
        take(known->second, *results[i]);
      } else {  // empty: it has no memory yet, or no longer
        unread_[kind].insert(processes[i]);
        errors_.insert(results[i] ? ErrorKind::kNotFound : results[i].error().kind);
      }
    }
  }

  void note_source() const {
    for (const ErrorKind kind : {ErrorKind::kPermissionDenied, ErrorKind::kBlocked,
                                 ErrorKind::kMalformed, ErrorKind::kUnknown}) {
      if (errors_.contains(kind)) {
        sources_.unavailable(kSource, kind);
        return;
      }
    }
    sources_.available(kSource);
  }

  FileRoot procfs_;
  std::shared_ptr<const Store> store_;
  SourceReporter sources_;
  GuardedReader reader_;
  std::map<ProcessKey, KnownProcess> known_;
  std::map<std::string, std::set<ProcessKey>> unread_;  // of this pass, by file
  std::set<ErrorKind> errors_;                          // likewise
};

}  // namespace

void add_config_info(MetricWriter& metrics, const std::string& seat, const SeatConfigFacts& facts,
                     const ProcessKey& process) {
  const auto found = facts.processes.find(process);
  if (found == facts.processes.end()) {
    return;
  }
  const ServerConfig& config = found->second;
  metrics.set(kSeatConfigInfo,
              {seat, to_label(config.mmap), to_label(config.mlock), to_label(config.cpu_offload),
               to_label(config.userptr_for_paged_mem), to_label(config.xnack), config.model},
              1);
}

std::span<const MetricInfo> seat_config_metrics() {
  return kMetrics;
}

std::unique_ptr<Collector> make_seat_config_collector(const CollectorContext& context) {
  return std::make_unique<SeatConfigCollector>(context);
}

}  // namespace apu
