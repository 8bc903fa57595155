#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/kernel_log/record.h"
#include "collectors/kernel_log/source.h"
#include "collectors/kernel_log/state.h"
#include "exporter/text.h"

namespace apu {

/// Keeps what a source reads.
class RecordingSink : public LogSink {
 public:
  void on_record(const LogRecord& record) override {
    messages.emplace_back(record.message);
    sequences.push_back(record.sequence);
  }

  void on_loss(std::string_view by, std::uint64_t count) override {
    losses[std::string(by)] += count;
  }

  void on_boot_start() override { ++boot_starts; }

  void on_plain_lines(std::uint64_t count) override { plain_lines += count; }

  void on_unreadable(const std::string& /*source*/, const std::string& what) override {
    unreadable.push_back(what);
  }

  std::vector<std::string> messages;
  std::vector<std::optional<std::uint64_t>> sequences;
  std::map<std::string, std::uint64_t> losses;
  int boot_starts = 0;
  std::uint64_t plain_lines = 0;
  std::vector<std::string> unreadable;
};

/// Folds a whole log into a state, without a source.
inline KernelLogState fold_log(std::string_view text, TimePoint now,
                               std::optional<TimePoint> boot_time = std::nullopt) {
  KernelLogState state;
  for_each_line(text, [&](std::string_view line) {
    const ParsedLine parsed = parse_log_line(line, now);
    if (parsed.kind == LineKind::kRecord) {
      state.fold(parsed.record, resolve_time(parsed.record, boot_time));
    }
  });
  return state;
}

}  // namespace apu
