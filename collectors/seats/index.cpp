#include "collectors/seats/index.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <limits>
#include <tuple>

#include "exporter/text.h"

namespace apu {
namespace {

/// Sets where a seat is. Only the path of a process tells the container in a unit.
void take_place(Seat& seat, const SeatPlace& place) {
  if (seat.place.cgroup.empty() || seat.place.container_id.empty()) {
    seat.place = place;
  }
}

/// Start of the oldest process; of a seat without one as late as can be.
std::uint64_t start_of(const Seat& seat) {
  return seat.processes.empty() ? std::numeric_limits<std::uint64_t>::max()
                                : seat.processes.front().key.start_ticks;
}

/// Those on a GPU first, of these the units and containers before what somebody started by hand;
/// then oldest first, so that a new one pushes out no old one of its kind.
std::vector<const Seat*> by_age(const std::vector<const Seat*>& seats) {
  const auto off_gpu = [](const Seat& seat) {
    return std::none_of(seat.processes.begin(), seat.processes.end(),
                        [](const SeatProcess& process) { return process.on_gpu; });
  };
  const auto is_session = [](const Seat& seat) {
    return seat.place.kind == SeatKind::kLoginSession;
  };
  std::vector<const Seat*> sorted = seats;
  std::stable_sort(sorted.begin(), sorted.end(), [&](const Seat* a, const Seat* b) {
    return std::tuple(off_gpu(*a), is_session(*a), start_of(*a)) <
           std::tuple(off_gpu(*b), is_session(*b), start_of(*b));
  });
  return sorted;
}

}  // namespace

const Seat* SeatIndex::find(const ProcessKey& process) const {
  for (const Seat& seat : seats) {
    const bool has = std::any_of(seat.processes.begin(), seat.processes.end(),
                                 [&](const SeatProcess& each) { return each.key == process; });
    if (has) {
      return &seat;
    }
  }
  return nullptr;
}

std::vector<std::string> SeatRules::default_patterns() {
  return {"*llama*",     "*vllm*",     "*lemonade*", "*comfyui*",        "*sglang*",
          "*koboldcpp*", "*tabbyapi*", "*whisper*",  "*text-generation*"};
}

SeatRules rules_of(const SeatOptions& options) {
  return {options.patterns.empty() ? SeatRules::default_patterns() : options.patterns, options.max};
}

bool SeatRules::matches(std::string_view unit) const {
  const std::string name(unit);
  const std::string whole = name.ends_with(".scope") ? name : name + ".service";
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
    return ::fnmatch(pattern.c_str(), name.c_str(), FNM_CASEFOLD) == 0 ||
           ::fnmatch(pattern.c_str(), whole.c_str(), FNM_CASEFOLD) == 0;
  });
}

SeatNamer::Candidates SeatNamer::find(const std::vector<SeatProcess>& processes,
                                      const std::vector<std::string>& units) const {
  const auto key_of = [](const SeatPlace& place, std::string_view command) {
    const bool session = place.kind == SeatKind::kLoginSession;
    return SeatKey{place.cgroup, session ? std::string(command) : std::string()};
  };
  Candidates seats;
  for (const SeatProcess& process : processes) {
    const SeatPlace place = parse_seat_place(process.cgroup);
    if (process.on_gpu || (!place.unit.empty() && rules_.matches(place.unit) &&
                           place.kind != SeatKind::kLoginSession)) {
      take_place(seats[key_of(place, process.command)], place);
    }
  }
  for (const std::string& path : units) {
    const SeatPlace place = parse_seat_place(path);
    if (place.cgroup == path && !place.unit.empty() && rules_.matches(place.unit) &&
        place.kind != SeatKind::kLoginSession && path.ends_with(".service")) {
      take_place(seats[key_of(place, {})], place);
    }
  }
  for (const SeatProcess& process : processes) {
    const SeatPlace place = parse_seat_place(process.cgroup);
    const auto found = seats.find(key_of(place, process.command));
    if (found != seats.end()) {
      found->second.processes.push_back(process);
    }
  }
  for (auto& [key, seat] : seats) {
    std::sort(seat.processes.begin(), seat.processes.end(),
              [](const SeatProcess& a, const SeatProcess& b) {
                return std::pair(a.key.start_ticks, a.key.pid) <
                       std::pair(b.key.start_ticks, b.key.pid);
              });
  }
  return seats;
}

std::string SeatNamer::name_of(const SeatKey& key, const Seat& seat) {
  const auto known = names_.find(key);
  if (known != names_.end()) {
    return known->second;
  }
  // As it will be printed: names that differ in bytes that are no text would clash there.
  const std::string wanted =
      to_valid_utf8(seat.place.name(seat.processes.empty() ? "" : seat.processes.front().command));
  const auto taken = [&](const std::string& name) {
    return std::any_of(names_.begin(), names_.end(),
                       [&](const auto& entry) { return entry.second == name; });
  };
  std::string name = wanted;
  for (unsigned number = 2; taken(name); ++number) {
    name = fmt::format("{}-{}", wanted, number);
  }
  names_[key] = name;
  return name;
}

void SeatNamer::forget_all_but(const Candidates& seats) {
  std::erase_if(names_, [&](const auto& entry) { return !seats.contains(entry.first); });
}

std::shared_ptr<const SeatIndex> SeatNamer::update(
    const std::vector<SeatProcess>& processes, const std::vector<std::string>& units,
    const std::map<std::string, std::uint64_t>& hidden) {
  Candidates seats = find(processes, units);
  forget_all_but(seats);
  std::vector<const Seat*> all;
  std::map<const Seat*, SeatKey> keys;
  for (const auto& [key, seat] : seats) {
    all.push_back(&seat);
    keys[&seat] = key;
  }
  auto index = std::make_shared<SeatIndex>();
  for (const Seat* seat : by_age(all)) {
    const SeatKey& key = keys.at(seat);
    if (index->seats.size() >= rules_.max) {
      ++index->beyond;
      continue;
    }
    Seat named = *seat;
    named.name = name_of(key, named);
    if (const auto found = hidden.find(named.place.cgroup); found != hidden.end()) {
      named.hidden = found->second;
    }
    index->seats.push_back(std::move(named));
  }
  std::sort(index->seats.begin(), index->seats.end(),
            [](const Seat& a, const Seat& b) { return a.name < b.name; });
  return index;
}

}  // namespace apu
