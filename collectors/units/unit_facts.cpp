#include "collectors/units/unit_facts.h"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <utility>

namespace apu {
namespace {

constexpr std::uint64_t kInfinity = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kLatest = 4'000'000'000'000'000;  // microseconds; clocks of ours reach it

// ActiveState before the time of the change: a state that is read as inactive is no younger.
constexpr std::array<std::string_view, 14> kUnitProperties{"LoadState",
                                                           "ActiveState",
                                                           "SubState",
                                                           "UnitFileState",
                                                           "FragmentPath",
                                                           "DropInPaths",
                                                           "Wants",
                                                           "Requires",
                                                           "BindsTo",
                                                           "WantedBy",
                                                           "RequiredBy",
                                                           "NeedDaemonReload",
                                                           "ActiveEnterTimestamp",
                                                           "InactiveEnterTimestampMonotonic"};

constexpr std::array<std::string_view, 16> kServiceProperties{
    "NRestarts", "TimeoutStopUSec",     "MainPID",   "ControlGroup",  "User",
    "Group",     "SupplementaryGroups", "Restart",   "Result",        "MemoryMin",
    "MemoryLow", "MemoryHigh",          "MemoryMax", "MemorySwapMax", "LimitMEMLOCK",
    "ExecStart"};

/// Takes values out of what a manager answered, and notes those of a wrong type.
class PropertyReader {
 public:
  PropertyReader(std::string unit, const Properties& properties, std::vector<std::string>& problems)
      : unit_(std::move(unit)), properties_(properties), problems_(problems) {}

  template <typename Value>
  std::optional<Value> take(const std::string& name) {
    const auto found = properties_.find(name);
    if (found == properties_.end()) {
      return std::nullopt;
    }
    if (const Value* value = std::get_if<Value>(&found->second)) {
      return *value;
    }
    problems_.push_back(fmt::format("{}: {} is of another type", unit_, name));
    return std::nullopt;
  }

  std::optional<std::string> take_text(const std::string& name) { return take<std::string>(name); }

  /// Absent where it is empty, which is how a manager says that there is none.
  std::optional<std::string> take_name(const std::string& name) {
    auto text = take_text(name);
    return text && text->empty() ? std::nullopt : text;
  }

  std::optional<std::vector<std::string>> take_list(const std::string& name) {
    return take<std::vector<std::string>>(name);
  }

  std::optional<std::uint64_t> take_number(const std::string& name) {
    return take<std::uint64_t>(name);
  }

  std::optional<std::uint64_t> take_number_but_zero(const std::string& name) {
    const auto number = take_number(name);
    return number == 0 ? std::nullopt : number;
  }

  std::optional<MemoryLimit> take_limit(const std::string& name) {
    const auto bytes = take_number(name);
    if (!bytes) {
      return std::nullopt;
    }
    return MemoryLimit{*bytes == kInfinity ? std::nullopt : bytes};
  }

 private:
  std::string unit_;
  const Properties& properties_;
  std::vector<std::string>& problems_;
};

template <typename Value>
void replace(std::optional<Value>& old, std::optional<Value> value) {
  if (value) {
    old = std::move(value);
  }
}

std::optional<double> seconds_of(const std::optional<std::uint64_t>& microseconds) {
  constexpr double kMicroseconds = 1e-6;
  if (!microseconds) {
    return std::nullopt;
  }
  return *microseconds == kInfinity ? std::numeric_limits<double>::infinity()
                                    : static_cast<double>(*microseconds) * kMicroseconds;
}

void take_states(PropertyReader& reader, UnitFacts& facts) {
  replace(facts.load_state, reader.take_name("LoadState"));
  replace(facts.active_state, reader.take_name("ActiveState"));
  replace(facts.sub_state, reader.take_name("SubState"));
  facts.unit_file_state = reader.take_name("UnitFileState");
  facts.need_daemon_reload = reader.take<bool>("NeedDaemonReload");
  facts.result = reader.take_name("Result");
  const auto active = reader.take_number_but_zero("ActiveEnterTimestamp");
  if (active && *active < kLatest) {
    facts.active_since = from_unix_seconds(*seconds_of(active));
  }
  const auto inactive = reader.take_number("InactiveEnterTimestampMonotonic");
  if (inactive && *inactive < kLatest) {
    facts.inactive_since = std::chrono::microseconds(*inactive);
  }
}

/// Of the arguments nothing is kept but what the list of server_config.h allows.
std::optional<ServerArguments> server_of(const std::vector<std::string>& arguments) {
  std::string command_line;
  for (const std::string& argument : arguments) {
    command_line += argument + '\0';
  }
  ServerArguments server = parse_command_line(command_line, "");
  return server.program == ServerProgram::kUnknown ? std::nullopt : std::optional(server);
}

void take_settings(PropertyReader& reader, UnitFacts& facts) {
  facts.fragment_path = reader.take_name("FragmentPath");
  facts.drop_in_paths = reader.take_list("DropInPaths");
  facts.wants = reader.take_list("Wants");
  facts.needs = reader.take_list("Requires");
  facts.binds_to = reader.take_list("BindsTo");
  facts.wanted_by = reader.take_list("WantedBy");
  facts.required_by = reader.take_list("RequiredBy");
  facts.run_as = reader.take_text("User");
  facts.group = reader.take_text("Group");
  facts.supplementary_groups = reader.take_list("SupplementaryGroups");
  facts.restart = reader.take_name("Restart");
  facts.stop_timeout = seconds_of(reader.take_number("TimeoutStopUSec"));
  facts.memlock = reader.take_limit("LimitMEMLOCK");
  if (const auto arguments = reader.take_list("ExecStart")) {
    facts.server = server_of(*arguments);
  }
  for (const auto& [limit, property] : {std::pair("min", "MemoryMin"),
                                        {"low", "MemoryLow"},
                                        {"high", "MemoryHigh"},
                                        {"max", "MemoryMax"},
                                        {"swap_max", "MemorySwapMax"}}) {
    if (const auto value = reader.take_limit(property)) {
      facts.limits[limit] = *value;
    }
  }
}

}  // namespace

std::span<const std::string_view> unit_properties() {
  return kUnitProperties;
}

std::span<const std::string_view> service_properties() {
  return kServiceProperties;
}

ParsedUnit parse_unit(const std::string& user, const LoadedUnit& unit,
                      const Properties& properties) {
  ParsedUnit parsed;
  UnitFacts& facts = parsed.facts;
  facts.id = unit.id;
  facts.user = user;
  facts.load_state = unit.load_state;
  facts.active_state = unit.active_state;
  facts.sub_state = unit.sub_state;
  PropertyReader reader(unit.id, properties, parsed.problems);
  take_states(reader, facts);
  take_settings(reader, facts);
  facts.restarts = reader.take_number("NRestarts");
  facts.main_pid = reader.take_number_but_zero("MainPID");
  facts.control_group = reader.take_name("ControlGroup");
  return parsed;
}

}  // namespace apu
