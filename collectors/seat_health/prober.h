#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collectors/seat_config/seat_config.h"
#include "collectors/seat_health/servers.h"
#include "collectors/seat_health/watch.h"
#include "collectors/seats/index.h"
#include "exporter/collector.h"
#include "exporter/http_client.h"
#include "verdict/seat_state.h"

namespace apu {

inline constexpr const char* kHealthSource = "seat_health";

struct SlotCounts {
  std::uint64_t idle = 0;
  std::uint64_t busy = 0;
};

/// What a llama-server said of itself.
struct ServerHealth {
  ProcessKey process;
  std::optional<bool> ready;  ///< absent where it was not asked, or gave no llama-server's answer
  std::optional<std::chrono::duration<double>> load_duration;
  std::optional<SlotCounts> slots;       ///< absent where it does not tell
  bool slots_missing = false;            ///< it tells of its slots, but not in this pass
  std::optional<std::uint64_t> decoded;  ///< tokens since it was first asked
  std::optional<HealthEvidence> evidence;
};

/// The facts of a pass.
struct SeatHealthFacts {
  std::map<std::string, std::vector<ServerHealth>> seats;  ///< by name; their llama-servers
  std::map<ProcessKey, HealthEvidence> evidence;           ///< of those of which there is some
};

/// Asks the llama-servers of seats, and keeps what must survive a pass.
class HealthProber {
 public:
  HealthProber(const CollectorContext& context, std::unique_ptr<HttpClient> client);

  /// One pass: GET /health of each server, and GET /slots of those that are ready, all at once.
  /// `now` by Clock::monotonic.
  SeatHealthFacts probe(const SeatIndex& index, const SeatConfigFacts& configs,
                        std::chrono::nanoseconds now);

 private:
  /// What is kept of a server.
  struct Watch {
    LoadWatch load;
    TokenCount tokens;
    BusyWatch busy;
    bool told_slots = false;
    std::optional<NotAsked> said;  ///< in the log
  };

  /// A server in a pass.
  struct Probe {
    HealthTarget target;
    ServerHealth health;
    bool definite = false;  ///< `ready` is what the server says, or that it does not listen
  };

  using Reply = std::pair<Probe*, HttpReply>;

  std::vector<Probe> find_servers(const SeatIndex& index, const SeatConfigFacts& configs);
  void say_if_not_asked(const HealthTarget& target);
  std::vector<Reply> ask(std::vector<Probe>& probes, const char* path, size_t max_bytes,
                         bool only_ready);
  void ask_health(std::vector<Probe>& probes);
  static void note_ready(Probe& probe, bool ready, bool definite);
  void take_health(Probe& probe, const HttpReply& reply) const;
  void ask_slots(std::vector<Probe>& probes);
  void take_slots(Probe& probe, Watch& watch, const HttpReply& reply) const;
  void note_slots(Probe& probe, Watch& watch, const std::vector<ServerSlot>& slots) const;
  void complain(const Probe& probe, const std::string& what) const;
  [[nodiscard]] std::optional<LoadWatch::Seconds> age_of(const ProcessKey& process) const;

  FileRoot procfs_;
  SourceReporter sources_;
  HealthTargets targets_;
  std::unique_ptr<HttpClient> client_;
  std::map<ProcessKey, Watch> watches_;
  std::chrono::nanoseconds now_{};  // of this pass
  std::optional<std::chrono::nanoseconds> first_pass_;
};

}  // namespace apu
