#include "analysis/analysis.h"

#include <algorithm>

#include "analysis/log_reader.h"
#include "exporter/text.h"
#include "verdict/log_verdict.h"

namespace apu {
namespace {

constexpr size_t kMaxGpuNotes = 16;
constexpr size_t kMaxEndedSeries = 64;  // of one boot: drivers are loaded a few times
constexpr size_t kMaxAftermath = 100'000;

/// "amdgpu: 63996M of GTT memory ready."
bool is_memory_note(std::string_view text) {
  return text.ends_with("memory ready") || text.ends_with("memory ready.") ||
         text.starts_with("VRAM: ");
}

/// The same behind any prefix of the driver; "[drm] amdgpu: " is that of older kernels.
bool tells_gpu_memory(std::string_view message) {
  const auto driver = strip_driver_prefix(message);
  std::string_view older = message;
  return (driver && is_memory_note(driver->text)) ||
         (consume(older, "[drm] amdgpu: ") && is_memory_note(older));
}

/// Folds the entries of one boot, in their order.
class BootFolder {
 public:
  explicit BootFolder(std::vector<LogFile>& files) : files_(files) {}

  BootAnalysis run(const BootEntries& entries) {
    boot_.id = entries.id;
    boot_.begins_here = entries.begins_here;
    boot_.duplicates = entries.duplicates;
    find_clock(entries);
    if (entries.begins_here) {
      boot_.log.mark_boot_start();
    }
    for (const PlacedEntry& placed : entries.entries) {
      take(placed);
    }
    boot_.log.fold_plain_lines(entries.plain_kernel_after);
    boot_.log.count_ignored(entries.plain_user_after);
    boot_.rule = guess_hog_rule(all_printed());
    boot_.judgement = judge_log({boot_.log, boot_.rule, boot_time_, aftermath_, boot_.ended_series,
                                 boot_.hung_restore_workers, boot_.first_hung_restore_worker});
    return std::move(boot_);
  }

 private:
  /// The boot's time on the clock of the log, by the first entry that has both stamps.
  void find_clock(const BootEntries& entries) {
    bool dated = false;
    for (const PlacedEntry& placed : entries.entries) {
      const LogEntry& entry = *placed.entry;
      dated = dated || entry.time;
      if (entry.time && entry.since_boot) {
        boot_time_ = *entry.time - *entry.since_boot;
        return;
      }
    }
    if (!dated) {
      boot_.times_are_uptime = true;
      boot_time_ = TimePoint();
    } else if (entries.begins_here) {
      boot_time_ = entries.entries.front().entry->time;
    }
  }

  [[nodiscard]] std::optional<TimePoint> time_of(const LogEntry& entry) const {
    // The kernel's stamp first: clocks are set, and rates must not know of it.
    return resolve_time(entry.record(), boot_time_);
  }

  void take(const PlacedEntry& placed) {
    const LogEntry& entry = *placed.entry;
    const auto time = time_of(entry);
    note_time(time);
    boot_.log.fold_plain_lines(placed.plain_kernel_before);
    boot_.log.count_ignored(placed.plain_user_before);
    if (entry.lost_before > 0) {
      boot_.log.lose("kmsg_overrun", entry.lost_before);
    }
    if (entry.message.empty()) {
      return;
    }
    keep_series_that_ends(entry, time);
    note_aftermath(entry, time);
    fold(placed, time);
    note_hung_worker(entry, time);
    note_services(entry);
    note_host(entry);
    note_meaning(placed, time);
  }

  void note_time(std::optional<TimePoint> time) {
    if (!time) {
      return;
    }
    boot_.first_time = boot_.first_time ? std::min(*boot_.first_time, *time) : *time;
    boot_.last_time = std::max(boot_.last_time, time);
  }

  void fold(const PlacedEntry& placed, std::optional<TimePoint> time) {
    if (boot_.log.fold(placed.entry->record(), time)) {
      ++boot_.hogs_without_count;
      EntryCollector(files_[placed.file])
          .problem(placed.entry->line, "hog report without a count", placed.entry->message);
    }
  }

  /// A count that falls ends a series, which the state then forgets.
  void keep_series_that_ends(const LogEntry& entry, std::optional<TimePoint> time) {
    if (entry.origin != Origin::kKernel) {
      return;
    }
    const ParsedHog hog = parse_hog_report(entry.message);
    const KernelLogState::HogKey key{hog.report.function, hog.report.module};
    const auto found = boot_.log.hogs().find(key);
    if (hog.kind != ParsedHog::Kind::kReport || found == boot_.log.hogs().end()) {
      return;
    }
    if (found->second.would_reset(hog.report.count, time) &&
        boot_.ended_series.size() < kMaxEndedSeries) {
      boot_.ended_series.emplace_back(key, found->second);
    }
  }

  void note_aftermath(const LogEntry& entry, std::optional<TimePoint> time) {
    if (entry.origin != Origin::kKernel || !time || aftermath_.size() >= kMaxAftermath) {
      return;
    }
    const auto event = classify(entry.message, entry.level);
    if (event && is_aftermath(event->kind)) {
      aftermath_.emplace_back(event->kind, *time);
    }
  }

