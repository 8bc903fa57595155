#include "collectors/kernel_log/saved_state.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "exporter/text.h"

namespace apu {
namespace {

using Json = nlohmann::json;

constexpr int kVersion = 1;
constexpr size_t kMaxReasons = 16;  // for which records are lost

// --- values; times in microseconds since 1970, which is as exact as the kernel's stamps

using Micros = std::chrono::microseconds;

Json to_json(const std::optional<TimePoint>& time) {
  return time ? Json(std::chrono::duration_cast<Micros>(time->time_since_epoch()).count())
              : Json(nullptr);
}

std::optional<TimePoint> time_of(const Json& json) {
  return json.is_null() ? std::nullopt : std::optional(TimePoint(Micros(json.get<std::int64_t>())));
}

template <typename Number>
Json to_json(const std::optional<Number>& number) {
  return number ? Json(*number) : Json(nullptr);
}

/// A count. Throws Json::exception for anything else: the library takes -1 for 2^64-1.
std::uint64_t count_of(const Json& json) {
  if (!json.is_number_unsigned()) {
    throw Json::other_error::create(0, "no count", nullptr);
  }
  return json.get<std::uint64_t>();
}

void check_size(const Json& json, size_t most) {
  if (json.size() > most) {
    throw Json::other_error::create(0, "more than there can be", nullptr);
  }
}

template <typename Number>
std::optional<Number> number_of(const Json& json) {
  return json.is_null() ? std::nullopt : std::optional(json.get<Number>());
}

Json to_json(const StreamPosition& position) {
  const auto stamp = position.since_boot ? Json(position.since_boot->count()) : Json(nullptr);
  return {{"sequence", to_json(position.sequence)},
          {"since_boot", stamp},
          {"time", to_json(position.time)},
          {"at_stamp", position.at_stamp}};
}

StreamPosition position_of(const Json& json) {
  StreamPosition position;
  position.sequence = number_of<std::uint64_t>(json.at("sequence"));
  if (const auto stamp = number_of<std::int64_t>(json.at("since_boot"))) {
    position.since_boot = Micros(*stamp);
  }
  position.time = time_of(json.at("time"));
  position.at_stamp = count_of(json.at("at_stamp"));
  return position;
}

template <typename Enum>
Enum enum_of(const Json& json, size_t count) {
  const auto number = json.get<size_t>();
  if (number >= count) {
    throw Json::other_error::create(0, "no such kind", nullptr);
  }
  return static_cast<Enum>(number);
}

EventKind event_kind_of(const std::string& label) {
  for (const EventKind kind : all_event_kinds()) {
    if (to_label(kind) == label) {
      return kind;
    }
  }
  throw Json::other_error::create(0, "no such event", nullptr);
}

}  // namespace

/// Takes states apart and puts them together again.
class KernelLogStateCodec {
 public:
  static Json encode(const KernelLogState& state) {
    return {{"hogs", encode_hogs(state)},
            {"events", encode_events(state)},
            {"lost", state.lost_},
            {"oom", encode(state.oom_)},
            {"units", encode_units(state)},
            {"hung_task_lines_left", state.hung_task_lines_left_},
            {"lines", state.lines_},
            {"ignored", state.ignored_},
            {"of_earlier_boots", state.of_earlier_boots_},
            {"covers_boot", state.covers_boot_}};
  }

  static KernelLogState decode(const Json& json) {
    KernelLogState state;
    check_size(json.at("hogs"), KernelLogState::kMaxHogFunctions);
    check_size(json.at("units"), 2 * KernelLogState::kMaxUnits);
    check_size(json.at("lost"), kMaxReasons);
    for (const Json& each : json.at("hogs")) {
      state.hogs_[{each.at("function").get<std::string>(), each.at("module").get<std::string>()}] =
          decode_series(each);
    }
    for (const auto& [label, each] : json.at("events").items()) {
      state.events_[event_kind_of(label)] = decode_counts(each);
    }
    for (const auto& [by, number] : json.at("lost").items()) {
      state.lost_[by] = count_of(number);
    }
    state.oom_ = decode_oom(json.at("oom"));
    for (const Json& each : json.at("units")) {
      constexpr size_t kKinds = 2;
      state.units_[{enum_of<UnitEventKind>(each.at("kind"), kKinds),
                    each.at("unit").get<std::string>()}] = {count_of(each.at("events")),
                                                            time_of(each.at("last"))};
    }
    state.hung_task_lines_left_ = static_cast<unsigned>(std::min<std::uint64_t>(
        count_of(json.at("hung_task_lines_left")), KernelLogState::kHungTaskLines));
    state.lines_ = count_of(json.at("lines"));
    state.ignored_ = count_of(json.at("ignored"));
    state.of_earlier_boots_ = count_of(json.at("of_earlier_boots"));
    json.at("covers_boot").get_to(state.covers_boot_);
    return state;
  }

