#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "collectors/seat_health/answers.h"

namespace apu {

/// How long a server took to load, where that was watched to its end.
class LoadWatch {
 public:
  using Seconds = std::chrono::duration<double>;

  /// Takes what the server says now: it is ready, or still loads. `age`: since the start of its
  /// process; nullopt if unknown. `watched`: for how long servers have been asked at all.
  void note(bool ready, std::optional<Seconds> age, Seconds watched);

  /// From the start of the process to the first answer that it is ready: too long by what lies
  /// between two probes, at most. Absent for one that was ready when it was first asked, unless its
  /// process started after that became possible.
  [[nodiscard]] std::optional<Seconds> duration() const { return duration_; }

 private:
  bool seen_loading_ = false;
  bool ready_ = false;
  std::optional<Seconds> duration_;
};

/// Counts the tokens that a server made while it was watched: never more than it did.
class TokenCount {
 public:
  /// Takes all its slots. A slot counts from the first number on that it tells. Its count starts
  /// anew with a task, but keeps the last one's until the prompt is read: so a lower one is new,
  /// and of a higher one only what is beyond the last.
  void note(const std::vector<ServerSlot>& slots);

  [[nodiscard]] std::uint64_t total() const { return total_; }

 private:
  std::map<std::int64_t, std::uint64_t> last_;  // by slot
  std::uint64_t total_ = 0;
};

/// Since when the busy slots of a server make no progress.
class BusyWatch {
 public:
  using Time = std::chrono::nanoseconds;  // Clock::monotonic

  /// Takes all its slots. Progress of one is a token, a part of a prompt, another task or an end; a
  /// busy one that does not tell how far it is leaves it unknown.
  void note(const std::vector<ServerSlot>& slots, Time now);

  /// It did not answer; what is known of it stays as it was.
  void note_silence(Time now) { silent_at_ = now; }

  /// For how long slots have been busy without progress of any, by the last answer. Absent if none
  /// is busy, or the last probe was not answered.
  [[nodiscard]] std::optional<Time> without_progress() const;

  /// For how long it has not answered, where slots were busy when it last did.
  [[nodiscard]] std::optional<Time> unanswered() const;

 private:
  std::vector<ServerSlot> busy_;
  std::optional<Time> since_;      // absent: none is busy, or it is not known
  Time answered_{};                // the last answer's
  std::optional<Time> silent_at_;  // of the last probe, if nothing answered it
};

}  // namespace apu
