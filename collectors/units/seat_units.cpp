#include "collectors/units/seat_units.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <utility>

#include "exporter/text.h"

namespace apu {
namespace {

constexpr std::string_view kServiceSuffix = ".service";

std::string_view last_part(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::string unit_label(std::string_view id) {
  return to_valid_utf8(unescape_unit(without_service(id)));
}

/// A manager of the system puts its units into slices, and into nothing else.
bool is_below_slices(std::string_view path) {
  while (consume(path, "/")) {
    const size_t end = path.find('/');
    if (end == std::string_view::npos) {
      return true;
    }
    if (!path.substr(0, end).ends_with(".slice")) {
      return false;
    }
    path.remove_prefix(end);
  }
  return false;
}

using UnitKey = std::pair<std::string, std::string>;  // user, id

/// Gathers units, each once.
class Chooser {
 public:
  Chooser(std::vector<ManagerListing> listings, const SeatIndex* index, const SeatRules& rules)
      : listings_(std::move(listings)), rules_(rules) {
    for (ManagerListing& listing : listings_) {  // a manager's order is that of a hash table
      std::sort(listing.loaded.begin(), listing.loaded.end(),
                [](const LoadedUnit& a, const LoadedUnit& b) { return a.id < b.id; });
    }
    for (const Seat& seat : index != nullptr ? index->seats : std::vector<Seat>()) {
      names_.insert(seat.name);
      if (const auto key = key_of(seat.place)) {
        seats_[*key] = seat.name;
      }
    }
  }

  void leave_out(const SeatPlace& place) {
    if (const auto key = key_of(place)) {
      known_.insert(*key);
    }
  }

  Choice take() {
    for (const bool in_index : {true, false}) {  // those that run first
      for (const ManagerListing& listing : listings_) {
        add_loaded(listing, in_index);
      }
    }
    for (const ManagerListing& listing : listings_) {
      add_files(listing);
    }
    return std::move(choice_);
  }

 private:
  [[nodiscard]] std::optional<UnitKey> key_of(const SeatPlace& place) const {
    for (const ManagerListing& listing : listings_) {
      if (const auto id = unit_id(place, listing.user)) {
        return UnitKey{listing.user, *id};
      }
    }
    return std::nullopt;
  }

  void add_loaded(const ManagerListing& listing, bool in_index) {
    for (const LoadedUnit& unit : listing.loaded) {
      const UnitKey key{listing.user, unit.id};
      if (seats_.contains(key) != in_index || (!in_index && !is_seat(unit))) {
        continue;
      }
      if (ChosenUnit* chosen = add(key)) {
        chosen->loaded = unit;
      }
    }
  }

  void add_files(const ManagerListing& listing) {
    for (const UnitFile& file : listing.files) {
      const std::string id(last_part(file.path));
      const bool is_template = id.ends_with("@.service");
      if (is_template || file.state == "alias" || !is_seat_name(id)) {
        continue;
      }
      if (ChosenUnit* chosen = add({listing.user, id})) {
        chosen->unit_file_state = file.state;
        chosen->fragment_path = file.path;
      }
    }
  }

  [[nodiscard]] bool is_seat(const LoadedUnit& unit) const {
    const bool is_name_alone = unit.load_state == "not-found" && unit.active_state == "inactive";
    return !is_name_alone && is_seat_name(unit.id);
  }

  [[nodiscard]] bool is_seat_name(std::string_view id) const {
    return id.ends_with(kServiceSuffix) && rules_.matches(unescape_unit(without_service(id)));
  }

  /// nullptr if it is there already, or there are too many.
  ChosenUnit* add(const UnitKey& key) {
    if (!known_.insert(key).second) {
      return nullptr;
    }
    if (choice_.units.size() >= rules_.max) {
      ++choice_.omitted;
      return nullptr;
    }
    choice_.units.push_back({name_of(key), key.first, key.second, {}, {}, {}});
    return &choice_.units.back();
  }

  std::string name_of(const UnitKey& key) {
    if (const auto seat = seats_.find(key); seat != seats_.end()) {
      return seat->second;
    }
    const std::string unit = unit_label(key.second);
    const std::string wanted = key.first.empty() ? unit : key.first + "/" + unit;
    std::string name = wanted;
    for (unsigned number = 2; !names_.insert(name).second; ++number) {
      name = fmt::format("{}-{}", wanted, number);
    }
    return name;
  }

  std::vector<ManagerListing> listings_;
  const SeatRules& rules_;
  std::map<UnitKey, std::string> seats_;  // of the index
  std::set<std::string> names_;           // that are taken
  std::set<UnitKey> known_;
  Choice choice_;
};

// --- what follows

bool is_inactive(const UnitFacts& facts) {
  return facts.active_state == "inactive" || facts.active_state == "failed";
}

std::optional<bool> is_stop_timeout_short(const UnitFacts& facts) {
  return facts.stop_timeout ? std::optional(*facts.stop_timeout < kMinStopTimeout) : std::nullopt;
}

std::optional<bool> pulls_in_seat(const UnitFacts& facts, const std::set<UnitKey>& seats) {
  bool known = true;
  for (const auto* list : {&facts.wants, &facts.needs, &facts.binds_to}) {
    known = known && list->has_value();
    for (const std::string& other : list->value_or(std::vector<std::string>())) {
      if (other != facts.id && seats.contains({facts.user, other})) {
        return true;
      }
    }
  }
  return known ? std::optional(false) : std::nullopt;
}

const Seat* find_seat(const SeatIndex& index, const std::string& name) {
  const auto found = std::find_if(index.seats.begin(), index.seats.end(),
                                  [&](const Seat& seat) { return seat.name == name; });
  return found == index.seats.end() ? nullptr : &*found;
}

/// Whether the unit was inactive already when the cgroups were looked at.
bool was_inactive(const UnitFacts& facts, std::chrono::steady_clock::time_point when) {
  constexpr std::chrono::seconds kPass(2);  // the pass that looked may have taken so long
  const std::chrono::steady_clock::time_point since(
      facts.inactive_since.value_or(std::chrono::microseconds(0)));
  return since + kPass < when;
}

std::optional<bool> is_populated_while_inactive(const std::string& seat_name,
                                                const UnitFacts& facts, const CgroupInput& cgroup) {
  if (!facts.active_state || cgroup.facts == nullptr) {
    return std::nullopt;
  }
  if (!is_inactive(facts)) {
    return false;
  }
  const Seat* seat = find_seat(*cgroup.facts->index, seat_name);
  if (seat == nullptr) {
    return cgroup.facts->index->beyond == 0 ? std::optional(false) : std::nullopt;
  }
  if (seat->processes.empty()) {
    return false;
  }
  return was_inactive(facts, cgroup.taken) ? std::optional(true) : std::nullopt;
}

/// The kernel rounds down to pages.
std::optional<std::uint64_t> whole_pages(const MemoryLimit& limit) {
  static const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return limit.bytes ? std::optional(*limit.bytes / page * page) : std::nullopt;
}

std::map<std::string, bool> compare_limits(const UnitFacts& facts, const CgroupMemory& memory) {
  std::map<std::string, bool> differs;
  for (const auto& [name, limit] : facts.limits) {
    const auto kernels = memory.limits.find(name);
    // What a unit leaves at 0, DefaultMemoryLow= of its slice may have set.
    const bool is_left_open = (name == "min" || name == "low") && limit.bytes == 0;
    if (kernels != memory.limits.end() && !is_left_open) {
      differs[name] = whole_pages(limit) != whole_pages(kernels->second);
    }
  }
  return differs;
}

}  // namespace

std::string manager_pattern(std::string_view pattern) {
  std::string loose;
  const size_t brackets = std::min(pattern.find('['), pattern.size());
  for (const char c : pattern.substr(0, brackets)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80 && std::isalpha(byte) != 0) {
      loose += fmt::format("[{}{}]", static_cast<char>(std::tolower(byte)),
                           static_cast<char>(std::toupper(byte)));
    } else {
      // What is neither a letter nor a digit may be escaped in the unit's name.
      loose += std::isdigit(byte) != 0 ? c : '*';
    }
  }
  loose += brackets < pattern.size() ? "*" : "";
  loose.erase(
      std::unique(loose.begin(), loose.end(), [](char a, char b) { return a == '*' && b == '*'; }),
      loose.end());
  return loose + std::string(kServiceSuffix);
}

std::optional<std::string> unit_id(const SeatPlace& place, std::string_view user) {
  const std::string manager = fmt::format("/user.slice/user-{0}.slice/user@{0}.service/", user);
  const bool is_its_unit =
      user.empty() ? place.kind == SeatKind::kSystemUnit && is_below_slices(place.cgroup)
                   : place.kind == SeatKind::kUserUnit && place.user == user &&
                         place.cgroup.starts_with(manager);
  if (!is_its_unit) {
    return std::nullopt;
  }
  std::string_view name = last_part(place.cgroup);
  consume(name, "_");  // before names that cgroupfs itself could use
  return std::string(name);
}

Choice choose_units(std::vector<ManagerListing> listings, const SeatIndex* index,
                    const SeatRules& rules, const SeatPlace& own) {
  Chooser chooser(std::move(listings), index, rules);
  chooser.leave_out(own);
  return chooser.take();
}

std::vector<SeatUnit> derive(const std::vector<ChosenUnit>& chosen, std::vector<UnitFacts> facts,
                             const CgroupInput& cgroup) {
  std::set<UnitKey> seats;
  for (const ChosenUnit& unit : chosen) {
    seats.insert({unit.user, unit.id});
  }
  std::vector<SeatUnit> units;
  for (size_t i = 0; i < chosen.size(); ++i) {
    SeatUnit unit;
    unit.seat = chosen[i].seat;
    unit.unit = unit_label(chosen[i].id);
    unit.facts = std::move(facts[i]);
    unit.stop_timeout_short = is_stop_timeout_short(unit.facts);
    unit.pulls_in_seat = pulls_in_seat(unit.facts, seats);
    unit.inactive_but_populated = is_populated_while_inactive(unit.seat, unit.facts, cgroup);
    if (!is_inactive(unit.facts) && cgroup.facts != nullptr &&
        cgroup.facts->memory.contains(unit.seat)) {
      unit.limit_differs = compare_limits(unit.facts, cgroup.facts->memory.at(unit.seat));
    }
    units.push_back(std::move(unit));
  }
  return units;
}

}  // namespace apu
