#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "analysis/report.h"
#include "exporter/duration.h"
#include "exporter/text.h"
#include "verdict/advice.h"
#include "verdict/log_verdict.h"

namespace apu {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr size_t kWidth = 100;
constexpr size_t kTimelineHead = 20;
constexpr size_t kTimelineTail = 40;
constexpr size_t kShownBoots = 12;

/// The verdict's name for a headline.
std::string headline(const Judgement& judgement) {
  if (is_fault(judgement.verdict)) {
    return std::string(to_label(judgement.verdict));
  }
  return judgement.doubts.empty() ? "no sign of the fault"
                                  : "not certain, but there are signs of a fault: see below";
}

/// Text of the log made fit for a terminal.
std::string plain(std::string_view text) {
  return to_valid_utf8(text);
}

// --- pieces

/// "2026-07-04 23:05:35" by local time, or "+1d 09:24:15.678" since boot.
std::string time_text(const std::optional<TimePoint>& time, bool uptime) {
  if (!time) {
    return "-";
  }
  if (!uptime) {
    return fmt::format("{:%Y-%m-%d %H:%M:%S}",
                       fmt::localtime(std::chrono::system_clock::to_time_t(*time)));
  }
  const auto whole = std::chrono::floor<milliseconds>(time->time_since_epoch());
  const auto days = whole / std::chrono::hours(24);
  return fmt::format("+{}d {:%H:%M:%S}", days, whole % std::chrono::hours(24));
}

std::string span_text(std::chrono::system_clock::duration span) {
  constexpr seconds kExact{60};
  const auto exact = std::chrono::duration_cast<milliseconds>(span);
  return format_duration(exact < kExact ? exact : std::chrono::round<seconds>(exact));
}

void append_list(std::string& out, std::string_view title, const std::vector<std::string>& items) {
  if (items.empty()) {
    return;
  }
  out += fmt::format("\n{}\n", title);
  for (const std::string& item : items) {
    append_wrapped(out, kWidth, "  - ", item + ".");
  }
}

std::string full_name(const KernelLogState::HogKey& key) {
  return key.second.empty() ? key.first : fmt::format("{} [{}]", key.first, plain(key.second));
}

// --- sections

void append_verdict(std::string& out, const Analysis& analysis) {
  const BootAnalysis* worst = analysis.worst();
  if (worst == nullptr) {
    out += "No verdict: no log could be read.\n";
    return;
  }
  const Judgement& judgement = worst->judgement;
  out += fmt::format("Verdict: {}", headline(judgement));
  if (judgement.since) {
    out += fmt::format(", since {}", time_text(judgement.since, worst->times_are_uptime));
  }
  if (judgement.estimated_since) {
    out += fmt::format(" at the latest (by its rate, {})",
                       time_text(judgement.estimated_since, worst->times_are_uptime));
  }
  if (analysis.boots.size() > 1) {
    out +=
        fmt::format(" (boot {} of {})", worst - analysis.boots.data() + 1, analysis.boots.size());
  }
  out += '\n';
  if (is_fault(judgement.verdict)) {
    append_wrapped(out, kWidth, "", explain(judgement.verdict));
  } else if (judgement.doubts.empty()) {
    append_wrapped(out, kWidth, "",
                   "Nothing in this log shows the fault. A log alone cannot show health.");
  }
}

void append_file(std::string& out, const LogFile& file) {
  if (file.failure) {
    out += fmt::format("  cannot be read: {}\n", plain(file.failure->message));
    if (file.entries.empty()) {
      return;
    }
  }
  out += fmt::format("  {}: {}, {}", plain(file.name), file.format, number_of(file.lines, "line"));
  if (file.newest_first) {
    out += ", newest first";
  }
  if (file.out_of_order > 0) {
    out += fmt::format(", {} out of order", file.out_of_order);
  }
  if (file.unreadable > 0) {
    out += fmt::format(", {} unreadable", file.unreadable);
  }
  out += '\n';
  for (const std::string& problem : file.problems) {
    out += fmt::format("    {}\n", cut_text(problem, kWidth + kWidth / 2));
  }
  if (file.unreadable > file.problems.size()) {
    out += fmt::format("    and {} more\n", file.unreadable - file.problems.size());
  }
}

std::string end_text(BootEnd end) {
  switch (end) {
    case BootEnd::kShutdown:
      return "ended by a shutdown";
    case BootEnd::kNoShutdown:
      return "ended WITHOUT a shutdown: a crash, a freeze or a power loss";
    case BootEnd::kNoShutdownLine:
      return "ended with no line of a shutdown, which a log of the kernel alone seldom has";
    case BootEnd::kNotTold:
      return "the last of the log";
  }
  return {};
}

void append_boot_head(std::string& out, const Analysis& analysis, size_t index) {
  const BootAnalysis& boot = analysis.boots[index];
  out += fmt::format("\nBoot {} of {}: {} to {}, {}\n", index + 1, analysis.boots.size(),
                     time_text(boot.first_time, boot.times_are_uptime),
                     time_text(boot.last_time, boot.times_are_uptime), end_text(boot.end));
  if (!boot.kernel.empty()) {
    out += fmt::format("  kernel {}{}{}\n", cut_text(boot.kernel, kWidth / 2),
                       boot.machine.empty() ? "" : ", ", cut_text(boot.machine, kWidth));
  }
  if (!boot.parameters.empty()) {
    append_wrapped(out, kWidth, "  parameters ",
                   plain(fmt::format("{}", fmt::join(boot.parameters, " "))));
  }
  for (const std::string& note : boot.gpu_notes) {
    out += fmt::format("  {}\n", cut_text(note, kWidth));
  }
  out += fmt::format("  {} of the kernel, {} of user space left out",
                     number_of(boot.log.lines(), "line"), boot.log.ignored());
  out +=
      boot.duplicates > 0 ? fmt::format(", {} that stand in two files\n", boot.duplicates) : "\n";
}

void append_evidence(std::string& out, const BootAnalysis& boot) {
  const Judgement& judgement = boot.judgement;
  if (!judgement.evidence.empty()) {
    out += "\n  Evidence\n";
  }
  for (const Evidence& evidence : judgement.evidence) {
    append_wrapped(
        out, kWidth, "    - ",
        fmt::format("{}: {}{}{}{}", evidence.what, evidence.value, evidence.since ? ", since " : "",
                    evidence.since ? time_text(evidence.since, boot.times_are_uptime) : "",
                    evidence.threshold.empty() || evidence.threshold == "any"
                        ? ""
                        : fmt::format(" (counts as a fault: {})", evidence.threshold)));
  }
  if (!judgement.doubts.empty()) {
    out += "\n  Not enough for a verdict\n";
  }
  for (const std::string& doubt : judgement.doubts) {
    append_wrapped(out, kWidth, "    - ", doubt + ".");
  }
}

void append_series(std::string& out, const BootAnalysis& boot, const KernelLogState::HogKey& key,
                   const HogSeries& series, bool ended) {
  const auto bound = series.upper_bound(boot.rule);
  out += fmt::format("    {}: {} hogs{}\n", full_name(key), series.count(boot.rule),
                     ended   ? ", then the count began anew"
                     : bound ? fmt::format(" or more, below {}", *bound)
                             : " or more");
  for (const HogInterval& interval : hog_intervals(series, boot.rule)) {
    out += fmt::format("      {} to {}  {:>12}  {:>8} -> {:<8} {:>7}/s\n",
                       time_text(interval.from, boot.times_are_uptime),
                       time_text(interval.to, boot.times_are_uptime),
                       span_text(interval.to - interval.from), interval.from_count,
                       interval.to_count, rate_text(interval.rate()));
  }
}

void append_hogs(std::string& out, const BootAnalysis& boot) {
  if (boot.log.hogs().empty()) {
    return;
  }
  out += "\n  Hog reports, and the rate between them\n";
  append_wrapped(out, kWidth, "    ",
                 "The kernel prints only when the count has doubled: that the printed numbers "
                 "double is how it prints, and no sign of a fault that grows. The rate is the "
                 "reading.");
  for (const auto& [key, series] : boot.ended_series) {
    append_series(out, boot, key, series, true);
  }
  for (const bool restore : {true, false}) {
    for (const auto& [key, series] : boot.log.hogs()) {
      if (is_restore_worker(key) == restore) {
        append_series(out, boot, key, series, false);
      }
    }
  }
  out += fmt::format("    Reports by {}\n",
                     boot.rule.warning_threshold
                         ? fmt::format("the rule since 6.9, from count {} on (at {}-1+2^k)",
                                       *boot.rule.warning_threshold, *boot.rule.warning_threshold)
                         : "the rule before 6.9 (at powers of two)");
}

void append_counts(std::string& out, const BootAnalysis& boot) {
  std::string rows;
  const auto add = [&](std::string_view what, std::uint64_t count, std::string_view note) {
    rows += fmt::format("    {:<30} {:>8}{}{}\n", what, count, note.empty() ? "" : "  ", note);
  };
  for (const auto& [kind, counts] : boot.log.events()) {
    std::uint64_t lines = 0;
    std::string gpus;
    for (const auto& [gpu, number] : counts.lines) {
      lines += number;
      gpus += gpu.empty() ? "" : " " + gpu;
    }
    add(to_label(kind), lines, fmt::format("in {}{}", number_of(counts.bursts, "burst"), gpus));
  }
  for (const auto& [scope, count] : boot.log.oom().events()) {
    add(scope == OomScope::kHost ? "oom_host" : "oom_memcg", count, "");
  }
  for (const auto& [key, counts] : boot.log.oom().kills()) {
    add("oom_kill", counts.kills,
        cut_text(key.second.empty() ? "(no unit)" : key.second, kWidth / 2));
  }
  for (const auto& [key, counts] : boot.log.units()) {
    add(key.first == UnitEventKind::kSigkill ? "unit_sigkill" : "unit_stop_timeout", counts.events,
        cut_text(key.second.empty() ? "(no name)" : key.second, kWidth / 2));
  }
  if (boot.oomd_kills > 0) {
    add("oomd_kill", boot.oomd_kills, fmt::format("{} processes", boot.oomd_killed_processes));
  }
  if (!rows.empty()) {
    out += "\n  Counted\n" + rows;
  }
}

void append_timeline_line(std::string& out, const Analysis& analysis, const BootAnalysis& boot,
                          const TimelineLine& line) {
  const std::string where =
      analysis.files.size() > 1
          ? fmt::format("{}:{}", plain(analysis.files[line.file].name), line.line)
          : std::to_string(line.line);
  out += fmt::format("    {} {:>8} {} {}\n", time_text(line.time, boot.times_are_uptime), where,
                     line.meaning.weight == Weight::kDecisive ? '*' : ' ',
                     cut_text(line.text, kWidth));
  if (line.more > 0) {
    out += fmt::format("    {} {:>8}   and {} more of {}\n",
                       time_text(line.last_time, boot.times_are_uptime), "", line.more,
                       line.meaning.label);
  }
}

void append_timeline(std::string& out, const Analysis& analysis, const BootAnalysis& boot) {
  const auto& timeline = boot.timeline;
  if (timeline.empty()) {
    return;
  }
  out += fmt::format("\n  Timeline (time, {}line, * decisive)\n",
                     analysis.files.size() > 1 ? "file and " : "");
  const bool whole = timeline.size() <= kTimelineHead + kTimelineTail;
  const size_t head = whole ? timeline.size() : kTimelineHead;
  for (size_t i = 0; i < head; ++i) {
    append_timeline_line(out, analysis, boot, timeline[i]);
  }
  if (whole) {
    return;
  }
  out += fmt::format("    ... {} left out: --format=json has all\n",
                     timeline.size() - kTimelineHead - kTimelineTail);
  for (size_t i = timeline.size() - kTimelineTail; i < timeline.size(); ++i) {
    append_timeline_line(out, analysis, boot, timeline[i]);
  }
}

void append_boot(std::string& out, const Analysis& analysis, size_t index) {
  const BootAnalysis& boot = analysis.boots[index];
  append_boot_head(out, analysis, index);
  append_evidence(out, boot);
  append_hogs(out, boot);
  append_counts(out, boot);
  append_timeline(out, analysis, boot);
}

}  // namespace

std::string to_report_text(const Analysis& analysis) {
  std::string out;
  append_verdict(out, analysis);
  out += "\nRead\n";
  for (const LogFile& file : analysis.files) {
    append_file(out, file);
  }
  const size_t first =
      analysis.boots.size() > kShownBoots ? analysis.boots.size() - kShownBoots : 0;
  if (first > 0) {
    out += fmt::format("\n{} before the last {} left out: --format=json has them\n",
                       number_of(first, "boot"), kShownBoots);
  }
  for (size_t i = first; i < analysis.boots.size(); ++i) {
    append_boot(out, analysis, i);
  }
  if (const BootAnalysis* worst = analysis.worst()) {
    append_list(out, "What this log cannot show", limits_of(*worst));
    append_list(out, "What to do next", advice_for(analysis));
  }
  return out;
}

}  // namespace apu
