#include "checks/seat_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "collectors/seats/accounting.h"
#include "exporter/text.h"

namespace apu {
namespace {

constexpr size_t kNameBytes = 40;

constexpr std::array kUnitChecks{"enabled",      "home_traversable", "unit_loaded",
                                 "stop_timeout", "wants_no_seat",    "no_leftovers"};

std::string systemctl(const UnitFacts& unit) {
  return unit.user.empty() ? "systemctl" : fmt::format("systemctl --user -M {}@", unit.user);
}

std::string joined(const std::vector<std::string>& names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

// --- what the service manager says

/// Whether a unit with this file starts at boot; nullopt where others decide that.
std::optional<bool> is_left_out_at_boot(const UnitFacts& unit) {
  const std::string& state = *unit.unit_file_state;
  const auto names_any = [](const std::optional<std::vector<std::string>>& units) {
    return units && !units->empty();
  };
  const bool named = names_any(unit.wanted_by) || names_any(unit.required_by);
  if (state == "enabled" || (state == "generated" && named)) {
    return false;
  }
  if (named) {
    return std::nullopt;  // if what names it is started
  }
  const bool needs_others = state == "static" || state == "alias" || state == "indirect" ||
                            state == "transient" || state == "generated";
  return needs_others ? std::nullopt : std::optional(true);
}

std::string who_starts(const UnitFacts& unit) {
  std::vector<std::string> names = unit.wanted_by.value_or(std::vector<std::string>());
  if (unit.required_by) {
    names.insert(names.end(), unit.required_by->begin(), unit.required_by->end());
  }
  return names.empty() ? "no unit that is loaded starts it"
                       : fmt::format("it starts with {}", joined(names));
}

Check check_enabled(const SeatUnit& unit) {
  const UnitFacts& facts = unit.facts;
  if (!facts.unit_file_state) {
    return make_check("enabled", unit.seat, std::nullopt, "", "it has no unit file");
  }
  return make_check(
      "enabled", unit.seat, is_left_out_at_boot(facts),
      fmt::format("its unit file is {}, so it does not start at boot: {} enable {}",
                  *facts.unit_file_state, systemctl(facts), facts.id),
      fmt::format("its unit file is {}, and {}", *facts.unit_file_state, who_starts(facts)));
}

Check check_loaded(const SeatUnit& unit) {
  const UnitFacts& facts = unit.facts;
  return make_check(
      "unit_loaded", unit.seat, facts.need_daemon_reload,
      fmt::format("its files changed after they were loaded: {} daemon-reload", systemctl(facts)),
      "it is not loaded");
}

Check check_stop_timeout(const SeatUnit& unit) {
  return make_check(
      "stop_timeout", unit.seat, unit.stop_timeout_short,
      fmt::format("TimeoutStopSec= is {:.0f} s: a loaded model needs tens of seconds, and SIGKILL "
                  "in a teardown leaves GPU memory behind; set {:.0f} s or more",
                  unit.facts.stop_timeout.value_or(0), kMinStopTimeout),
      "it is not loaded");
}

Check check_wants(const SeatUnit& unit) {
  return make_check("wants_no_seat", unit.seat, unit.pulls_in_seat,
                    "starting it starts another seat, which it names in Wants=, Requires= or "
                    "BindsTo=: two loads at once, and after a crash again",
                    "it is not loaded");
}

Check check_leftovers(const SeatUnit& unit) {
  return make_check("no_leftovers", unit.seat, unit.inactive_but_populated,
                    "the unit has ended, and processes of it live on in its cgroup, with their GPU "
                    "memory",
                    "its cgroup is not known");
}

Check check_budget_loaded(const SeatUnit& unit) {
  std::vector<std::string> names;
  for (const auto& [limit, differs] : unit.limit_differs) {
    if (differs) {
      names.push_back("memory." + limit);
    }
  }
  std::replace(names.begin(), names.end(), std::string("memory.swap_max"),
               std::string("memory.swap.max"));
  return make_check("budget_loaded", unit.seat, !names.empty(),
                    fmt::format("{} of its cgroup is not what the unit says: was it written by "
                                "hand, or is a drop-in not loaded?",
                                joined(names)),
                    "");
}

const ServiceUser* user_of(const SeatCheckInputs& inputs, const std::string& seat) {
  if (inputs.users == nullptr) {
    return nullptr;
  }
  const auto found = inputs.users->seats.find(seat);
  return found == inputs.users->seats.end() ? nullptr : &found->second;
}

Check check_home(const SeatUnit& unit, const ServiceUser* user) {
  if (user == nullptr) {
    return make_check("home_traversable", unit.seat, std::nullopt, "", "no collector says");
  }
  const auto closed =
      user->home_traversable ? std::optional(!*user->home_traversable) : std::optional<bool>();
  return make_check("home_traversable", unit.seat, closed, user->home_why, user->home_why);
}

Check check_lingers(const SeatUnit& unit, const ServiceUser& user) {
  const auto missing = user.lingers ? std::optional(!*user.lingers) : std::optional<bool>();
  return make_check("user_lingers", unit.seat, missing,
                    fmt::format("its user has no manager before somebody logs in: loginctl "
                                "enable-linger {}",
                                user.name),
                    "/var/lib/systemd cannot be read");
}

constexpr const char* kNotProtected = "neither MemoryLow= nor MemoryMin= protects it from reclaim";

/// Of a unit that has no cgroup now, by its settings.
void check_budget_of_unit(const SeatUnit& unit, Checks& checks) {
  const auto& limits = unit.facts.limits;
  if (!limits.contains("min") || !limits.contains("low")) {
    return;
  }
  const bool missing = limits.at("min").bytes == 0U && limits.at("low").bytes == 0U;
  checks.push_back(make_check("budget_set", unit.seat, missing, kNotProtected, ""));
}

bool has_budget(const SeatCheckInputs& inputs, const std::string& seat) {
  return inputs.budgets != nullptr && inputs.budgets->seats.contains(seat);
}

// --- its port

void check_port(const SeatCheckInputs& inputs, const std::string& seat, Checks& checks) {
  if (inputs.ports == nullptr || !inputs.ports->seats.contains(seat)) {
    return;
  }
  const SeatPort& port = inputs.ports->seats.at(seat);
  checks.push_back(make_check(
      "port_free", seat, port.held_by_other,
      fmt::format(
          "port {} of its server is held by process {} ({}){}, so that it ends as soon as "
          "it starts",
          port.port, port.holder, cut_text(port.holder_command, kNameBytes),
          port.holder_cgroup.empty() ? "" : " in " + cut_text(port.holder_cgroup, 4 * kNameBytes)),
      fmt::format("who listens on its port {} is not known", port.port)));
}

void check_unit(const SeatCheckInputs& inputs, const SeatUnit& unit, Checks& checks) {
  const ServiceUser* user = user_of(inputs, unit.seat);
  checks.push_back(check_enabled(unit));
  checks.push_back(check_home(unit, user));
  if (user != nullptr && !unit.facts.user.empty()) {
    checks.push_back(check_lingers(unit, *user));
  }
  checks.push_back(check_loaded(unit));
  checks.push_back(check_stop_timeout(unit));
  checks.push_back(check_wants(unit));
  checks.push_back(check_leftovers(unit));
  if (!unit.limit_differs.empty()) {
    checks.push_back(check_budget_loaded(unit));
  }
  if (!has_budget(inputs, unit.seat)) {
    check_budget_of_unit(unit, checks);
  }
  check_port(inputs, unit.seat, checks);
}

bool is_unit(const Seat& seat) {
  return seat.place.kind == SeatKind::kSystemUnit || seat.place.kind == SeatKind::kUserUnit;
}

/// A unit of which no manager says anything.
void note_unknown_unit(const SeatCheckInputs& inputs, const Seat& seat, Checks& checks) {
  const std::string why =
      inputs.units == nullptr ? inputs.units_missing : "its service manager does not tell of it";
  for (const char* name : kUnitChecks) {
    checks.push_back(make_check(name, seat.name, std::nullopt, "", why));
  }
}

// --- its budget

std::string true_ones(const std::map<std::string, bool>& by_limit) {
  std::vector<std::string> names;
  for (const auto& [limit, is_true] : by_limit) {
    if (is_true) {
      names.push_back("memory." + limit);
    }
  }
  return joined(names);
}

void check_budget(const std::string& seat, const SeatBudget& budget, Checks& checks) {
  checks.push_back(
      make_check("budget_set", seat, budget.missing, kNotProtected, "no memory controller"));
  if (!budget.protection_voided.empty()) {
    const std::string voided = true_ones(budget.protection_voided);
    checks.push_back(make_check("budget_effective", seat, !voided.empty(),
                                fmt::format("the cgroups above leave less than half of its {}: set "
                                            "it there as well, up to the root",
                                            voided),
                                ""));
  }
  const std::string below = true_ones(budget.below_need);
  const bool known = budget.below_need.size() == 2 || !below.empty();
  checks.push_back(make_check(
      "budget_fits_need", seat, known ? std::optional(!below.empty()) : std::nullopt,
      fmt::format("{} is less than it needs, which makes reclaim of its pages without end", below),
      "what it needs, or its limit, is not known"));
}

// --- how its model is loaded

/// How much it speaks against a seat.
int rank(Setting setting) {
  constexpr std::array kOrder{Setting::kOff, Setting::kUnknown, Setting::kDefault, Setting::kOn};
  return static_cast<int>(std::find(kOrder.begin(), kOrder.end(), setting) - kOrder.begin());
}

/// The worst of a seat's servers; unknown if it has none.
Setting mmap_of(const Seat& seat, const SeatConfigFacts* config) {
  std::vector<Setting> told;
  for (const SeatProcess& process : seat.processes) {
    if (process.on_gpu && config != nullptr && config->processes.contains(process.key)) {
      told.push_back(config->processes.at(process.key).mmap);
    }
  }
  const auto worst = std::max_element(told.begin(), told.end(),
                                      [](Setting a, Setting b) { return rank(a) < rank(b); });
  return worst == told.end() ? Setting::kUnknown : *worst;
}

void check_mmap(const SeatCheckInputs& inputs, const Seat& seat, Checks& checks) {
  if (inputs.mmap_allowed.matches(seat.name)) {
    checks.push_back(make_check("mmap_off", seat.name, false, "", ""));
    return;
  }
  const Setting setting = mmap_of(seat, inputs.config);
  const auto maps = setting == Setting::kUnknown ? std::optional<bool>()
                                                 : std::optional(setting != Setting::kOff);
  checks.push_back(make_check(
      "mmap_off", seat.name, maps,
      fmt::format(
          "its server maps the model's file{}, and reclaim may take pages of it that the GPU "
          "has mapped: --no-mmap, or --check.allow-mmap={}",
          setting == Setting::kDefault ? " by default" : "", seat.name),
      seat.processes.empty() ? "it does not run" : "what its server was told is not known"));
}

// --- which seats are asked

bool runs_known_server(const SeatConfigFacts* config, const SeatProcess& process) {
  if (config == nullptr || !config->processes.contains(process.key)) {
    return false;
  }
  const ServerConfig& told = config->processes.at(process.key);
  return told.mmap != Setting::kUnknown || !told.model.empty();
}

bool is_on_kfd(const KfdFacts* kfd, const SeatProcess& process) {
  return kfd != nullptr &&
         std::any_of(kfd->processes.begin(), kfd->processes.end(),
                     [&](const KfdProcess& entry) { return is_of(entry, process.key); });
}

bool serves_models(const SeatCheckInputs& inputs, const Seat& seat) {
  return inputs.servers.matches(seat.place.unit) ||
         std::any_of(seat.processes.begin(), seat.processes.end(), [&](const SeatProcess& each) {
           return is_on_kfd(inputs.kfd, each) || runs_known_server(inputs.config, each);
         });
}

void check_seat(const SeatCheckInputs& inputs, const Seat& seat, Checks& checks) {
  if (has_budget(inputs, seat.name)) {
    check_budget(seat.name, inputs.budgets->seats.at(seat.name), checks);
  }
  check_mmap(inputs, seat, checks);
}

}  // namespace

Checks check_seats(const SeatCheckInputs& inputs) {
  const std::vector<Seat> seats = inputs.cgroup != nullptr && inputs.cgroup->index
                                      ? inputs.cgroup->index->seats
                                      : std::vector<Seat>();
  std::set<std::string> others;
  for (const Seat& seat : seats) {
    if (!serves_models(inputs, seat)) {
      others.insert(seat.name);
    }
  }
  Checks checks;
  std::set<std::string> told;
  for (const SeatUnit& unit :
       inputs.units != nullptr ? inputs.units->units : std::vector<SeatUnit>()) {
    if (!others.contains(unit.seat)) {
      check_unit(inputs, unit, checks);
      told.insert(unit.seat);
    }
  }
  for (const Seat& seat : seats) {
    if (others.contains(seat.name)) {
      continue;
    }
    if (is_unit(seat) && !told.contains(seat.name)) {
      note_unknown_unit(inputs, seat, checks);
    }
    if (!told.contains(seat.name)) {
      check_port(inputs, seat.name, checks);
    }
    check_seat(inputs, seat, checks);
  }
  return checks;
}

}  // namespace apu
