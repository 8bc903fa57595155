#include "collectors/seat_health/seat_health.h"

#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "collectors/cgroup/cgroup.h"
#include "collectors/seat_config/seat_config.h"
#include "collectors/seats/counters.h"
#include "exporter/store.h"

namespace apu {
namespace {

using prometheus::MetricType;

constexpr MetricInfo kReady{
    "apu_seat_ready", MetricType::Gauge, "seat",
    "1 if each llama-server of the seat that can be asked says that it is ready, 0 if one loads, "
    "does not listen yet or does not answer; absent where none can be asked (GET /health)"};
constexpr MetricInfo kLoadDuration{
    "apu_seat_load_duration_seconds", MetricType::Gauge, "seat",
    "From the start of the seat's newest llama-server to its first answer that it is ready, too "
    "long by one period at most; absent for a load whose end was not watched (GET /health)"};
constexpr MetricInfo kSlots{
    "apu_seat_slots", MetricType::Gauge, "seat,state",
    "Slots of the seat's llama-servers by state, idle or busy; absent while one that tells of "
    "them does not answer (GET /slots)"};
constexpr MetricInfo kTokens{
    "apu_seat_decoded_tokens_total", MetricType::Counter, "seat",
    "Tokens that the seat's llama-servers made since they were first asked, as far as it can be "
    "seen: a lower bound, since those of a task that ended between two probes are not (GET "
    "/slots)"};
constexpr std::array kMetrics{kReady, kLoadDuration, kSlots, kTokens};

class SeatHealthCollector : public Collector {
 public:
  SeatHealthCollector(const CollectorContext& context, std::unique_ptr<HttpClient> client)
      : clock_(context.clock), store_(context.store), sources_(context.sources) {
    if (client) {
      prober_.emplace(context, std::move(client));
    }
  }

  Result<Snapshot> collect() override {
    if (!prober_) {
      const Error error{ErrorKind::kUnsupported,
                        "servers of the host at --path.rootfs are not asked"};
      sources_.note(kHealthSource, Status(error));
      return error;
    }
    const auto cgroup = fresh_facts<CgroupFacts>(*store_, "cgroup");
    const auto configs = fresh_facts<SeatConfigFacts>(*store_, "seat_config");
    if (!cgroup || !configs) {
      return Snapshot{SeatHealthFacts(), {}};
    }
    SeatHealthFacts facts = prober_->probe(*cgroup->index, *configs, clock_->monotonic());
    Families families = to_families(*cgroup->index, facts);
    return Snapshot{std::move(facts), std::move(families)};
  }

 private:
  Families to_families(const SeatIndex& index, const SeatHealthFacts& facts) {
    MetricWriter metrics;
    for (const Seat& seat : index.seats) {
      const auto found = facts.seats.find(seat.name);
      const auto servers = found == facts.seats.end() ? std::vector<ServerHealth>() : found->second;
      add_ready(metrics, seat.name, servers);
      add_load_duration(metrics, seat.name, servers);
      add_slots(metrics, seat.name, servers);
      add_tokens(metrics, seat, servers);
    }
    counters_.keep_only(index);
    apu::keep_only(index, counted_);
    return metrics.take();
  }

  static void add_ready(MetricWriter& metrics, const std::string& seat,
                        const std::vector<ServerHealth>& servers) {
    std::optional<bool> all;
    for (const ServerHealth& server : servers) {
      if (server.ready) {
        all = all.value_or(true) && *server.ready;
      }
    }
    if (all) {
      metrics.set(kReady, {seat}, *all ? 1 : 0);
    }
  }

  static void add_load_duration(MetricWriter& metrics, const std::string& seat,
                                const std::vector<ServerHealth>& servers) {
    const ServerHealth* newest = nullptr;
    for (const ServerHealth& server : servers) {
      const bool later =
          newest == nullptr || server.process.start_ticks > newest->process.start_ticks;
      newest = server.load_duration && later ? &server : newest;
    }
    if (newest != nullptr) {
      metrics.set(kLoadDuration, {seat}, newest->load_duration->count());
    }
  }

  static void add_slots(MetricWriter& metrics, const std::string& seat,
                        const std::vector<ServerHealth>& servers) {
    std::optional<SlotCounts> sum;
    for (const ServerHealth& server : servers) {
      if (server.slots_missing) {
        return;
      }
      if (server.slots) {
        sum = sum.value_or(SlotCounts());
        sum->idle += server.slots->idle;
        sum->busy += server.slots->busy;
      }
    }
    if (sum) {
      metrics.set(kSlots, {seat, "idle"}, static_cast<double>(sum->idle));
      metrics.set(kSlots, {seat, "busy"}, static_cast<double>(sum->busy));
    }
  }

  void add_tokens(MetricWriter& metrics, const Seat& seat,
                  const std::vector<ServerHealth>& servers) {
    std::map<ProcessKey, std::uint64_t> decoded;
    for (const ServerHealth& server : servers) {
      if (server.decoded) {
        decoded[server.process] = *server.decoded;
      }
    }
    bool& counted = counted_[seat.name];
    counted = counted || !decoded.empty();
    if (counted) {
      metrics.set(kTokens, {seat.name},
                  static_cast<double>(counters_.total(seat, "tokens", decoded)));
    }
  }

  std::shared_ptr<const Clock> clock_;
  std::shared_ptr<const Store> store_;
  SourceReporter sources_;
  std::optional<HealthProber> prober_;  // absent where nobody may be asked
  SeatCounters counters_;
  std::map<std::string, bool> counted_;  // by seat, whether it ever told of tokens
};

}  // namespace

std::span<const MetricInfo> seat_health_metrics() {
  return kMetrics;
}

std::unique_ptr<Collector> make_seat_health_collector(const CollectorContext& context,
                                                      std::unique_ptr<HttpClient> client) {
  return std::make_unique<SeatHealthCollector>(context, std::move(client));
}

std::unique_ptr<Collector> make_seat_health_collector(const CollectorContext& context) {
  return make_seat_health_collector(context, context.roots.fixture ? nullptr : make_http_client());
}

}  // namespace apu