 private:
  static Json encode_hogs(const KernelLogState& state) {
    Json hogs = Json::array();
    for (const auto& [key, series] : state.hogs_) {
      Json reports = Json::array();
      for (const HogReportTime& report : series.reports_) {
        reports.push_back({report.printed, to_json(report.time)});
      }
      hogs.push_back({{"function", key.first},
                      {"module", to_valid_utf8(key.second)},
                      {"reports", std::move(reports)},
                      {"lines", series.lines_},
                      {"resets", series.resets_},
                      {"lost_since_last", series.lost_since_last_}});
    }
    return hogs;
  }

  static HogSeries decode_series(const Json& json) {
    HogSeries series;
    check_size(json.at("reports"), HogSeries::kMaxReports);
    for (const Json& report : json.at("reports")) {
      series.reports_.push_back({count_of(report.at(0)), time_of(report.at(1))});
    }
    series.lines_ = count_of(json.at("lines"));
    series.resets_ = count_of(json.at("resets"));
    json.at("lost_since_last").get_to(series.lost_since_last_);
    return series;
  }

  static Json encode_events(const KernelLogState& state) {
    Json events = Json::object();
    for (const auto& [kind, counts] : state.events_) {
      Json lines = Json::object();
      for (const auto& [gpu, number] : counts.lines) {
        lines[gpu] = number;
      }
      events[std::string(to_label(kind))] = {{"lines", std::move(lines)},
                                             {"bursts", counts.bursts},
                                             {"first", to_json(counts.first_time)},
                                             {"last", to_json(counts.last_time)}};
    }
    return events;
  }

  static EventCounts decode_counts(const Json& json) {
    EventCounts counts;
    check_size(json.at("lines"), KernelLogState::kMaxGpus + 1);
    for (const auto& [gpu, number] : json.at("lines").items()) {
      counts.lines[gpu] = count_of(number);
    }
    counts.bursts = count_of(json.at("bursts"));
    counts.first_time = time_of(json.at("first"));
    counts.last_time = time_of(json.at("last"));
    return counts;
  }

  static Json encode(const OomState& oom) {
    Json events = Json::array();
    for (const auto& [scope, count] : oom.events_) {
      events.push_back({static_cast<int>(scope), count});
    }
    Json kills = Json::array();
    for (const auto& [key, counts] : oom.kills_) {
      kills.push_back({static_cast<int>(key.first), to_valid_utf8(key.second), counts.kills,
                       to_json(counts.last_time)});
    }
    return {{"events", std::move(events)},
            {"kills", std::move(kills)},
            {"first_host", to_json(oom.first_host_)},
            {"current",
             {{"unit", to_valid_utf8(oom.current_.unit)},
              {"victim", to_json(oom.current_.victim)},
              {"whole_group", oom.current_.whole_group},
              {"killed", oom.current_.killed}}}};
  }

  static OomState decode_oom(const Json& json) {
    constexpr size_t kScopes = 2;
    OomState oom;
    check_size(json.at("kills"), OomState::kMaxUnits + 2);
    for (const Json& each : json.at("events")) {
      oom.events_[enum_of<OomScope>(each.at(0), kScopes)] = count_of(each.at(1));
    }
    for (const Json& each : json.at("kills")) {
      oom.kills_[{enum_of<OomScope>(each.at(0), kScopes), each.at(1).get<std::string>()}] = {
          count_of(each.at(2)), time_of(each.at(3))};
    }
    oom.first_host_ = time_of(json.at("first_host"));
    const Json& current = json.at("current");
    current.at("unit").get_to(oom.current_.unit);
    oom.current_.victim = number_of<std::int64_t>(current.at("victim"));
    current.at("whole_group").get_to(oom.current_.whole_group);
    current.at("killed").get_to(oom.current_.killed);
    return oom;
  }

  static Json encode_units(const KernelLogState& state) {
    Json units = Json::array();
    for (const auto& [key, counts] : state.units_) {
      units.push_back({{"kind", static_cast<int>(key.first)},
                       {"unit", to_valid_utf8(key.second)},
                       {"events", counts.events},
                       {"last", to_json(counts.last_time)}});
    }
    return units;
  }
};

std::string to_text(const SavedState& state) {
  const Json json{{"format", "apu_exporter kernel_log state"},
                  {"version", kVersion},
                  {"boot_id", state.boot_id},
                  {"kernel", to_json(state.position.kernel)},
                  {"others", to_json(state.position.others)},
                  {"log", KernelLogStateCodec::encode(state.log)}};
  return json.dump() + "\n";
}

Result<SavedState> parse_saved_state(std::string_view text) {
  try {
    const Json json = Json::parse(text);
    if (json.at("version").get<int>() != kVersion) {
      return Error{ErrorKind::kMalformed, "of another version"};
    }
    SavedState state;
    json.at("boot_id").get_to(state.boot_id);
    state.position = {position_of(json.at("kernel")), position_of(json.at("others"))};
    state.log = KernelLogStateCodec::decode(json.at("log"));
    return state;
  } catch (const Json::exception& exception) {
    return Error{ErrorKind::kMalformed, exception.what()};
  }
}

}  // namespace apu
