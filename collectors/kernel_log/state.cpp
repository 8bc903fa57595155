#include "collectors/kernel_log/state.h"

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
  if (record.origin != Origin::kKernel) {
    ++ignored_;
    return std::nullopt;
  }
  ++lines_;
  const ParsedHog hog = parse_hog_report(record.message);
  if (hog.kind == ParsedHog::Kind::kMalformed) {
    return Trouble::kHogWithoutCount;
  }
  if (hog.kind == ParsedHog::Kind::kReport) {
    fold_hog(hog.report, time);
  } else if (const auto event = classify(record.message)) {
    fold_event(*event, time);
  }
  return std::nullopt;
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

void KernelLogState::fold_event(const KernelEvent& event, std::optional<TimePoint> time) {
  EventCounts& counts = events_[event.kind];
  const bool first = counts.lines.empty();
  counts.lines[std::string(event.gpu)] += 1;
  const bool follows =
      !first && (!time || !counts.last_time || *time - *counts.last_time <= kBurstGap);
  counts.bursts += follows ? 0 : 1;
  if (time && (!counts.last_time || *counts.last_time < *time)) {
    counts.last_time = time;
  }
}

}  // namespace apu
