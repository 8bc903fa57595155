#include "analysis/report.h"
#include "exporter/health.h"
#include "exporter/text.h"
#include "verdict/judgement_json.h"
#include "verdict/log_verdict.h"

namespace apu {
namespace {

constexpr int kFormatVersion = 1;

Json file_json(const LogFile& file) {
  Json json{{"name", to_valid_utf8(file.name)},
            {"format", file.format},
            {"lines", file.lines},
            {"newest_first", file.newest_first},
            {"out_of_order", file.out_of_order},
            {"unreadable_lines", file.unreadable},
            {"problems", strings_json(file.problems)}};
  json["error"] = file.failure ? Json(to_valid_utf8(file.failure->message)) : Json(nullptr);
  return json;
}

Json interval_json(const HogInterval& interval) {
  return {{"from", time_json(interval.from)},
          {"to", time_json(interval.to)},
          {"from_count", interval.from_count},
          {"to_count", interval.to_count},
          {"hogs_per_second", interval.rate()}};
}

Json series_json(const BootAnalysis& boot, const KernelLogState::HogKey& key,
                 const HogSeries& series, bool ended) {
  Json intervals = Json::array();
  for (const HogInterval& interval : hog_intervals(series, boot.rule)) {
    intervals.push_back(interval_json(interval));
  }
  const auto bound = series.upper_bound(boot.rule);
  return {{"function", key.first},
          {"module", to_valid_utf8(key.second)},
          {"restore_worker", is_restore_worker(key)},
          {"ended", ended},
          {"count", series.count(boot.rule)},
          {"upper_bound", bound && !ended ? Json(*bound) : Json(nullptr)},
          {"reports", series.lines()},
          {"last_report", time_json(series.last_time())},
          {"intervals", std::move(intervals)}};
}

Json hogs_json(const BootAnalysis& boot) {
  Json hogs = Json::array();
  for (const auto& [key, series] : boot.ended_series) {
    hogs.push_back(series_json(boot, key, series, true));
  }
  for (const auto& [key, series] : boot.log.hogs()) {
    hogs.push_back(series_json(boot, key, series, false));
  }
  return hogs;
}

Json events_json(const KernelLogState& log) {
  Json events = Json::array();
  for (const auto& [kind, counts] : log.events()) {
    for (const auto& [gpu, lines] : counts.lines) {
      events.push_back({{"event", to_label(kind)},
                        {"gpu", gpu},
                        {"lines", lines},
                        {"bursts_of_all_gpus", counts.bursts},
                        {"first", time_json(counts.first_time)},
                        {"last", time_json(counts.last_time)}});
    }
  }
  return events;
}

Json oom_json(const OomState& oom) {
  Json events = Json::object();
  for (const auto& [scope, count] : oom.events()) {
    events[std::string(to_label(scope))] = count;
  }
  Json kills = Json::array();
  for (const auto& [key, counts] : oom.kills()) {
    kills.push_back({{"scope", to_label(key.first)},
                     {"unit", to_valid_utf8(key.second)},
                     {"processes", counts.kills},
                     {"last", time_json(counts.last_time)}});
  }
  return {{"events", std::move(events)}, {"kills", std::move(kills)}};
}

Json units_json(const KernelLogState& log) {
  Json units = Json::array();
  for (const auto& [key, counts] : log.units()) {
    units.push_back({{"what", key.first == UnitEventKind::kSigkill ? "sigkill" : "stop_timeout"},
                     {"unit", to_valid_utf8(key.second)},
                     {"count", counts.events},
                     {"last", time_json(counts.last_time)}});
  }
  return units;
}

Json timeline_json(const BootAnalysis& boot) {
  Json timeline = Json::array();
  for (const TimelineLine& line : boot.timeline) {
    timeline.push_back({{"time", time_json(line.time)},
                        {"file", line.file},
                        {"line", line.line},
                        {"label", line.meaning.label},
                        {"decisive", line.meaning.weight == Weight::kDecisive},
                        {"text", to_valid_utf8(line.text)},
                        {"more", line.more},
                        {"last_time", time_json(line.last_time)}});
  }
  return timeline;
}

Json end_json(BootEnd end) {
  switch (end) {
    case BootEnd::kShutdown:
      return "shutdown";
    case BootEnd::kNoShutdown:
      return "no_shutdown";
    case BootEnd::kNoShutdownLine:
      return "no_shutdown_line";
    case BootEnd::kNotTold:
      break;
  }
  return nullptr;
}

Json boot_json(const BootAnalysis& boot) {
  Json lost = Json::object();
  for (const auto& [by, count] : boot.log.lost()) {
    lost[by] = count;
  }
  Json json{{"id", boot.id},
            {"kernel", to_valid_utf8(boot.kernel)},
            {"machine", to_valid_utf8(boot.machine)},
            {"parameters", strings_json(boot.parameters)},
            {"gpu_notes", strings_json(boot.gpu_notes)},
            {"log_begins_with_boot", boot.begins_here},
            {"times_are_uptime", boot.times_are_uptime},
            {"first", time_json(boot.first_time)},
            {"last", time_json(boot.last_time)},
            {"end", end_json(boot.end)},
            {"judgement", judgement_json(boot.judgement)}};
  json["warning_threshold"] =
      boot.rule.warning_threshold ? Json(*boot.rule.warning_threshold) : Json(nullptr);
  json["hogs"] = hogs_json(boot);
  json["hogs_without_count"] = boot.hogs_without_count;
  json["hung_restore_workers"] = boot.hung_restore_workers;
  json["events"] = events_json(boot.log);
  json["oom"] = oom_json(boot.log.oom());
  json["oomd"] = {{"kills", boot.oomd_kills}, {"processes", boot.oomd_killed_processes}};
  json["units"] = units_json(boot.log);
  json["kernel_lines"] = boot.log.lines();
  json["user_space_lines"] = boot.log.ignored();
  json["lost"] = std::move(lost);
  json["duplicates"] = boot.duplicates;
  json["limits"] = strings_json(limits_of(boot));
  json["timeline"] = timeline_json(boot);
  return json;
}

}  // namespace

std::string to_report_json(const Analysis& analysis) {
  Json files = Json::array();
  for (const LogFile& file : analysis.files) {
    files.push_back(file_json(file));
  }
  Json boots = Json::array();
  for (const BootAnalysis& boot : analysis.boots) {
    boots.push_back(boot_json(boot));
  }
  const BootAnalysis* worst = analysis.worst();
  const Json json{
      {"format", "apu_exporter analyze"},
      {"version", kFormatVersion},
      {"exporter", version()},
      {"verdict", worst != nullptr ? Json(to_label(worst->judgement.verdict)) : Json(nullptr)},
      {"fault", worst != nullptr && is_fault(worst->judgement.verdict)},
      {"files", std::move(files)},
      {"boots", std::move(boots)},
      {"advice", strings_json(advice_for(analysis))}};
  return json.dump(2) + "\n";
}

}  // namespace apu
