#include "collectors/checks.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "checks/host_checks.h"
#include "checks/seat_checks.h"
#include "exporter/store.h"

namespace apu {
namespace {

using prometheus::MetricType;

constexpr MetricInfo kSeatCheck{
    "apu_seat_check", MetricType::Gauge, "seat,check",
    "1 if the seat passes the check of apu_exporter check, 0 if it fails; absent where that is not "
    "known or does not apply (all collectors)"};
constexpr MetricInfo kHostCheck{
    "apu_host_check", MetricType::Gauge, "check",
    "1 if the host passes the check of apu_exporter check, 0 if it fails; absent where that is not "
    "known (all collectors)"};
constexpr std::array kMetrics{kSeatCheck, kHostCheck};

class ChecksCollector : public Collector {
 public:
  explicit ChecksCollector(const CollectorContext& context)
      : store_(context.store),
        sources_(context.sources),
        servers_(rules_of(context.seats)),
        mmap_allowed_{context.checks.allow_mmap, 0} {}

  Result<Snapshot> collect() override {
    ChecksFacts facts{check_host()};
    for (Check& check : check_all_seats()) {
      facts.checks.push_back(std::move(check));
    }
    Families families = to_families(facts);
    return Snapshot{std::move(facts), std::move(families)};
  }

 private:
  [[nodiscard]] Checks check_host() const {
    const auto swap = fresh_facts<SwapFacts>(*store_, "swap");
    const auto budgets = fresh_facts<BudgetsFacts>(*store_, "budgets");
    const auto driver = fresh_facts<DriverFacts>(*store_, "driver");
    const auto kernel_log = fresh_facts<KernelLogFacts>(*store_, "kernel_log");
    const auto cgroup = fresh_facts<CgroupFacts>(*store_, "cgroup");
    return apu::check_host({swap.get(), budgets.get(), driver.get(), kernel_log.get(), cgroup.get(),
                            why_missing("cgroup2")});
  }

  [[nodiscard]] Checks check_all_seats() const {
    const auto cgroup = fresh_facts<CgroupFacts>(*store_, "cgroup");
    const auto units = fresh_facts<UnitsFacts>(*store_, "units");
    const auto budgets = fresh_facts<BudgetsFacts>(*store_, "budgets");
    const auto config = fresh_facts<SeatConfigFacts>(*store_, "seat_config");
    const auto users = fresh_facts<ServiceUsersFacts>(*store_, "service_users");
    const auto ports = fresh_facts<SeatPortsFacts>(*store_, "seat_ports");
    const auto kfd = fresh_facts<KfdFacts>(*store_, "kfd");
    return check_seats({cgroup.get(), kfd.get(), units.get(), why_missing("dbus"), budgets.get(),
                        config.get(), users.get(), ports.get(), servers_, mmap_allowed_});
  }

  [[nodiscard]] std::string why_missing(const std::string& source) const {
    const auto reason = sources_.reason(source);
    return fmt::format("{}: {}", source, reason ? to_label(*reason) : "no data");
  }

  std::shared_ptr<const Store> store_;
  SourceReporter sources_;
  SeatRules servers_;
  SeatRules mmap_allowed_;
};

}  // namespace

Families to_families(const ChecksFacts& facts) {
  MetricWriter metrics;
  for (const Check& check : facts.checks) {
    if (check.result == CheckResult::kUnknown) {
      continue;
    }
    const double value = check.result == CheckResult::kPass ? 1 : 0;
    if (check.seat.empty()) {
      metrics.set(kHostCheck, {check.name}, value);
    } else {
      metrics.set(kSeatCheck, {check.seat, check.name}, value);
    }
  }
  return metrics.take();
}

std::span<const MetricInfo> checks_metrics() {
  return kMetrics;
}

std::unique_ptr<Collector> make_checks_collector(const CollectorContext& context) {
  return std::make_unique<ChecksCollector>(context);
}

}  // namespace apu
