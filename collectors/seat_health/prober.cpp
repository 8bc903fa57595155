#include "collectors/seat_health/prober.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "collectors/parsers/pid_stat.h"
#include "exporter/log.h"
#include "exporter/text.h"

namespace apu {
namespace {

constexpr std::chrono::milliseconds kRequestTime{2000};
constexpr size_t kMaxHealthBytes = size_t{64} << 10U;
constexpr size_t kMaxSlotsBytes = size_t{1} << 20U;

constexpr long kOk = 200;
constexpr long kServerError = 500;  // builds of 2024: the model failed to load
constexpr long kUnavailable = 503;  // it loads
constexpr long kFirstError = 400;

}  // namespace

HealthProber::HealthProber(const CollectorContext& context, std::unique_ptr<HttpClient> client)
    : procfs_(context.roots.procfs),
      sources_(context.sources),
      targets_(procfs_, context.sources),
      client_(std::move(client)) {}

SeatHealthFacts HealthProber::probe(const SeatIndex& index, const SeatConfigFacts& configs,
                                    std::chrono::nanoseconds now) {
  now_ = now;
  first_pass_ = first_pass_.value_or(now);
  std::vector<Probe> probes = find_servers(index, configs);
  ask_health(probes);
  ask_slots(probes);
  SeatHealthFacts facts;
  for (const Probe& probe : probes) {
    if (probe.health.evidence) {
      facts.evidence[probe.target.process] = *probe.health.evidence;
    }
    facts.seats[probe.target.seat].push_back(probe.health);
  }
  return facts;
}

std::vector<HealthProber::Probe> HealthProber::find_servers(const SeatIndex& index,
                                                            const SeatConfigFacts& configs) {
  std::vector<Probe> probes;
  std::set<ProcessKey> living;
  bool all_readable = true;
  for (HealthTarget& target : targets_.find(index, configs)) {
    living.insert(target.process);
    all_readable = all_readable && target.not_asked != NotAsked::kUnreadable;
    say_if_not_asked(target);
    Probe probe;
    probe.health.process = target.process;
    probe.target = std::move(target);
    probes.push_back(std::move(probe));
  }
  std::erase_if(watches_, [&](const auto& entry) { return !living.contains(entry.first); });
  if (all_readable) {
    sources_.available(kHealthSource);
  } else {
    sources_.unavailable(kHealthSource, ErrorKind::kPermissionDenied);
  }
  return probes;
}

void HealthProber::say_if_not_asked(const HealthTarget& target) {
  Watch& watch = watches_[target.process];
  if (target.not_asked && watch.said != target.not_asked) {
    log::info("A server is not asked for its health", {{"seat", target.seat},
                                                       {"pid", std::to_string(target.process.pid)},
                                                       {"reason", to_text(*target.not_asked)}});
  }
  watch.said = target.not_asked;
}

std::vector<HealthProber::Reply> HealthProber::ask(std::vector<Probe>& probes, const char* path,
                                                   size_t max_bytes, bool only_ready) {
  std::vector<Probe*> asked;
  std::vector<HttpRequest> requests;
  for (Probe& probe : probes) {
    const bool wanted = !only_ready || probe.health.ready == true;
    if (wanted && !probe.target.not_asked && !probe.target.url.empty()) {
      asked.push_back(&probe);
      requests.push_back({probe.target.url + path, max_bytes});
    }
  }
  std::vector<Reply> replies;
  if (requests.empty()) {
    return replies;
  }
  std::vector<HttpReply> answers = client_->get(requests, kRequestTime);
  for (size_t i = 0; i < asked.size(); ++i) {
    replies.emplace_back(asked[i], std::move(answers[i]));
  }
  return replies;
}

void HealthProber::ask_health(std::vector<Probe>& probes) {
  for (Probe& probe : probes) {
    if (!probe.target.not_asked && probe.target.url.empty()) {
      note_ready(probe, false, true);
    }
  }
  for (auto& [probe, reply] : ask(probes, "/health", kMaxHealthBytes, false)) {
    take_health(*probe, reply);
  }
  for (Probe& probe : probes) {
    LoadWatch& load = watches_[probe.target.process].load;
    if (probe.health.ready && probe.definite) {
      load.note(*probe.health.ready, age_of(probe.target.process), now_ - *first_pass_);
    }
    probe.health.load_duration = load.duration();
  }
}

void HealthProber::note_ready(Probe& probe, bool ready, bool definite) {
  probe.health.ready = ready;
  probe.definite = definite;
}

void HealthProber::take_health(Probe& probe, const HttpReply& reply) const {
  switch (reply.outcome) {
    case HttpOutcome::kRefused:
      return note_ready(probe, false, true);
    case HttpOutcome::kSilent:
    case HttpOutcome::kFailed:
      return note_ready(probe, false, false);
    case HttpOutcome::kTooLarge:
      return complain(probe, "/health: too large an answer");
    case HttpOutcome::kAnswered:
      break;
  }
  if (reply.status == kUnavailable || reply.status == kServerError) {
    note_ready(probe, false, true);
  } else if (reply.status == kOk && is_health_answer(reply.body)) {
    note_ready(probe, true, true);
  } else {
    complain(probe, fmt::format("/health: no llama-server's answer, status {}", reply.status));
  }
}

void HealthProber::ask_slots(std::vector<Probe>& probes) {
  for (auto& [probe, reply] : ask(probes, "/slots", kMaxSlotsBytes, true)) {
    take_slots(*probe, watches_[probe->target.process], reply);
  }
  for (Probe& probe : probes) {
    const Watch& watch = watches_[probe.target.process];
    if (watch.told_slots) {
      probe.health.decoded = watch.tokens.total();
    }
    if (probe.health.ready && probe.definite) {
      probe.health.evidence = HealthEvidence{*probe.health.ready, watch.busy.without_progress(),
                                             watch.busy.unanswered()};
    }
  }
}

void HealthProber::take_slots(Probe& probe, Watch& watch, const HttpReply& reply) const {
  const bool answered = reply.outcome == HttpOutcome::kAnswered;
  if (answered && reply.status >= kFirstError) {
    watch.told_slots = false;  // it is told not to, wants a key, or is a router, which has none
    watch.busy = BusyWatch();
    return;
  }
  if (answered && reply.status == kOk) {
    if (const auto slots = parse_slots(reply.body)) {
      return note_slots(probe, watch, *slots);
    }
  }
  probe.health.slots_missing = true;
  if (reply.outcome == HttpOutcome::kTooLarge) {
    complain(probe, "/slots: too large an answer");
  } else if (answered) {
    complain(probe, fmt::format("/slots: no llama-server's answer, status {}", reply.status));
  } else {
    watch.busy.note_silence(now_);
  }
}

void HealthProber::note_slots(Probe& probe, Watch& watch,
                              const std::vector<ServerSlot>& slots) const {
  watch.told_slots = true;
  watch.tokens.note(slots);
  watch.busy.note(slots, now_);
  SlotCounts counts;
  for (const ServerSlot& slot : slots) {
    ++(slot.busy ? counts.busy : counts.idle);
  }
  probe.health.slots = counts;
}

void HealthProber::complain(const Probe& probe, const std::string& what) const {
  sources_.parse_error(kHealthSource,
                       fmt::format("seat {}: {}", to_valid_utf8(probe.target.seat), what));
}

/// Since the start of the process, by the clock that its start is told in.
std::optional<LoadWatch::Seconds> HealthProber::age_of(const ProcessKey& process) const {
  const auto uptime = procfs_.read("uptime");
  std::string_view text = uptime ? std::string_view(*uptime) : std::string_view();
  const auto seconds = parse_number<double>(take_field(text));
  if (!seconds) {
    return std::nullopt;
  }
  const LoadWatch::Seconds age(*seconds -
                               static_cast<double>(process.start_ticks) / ticks_per_second());
  return age.count() >= 0 ? std::optional(age) : std::nullopt;
}

}  // namespace apu
