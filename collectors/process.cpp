#include "collectors/process.h"

#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "collectors/parsers/boot_time.h"
#include "exporter/file_root.h"

namespace apu {
namespace {

using prometheus::MetricType;

constexpr MetricInfo kCpu{"process_cpu_seconds_total", MetricType::Counter, "",
                          "User and system CPU time of the exporter (/proc/self/stat)"};
constexpr MetricInfo kOpenFds{"process_open_fds", MetricType::Gauge, "",
                              "Open file descriptors of the exporter (/proc/self/fd)"};
constexpr MetricInfo kMaxFds{"process_max_fds", MetricType::Gauge, "",
                             "Most file descriptors the exporter may open (RLIMIT_NOFILE)"};
constexpr MetricInfo kResident{"process_resident_memory_bytes", MetricType::Gauge, "",
                               "Resident memory of the exporter (/proc/self/stat)"};
constexpr MetricInfo kVirtual{"process_virtual_memory_bytes", MetricType::Gauge, "",
                              "Virtual memory of the exporter (/proc/self/stat)"};
constexpr MetricInfo kMaxVirtual{"process_virtual_memory_max_bytes", MetricType::Gauge, "",
                                 "Most virtual memory the exporter may use, absent if unlimited "
                                 "(RLIMIT_AS)"};
constexpr MetricInfo kStart{"process_start_time_seconds", MetricType::Gauge, "",
                            "Unix time at which the exporter started (/proc/self/stat)"};
constexpr MetricInfo kThreads{"process_threads", MetricType::Gauge, "",
                              "Threads of the exporter (/proc/self/stat)"};
constexpr std::array kMetrics{kCpu,     kOpenFds,    kMaxFds, kResident,
                              kVirtual, kMaxVirtual, kStart,  kThreads};

std::optional<std::uint64_t> soft_limit(__rlimit_resource resource) {
  rlimit limit{};
  const bool limited = ::getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return limited ? std::optional<std::uint64_t>(limit.rlim_cur) : std::nullopt;
}

class ProcessCollector : public Collector {
 public:
  Result<Snapshot> collect() override {
    const auto text = self_.read("stat");
    const auto stat = text ? parse_pid_stat(*text) : Result<PidStat>(text.error());
    if (!stat) {
      return stat.error();
    }
    const auto descriptors = self_.list("fd");
    if (!descriptors) {
      return descriptors.error();
    }
    const auto boot_time = read_boot_time(FileRoot("/proc"));
    if (!boot_time) {
      return boot_time.error();
    }
    ProcessFacts facts{*stat,
                       descriptors->size(),
                       soft_limit(RLIMIT_NOFILE),
                       soft_limit(RLIMIT_AS),
                       *boot_time,
                       static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)),
                       static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK))};
    Families families = to_families(facts);
    return Snapshot{std::move(facts), std::move(families)};
  }

 private:
  FileRoot self_{"/proc/self"};
};

}  // namespace

Families to_families(const ProcessFacts& facts) {
  const auto ticks = static_cast<double>(facts.ticks_per_second);
  const PidStat& stat = facts.stat;
  MetricWriter metrics;
  metrics.set(kCpu, static_cast<double>(stat.user_ticks + stat.system_ticks) / ticks);
  metrics.set(kOpenFds, static_cast<double>(facts.open_descriptors));
  metrics.set(kMaxFds, facts.max_descriptors);
  metrics.set(kResident, static_cast<double>(stat.resident_pages * facts.page_bytes));
  metrics.set(kVirtual, static_cast<double>(stat.virtual_bytes));
  metrics.set(kMaxVirtual, facts.max_virtual_bytes);
  metrics.set(kStart,
              to_unix_seconds(facts.boot_time) + static_cast<double>(stat.start_ticks) / ticks);
  metrics.set(kThreads, static_cast<double>(stat.threads));
  return metrics.take();
}

std::span<const MetricInfo> process_metrics() {
  return kMetrics;
}

std::unique_ptr<Collector> make_process_collector(const CollectorContext& /*context*/) {
  return std::make_unique<ProcessCollector>();
}

}  // namespace apu