  void note_hung_worker(const LogEntry& entry, std::optional<TimePoint> time) {
    const std::string_view message = entry.message;
    if (entry.origin != Origin::kKernel) {
      return;
    }
    if (message.starts_with("INFO: task ")) {
      hung_lines_left_ = KernelLogState::kHungTaskLines;
      return;
    }
    // Lines of a stack that name nobody are not kept, but count.
    hung_lines_left_ -= std::min(hung_lines_left_, entry.plain_kernel_before + 1);
    if (hung_lines_left_ == 0) {
      return;
    }
    const bool names_worker =
        message.find("svm_range_restore_work") != std::string_view::npos ||
        message.find("amdgpu_amdkfd_restore_userptr_worker") != std::string_view::npos;
    if (!continues_hung_task_report(message)) {
      hung_lines_left_ = 0;
    } else if (names_worker) {
      hung_lines_left_ = 0;
      ++boot_.hung_restore_workers;
      boot_.first_hung_restore_worker =
          boot_.first_hung_restore_worker ? boot_.first_hung_restore_worker : time;
    }
  }

  void note_services(const LogEntry& entry) {
    boot_.has_manager_lines = boot_.has_manager_lines || entry.origin == Origin::kServiceManager;
    boot_.oomd_kills += tells_oomd_kill(entry) ? 1 : 0;
    boot_.oomd_killed_processes += oomd_killed_processes(entry);
    if (tells_shutdown(entry)) {
      boot_.end = BootEnd::kShutdown;
    }
  }

  /// What the kernel tells of the host as it comes up.
  void note_host(const LogEntry& entry) {
    std::string_view rest = entry.message;
    if (entry.origin != Origin::kKernel) {
      return;
    }
    if (is_boot_banner(rest) && consume(rest, "Linux version ")) {
      boot_.kernel = take_field(rest);
    } else if (consume(rest, "DMI: ")) {
      boot_.machine = rest;
    } else if (consume(rest, "Command line: ") || consume(rest, "Kernel command line: ")) {
      note_parameters(rest);
    } else if (tells_gpu_memory(rest) && boot_.gpu_notes.size() < kMaxGpuNotes) {
      boot_.gpu_notes.emplace_back(rest);
    }
  }

  /// Only those of the driver: others may hold secrets.
  void note_parameters(std::string_view line) {
    boot_.parameters.clear();
    for (std::string_view word = take_field(line); !word.empty(); word = take_field(line)) {
      if (word.starts_with("amdgpu.") || word.starts_with("ttm.") || word.starts_with("amdttm.")) {
        boot_.parameters.emplace_back(word);
      }
    }
  }

  void note_meaning(const PlacedEntry& placed, std::optional<TimePoint> time) {
    auto meaning = meaning_of(*placed.entry);
    if (!meaning) {
      return;
    }
    auto& timeline = boot_.timeline;
    const bool hog = meaning->label == "restore_hog";  // each of them is a reading
    if (!timeline.empty() && timeline.back().meaning.label == meaning->label && !hog) {
      timeline.back().more += 1;
      timeline.back().last_time = time;
      return;
    }
    timeline.push_back({placed.file, placed.entry->line, time, *std::move(meaning),
                        placed.entry->message, 0, std::nullopt});
  }

  [[nodiscard]] std::vector<std::uint64_t> all_printed() const {
    std::vector<std::uint64_t> printed;
    const auto add = [&](const HogSeries& series) {
      const auto counts = series.printed();
      printed.insert(printed.end(), counts.begin(), counts.end());
    };
    for (const auto& [key, series] : boot_.log.hogs()) {
      add(series);
    }
    for (const auto& [key, series] : boot_.ended_series) {
      add(series);
    }
    return printed;
  }

  std::vector<LogFile>& files_;
  BootAnalysis boot_;
  std::optional<TimePoint> boot_time_;
  std::vector<std::pair<EventKind, TimePoint>> aftermath_;
  std::uint64_t hung_lines_left_ = 0;
};

}  // namespace

const BootAnalysis* Analysis::worst() const {
  const BootAnalysis* worst = nullptr;
  for (const BootAnalysis& boot : boots) {
    if (worst == nullptr || boot.judgement.verdict >= worst->judgement.verdict) {
      worst = &boot;
    }
  }
  return worst;
}

bool Analysis::any_unreadable() const {
  return std::any_of(files.begin(), files.end(),
                     [](const LogFile& file) { return file.failure.has_value(); });
}

bool Analysis::any_kernel_line() const {
  return std::any_of(boots.begin(), boots.end(),
                     [](const BootAnalysis& boot) { return boot.log.lines() > 0; });
}

Analysis analyze(std::vector<LogFile> files) {
  Analysis analysis;
  analysis.files = std::move(files);
  for (LogFile& file : analysis.files) {
    order_entries(file);
  }
  for (const BootEntries& entries : part_boots(analysis.files)) {
    analysis.boots.push_back(BootFolder(analysis.files).run(entries));
  }
  for (size_t i = 0; i + 1 < analysis.boots.size(); ++i) {
    BootEnd& end = analysis.boots[i].end;
    if (end == BootEnd::kNotTold) {
      end = analysis.boots[i].has_manager_lines ? BootEnd::kNoShutdown : BootEnd::kNoShutdownLine;
    }
  }
  return analysis;
}

}  // namespace apu
