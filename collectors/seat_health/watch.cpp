#include "collectors/seat_health/watch.h"

#include <algorithm>
#include <iterator>

namespace apu {

void LoadWatch::note(bool ready, std::optional<Seconds> age, Seconds watched) {
  if (ready_) {
    return;
  }
  ready_ = ready;
  if (!ready) {
    seen_loading_ = true;
  } else if (age && (seen_loading_ || *age <= watched)) {
    duration_ = age;
  }
}

void TokenCount::note(const std::vector<ServerSlot>& slots) {
  for (const ServerSlot& slot : slots) {
    if (!slot.decoded) {
      continue;
    }
    const auto [last, is_first] = last_.try_emplace(slot.id, *slot.decoded);
    if (is_first) {
      continue;
    }
    total_ += *slot.decoded >= last->second ? *slot.decoded - last->second : *slot.decoded;
    last->second = *slot.decoded;
  }
}

void BusyWatch::note(const std::vector<ServerSlot>& slots, Time now) {
  std::vector<ServerSlot> busy;
  std::copy_if(slots.begin(), slots.end(), std::back_inserter(busy),
               [](const ServerSlot& slot) { return slot.busy; });
  const bool known = !busy.empty() && std::all_of(busy.begin(), busy.end(), [](const auto& slot) {
    return slot.decoded.has_value();
  });
  if (!known) {
    since_.reset();
  } else if (!since_ || busy != busy_) {
    since_ = now;
  }
  busy_ = std::move(busy);
  answered_ = now;
  silent_at_.reset();
}

std::optional<BusyWatch::Time> BusyWatch::without_progress() const {
  return since_ && !silent_at_ ? std::optional(answered_ - *since_) : std::nullopt;
}

std::optional<BusyWatch::Time> BusyWatch::unanswered() const {
  return silent_at_ && !busy_.empty() ? std::optional(*silent_at_ - answered_) : std::nullopt;
}

}  // namespace apu
