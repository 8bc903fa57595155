#include <utility>

#include "exporter/health.h"
#include "exporter/text.h"
#include "triage/report.h"
#include "verdict/judgement_json.h"

namespace apu {
namespace {

constexpr int kFormatVersion = 1;

template <typename Value>
Json optional_json(const std::optional<Value>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json host_json(const HostFacts& host) {
  return {{"boot_time", to_unix_seconds(host.boot_time)},
          {"kernel", to_valid_utf8(host.kernel)},
          {"amdgpu", to_valid_utf8(host.amdgpu)},
          {"rocm", to_valid_utf8(host.rocm)},
          {"machine", to_valid_utf8(host.machine)}};
}

Json seat_json(const TriageSeat& seat) {
  Json reasons = Json::array();
  for (const Evidence& reason : seat.reasons) {
    reasons.push_back(evidence_json(reason));
  }
  return {{"seat", to_valid_utf8(seat.name)},
          {"state", seat.state ? Json(to_label(*seat.state)) : Json(nullptr)},
          {"since", time_json(seat.since)},
          {"pid", optional_json(seat.pid)},
          {"command", to_valid_utf8(seat.command)},
          {"gpu_bytes", optional_json(seat.gpu_bytes)},
          {"charged_bytes", optional_json(seat.charged_bytes)},
          {"reasons", std::move(reasons)}};
}

}  // namespace

std::string to_triage_json(const TriageReport& report) {
  Json seats = Json::array();
  for (const TriageSeat& seat : report.seats) {
    seats.push_back(seat_json(seat));
  }
  Json pools = Json::array();
  for (const TriagePool& pool : report.pools) {
    pools.push_back({{"name", to_valid_utf8(pool.name)},
                     {"used_bytes", pool.used_bytes},
                     {"size_bytes", pool.size_bytes}});
  }
  Json events = Json::array();
  for (const TriageEvent& event : report.events) {
    events.push_back({{"event", to_valid_utf8(event.event)},
                      {"count", event.count},
                      {"last", time_json(event.last)}});
  }
  const Json json{{"format", "apu_exporter triage"},
                  {"version", kFormatVersion},
                  {"exporter", version()},
                  {"time", to_unix_seconds(report.now)},
                  {"has_verdict", report.has_verdict},
                  {"fault", report.is_fault()},
                  {"no_gpu", report.no_gpu},
                  {"judgement", judgement_json(report.verdict.judgement)},
                  {"host", report.host ? host_json(*report.host) : Json(nullptr)},
                  {"seats", std::move(seats)},
                  {"seats_at_fault", strings_json(report.verdict.concerned)},
                  {"seats_safe", strings_json(report.verdict.safe)},
                  {"seats_unproven", strings_json(report.verdict.unproven)},
                  {"memory", std::move(pools)},
                  {"kernel_events", std::move(events)},
                  {"not_known", strings_json(report.verdict.not_known)},
                  {"advice", strings_json(advice_for(report))}};
  constexpr int kIndent = 2;
  return json.dump(kIndent) + "\n";
}

}  // namespace apu
