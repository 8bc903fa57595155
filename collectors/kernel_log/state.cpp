#include "collectors/kernel_log/state.h"

#include <algorithm>

#include "exporter/text.h"

namespace apu {

bool is_boot_banner(std::string_view message) {
  if (!consume(message, "Linux version ") || take_field(message).empty() ||
      !consume(message, " (")) {
    return false;
  }
  // "(user@host)": a process can be called "Linux version 9", and fault.
  return message.substr(0, message.find(')')).find('@') != std::string_view::npos;
}

std::optional<KernelLogState::Trouble> KernelLogState::fold(const LogRecord& record,
                                                            std::optional<TimePoint> time) {
  switch (record.origin) {
    case Origin::kKernel:
      return fold_kernel(record, time);
    case Origin::kServiceManager:
      fold_manager(record, time);
      break;
    case Origin::kJournald:
      fold_journald(record.message);
      break;
    case Origin::kUserspace:
      ++ignored_;
      break;
  }
  return std::nullopt;
}

std::optional<KernelLogState::Trouble> KernelLogState::fold_kernel(const LogRecord& record,
                                                                   std::optional<TimePoint> time) {
  ++lines_;
  const ParsedHog hog = parse_hog_report(record.message);
  if (hog.kind == ParsedHog::Kind::kMalformed) {
    return Trouble::kHogWithoutCount;
  }
  if (hog.kind == ParsedHog::Kind::kReport) {
    fold_hog(hog.report, time);
  } else if (const auto event = classify(record.message, record.level)) {
    fold_event(*event, time);
  } else if (!oom_.fold(record.message, time) && !fold_suppression(record.message)) {
    fold_hung_task_line(record.message, time);
  }
  return std::nullopt;
}

void KernelLogState::fold_plain_lines(std::uint64_t count) {
  lines_ += count;
  hung_task_lines_left_ -=
      static_cast<unsigned>(std::min<std::uint64_t>(count, hung_task_lines_left_));
}

void KernelLogState::fold_manager(const LogRecord& record, std::optional<TimePoint> time) {
  const auto event = parse_unit_event(record.message, record.user);
  if (!event) {
    return;
  }
  const bool room = units_.size() < kMaxUnits || units_.contains({event->kind, event->unit});
  UnitCounts& counts = units_[{event->kind, room ? event->unit : "other"}];
  counts.events += 1;
  counts.last_time = std::max(counts.last_time, time);
}

void KernelLogState::fold_journald(std::string_view message) {
  if (consume(message, "Missed ")) {
    const auto count = take_unsigned(message);
    if (count && message.starts_with(" kernel messages")) {
      lose("journald_missed", *count);
    }
  } else if (message.starts_with("/dev/kmsg buffer overrun")) {
    lose("journald_missed", 1);  // it does not say how many
  }
}

/// "SITE: N callbacks suppressed", of lines that the kernel limits: no hog report is one.
bool KernelLogState::fold_suppression(std::string_view message) {
  if (message.starts_with("Future hung task reports are suppressed")) {
    lost_["hung_task_limit"] += 1;
    return true;
  }
  const size_t colon = message.find(": ");
  if (colon == std::string_view::npos ||
      message.substr(0, colon).find(' ') != std::string_view::npos) {
    return false;
  }
  std::string_view rest = message.substr(colon + 2);
  const auto count = take_unsigned(rest);
  if (!count || trim(rest) != "callbacks suppressed") {
    return false;
  }
  lost_["ratelimit"] += *count;
  return true;
}

void KernelLogState::fold_hung_task_line(std::string_view message, std::optional<TimePoint> time) {
  if (hung_task_lines_left_ == 0) {
    return;
  }
  --hung_task_lines_left_;
  if (continues_hung_task_report(message) && names_gpu_driver(message)) {
    hung_task_lines_left_ = 0;
    fold_event({EventKind::kHungTaskGpu, {}}, time);
  }
}

void KernelLogState::lose(std::string_view by, std::uint64_t count) {
  lost_[std::string(by)] += count;
  for (auto& [key, series] : hogs_) {
    series.note_loss();
  }
}

void KernelLogState::fold_hog(const HogReport& report, std::optional<TimePoint> time) {
  HogKey key{report.function, report.module};
  if (hogs_.size() >= kMaxHogFunctions && !hogs_.contains(key)) {
    return;
  }
  hogs_[std::move(key)].add(report.count, time);
}

/// One failed reset is reported by each layer that it passes.
bool KernelLogState::repeats_failed_reset(const KernelEvent& event,
                                          std::optional<TimePoint> time) const {
  const auto found = events_.find(EventKind::kGpuResetFailed);
  if (event.kind != EventKind::kGpuResetFailed || found == events_.end() ||
      !found->second.lines.contains(event.gpu)) {
    return false;
  }
  const auto& last = found->second.last_time;
  return time && last && *time - *last <= kResetRepeats;
}

void KernelLogState::fold_event(const KernelEvent& event, std::optional<TimePoint> time) {
  if (repeats_failed_reset(event, time)) {
    return;
  }
  if (event.kind == EventKind::kHungTask) {
    hung_task_lines_left_ = kHungTaskLines;
  }
  EventCounts& counts = events_[event.kind];
  const bool first = counts.lines.empty();
  const bool room = counts.lines.size() < kMaxGpus || counts.lines.contains(event.gpu);
  counts.lines[room ? std::string(event.gpu) : "other"] += 1;
  const bool follows =
      !first && (!time || !counts.last_time || *time - *counts.last_time <= kBurstGap);
  counts.bursts += follows ? 0 : 1;
  counts.last_time = std::max(counts.last_time, time);
  if (time && (!counts.first_time || *time < *counts.first_time)) {
    counts.first_time = time;
  }
}

}  // namespace apu
