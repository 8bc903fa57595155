#include "analysis/ordering.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "collectors/kernel_log/stamp.h"
#include "collectors/kernel_log/state.h"

namespace apu {
namespace {

// Two logs of one boot have its first line at the same time, but for how they round it.
constexpr std::chrono::seconds kSameStart{3};

// A clock that is set at boot, or a zone, may put a line this far after the log's last one.
constexpr std::chrono::hours kYearSlack{24};

/// From `a` to `b`, negative backwards; nullopt where one has no stamp.
std::optional<std::chrono::system_clock::duration> step(const LogEntry& a, const LogEntry& b,
                                                        bool dated) {
  constexpr std::chrono::hours kYear{365 * 24};
  if (!dated) {
    return a.since_boot && b.since_boot ? std::optional(*b.since_boot - *a.since_boot)
                                        : std::nullopt;
  }
  if (!a.time || !b.time) {
    return std::nullopt;
  }
  auto difference = *b.time - *a.time;
  // Their years were guessed one by one: neighbours are at most half a year apart.
  if (a.year_missing && b.year_missing) {
    difference -= difference > kYear / 2 ? kYear : std::chrono::hours(0);
    difference += difference < -kYear / 2 ? kYear : std::chrono::hours(0);
  }
  return difference;
}

/// Whether more neighbours fall than rise.
bool stands_newest_first(const std::vector<LogEntry>& entries) {
  // The kernel's stamps know of no clock that is set.
  const bool dated = std::any_of(entries.begin(), entries.end(),
                                 [](const LogEntry& entry) { return !entry.since_boot; });
  if (!entries.empty() && is_boot_banner(entries.front().message)) {
    return false;
  }
  std::int64_t rises = 0;
  for (size_t i = 1; i < entries.size(); ++i) {
    const auto change = step(entries[i - 1], entries[i], dated);
    if (change) {
      rises += change->count() > 0 ? 1 : change->count() < 0 ? -1 : 0;
    }
  }
  return rises < 0;
}

/// A month that this program has no name for leaves a stamp unknown: then the counts that hog
/// reports print tell the direction.
bool hogs_fall(const std::vector<LogEntry>& entries) {
  std::map<std::string, std::uint64_t> last;
  std::int64_t rises = 0;
  for (const LogEntry& entry : entries) {
    const ParsedHog hog = parse_hog_report(entry.message);
    if (hog.kind != ParsedHog::Kind::kReport) {
      continue;
    }
    const auto [found, first] = last.try_emplace(hog.report.function, hog.report.count);
    if (!first) {
      rises += found->second < hog.report.count ? 1 : -1;
      found->second = hog.report.count;
    }
  }
  return rises < 0;
}

void turn_round(LogFile& file) {
  file.newest_first = true;
  auto& entries = file.entries;
  const unsigned last_segment = entries.empty() ? 0 : entries.back().segment;
  std::reverse(entries.begin(), entries.end());
  for (LogEntry& entry : entries) {
    entry.segment = last_segment - entry.segment;
  }
}

void set_years(LogFile& file) {
  auto& entries = file.entries;
  const auto last = std::find_if(entries.rbegin(), entries.rend(),
                                 [](const LogEntry& entry) { return entry.time.has_value(); });
  if (last == entries.rend()) {
    return;
  }
  const TimePoint latest = *last->time + kYearSlack;
  for (LogEntry& entry : entries) {
    if (entry.year_missing && entry.time && *entry.time > latest) {
      entry.time = with_newest_year(*entry.time, latest);
    }
  }
}

void count_out_of_order(LogFile& file) {
  std::optional<TimePoint> newest;
  for (const LogEntry& entry : file.entries) {
    if (entry.time && newest && *entry.time < *newest) {
      ++file.out_of_order;
    }
    newest = std::max(newest, entry.time);
  }
}

// --- boots

/// The entries of one boot in one file.
struct BootPart {
  BootEntries boot;
  bool begins_with_banner = false;
  std::optional<TimePoint> first_time;
  std::optional<std::chrono::microseconds> last_stamp;
};

// The banner comes in the first instant, but journald stamps it when it starts itself. Later ones
// are text that user space wrote.
constexpr std::chrono::minutes kLatestBanner{2};

bool is_banner(const LogEntry& entry) {
  return entry.origin == Origin::kKernel && is_boot_banner(entry.message) &&
         entry.since_boot.value_or(std::chrono::microseconds(0)) < kLatestBanner;
}

class FileParter {
 public:
  FileParter(const LogFile& file, size_t index, std::vector<BootPart>& parts)
      : file_(file), index_(index), parts_(parts) {}

  void run() {
    for (const LogEntry& entry : file_.entries) {
      const bool banner = is_banner(entry);
      const bool first = current_ == nullptr;
      const bool reboot = !first && starts_boot(entry, banner);
      if (reboot) {
        current_->boot.plain_kernel_after = entry.plain_kernel_before;
        current_->boot.plain_user_after = entry.plain_user_before;
      }
      if (first || reboot) {
        open(banner);
      }
      append(entry);
      current_->boot.begins_here = current_->boot.begins_here || banner;
      if (reboot) {
        current_->boot.entries.back().plain_kernel_before = 0;
        current_->boot.entries.back().plain_user_before = 0;
      }
    }
  }

 private:
  [[nodiscard]] bool starts_boot(const LogEntry& entry, bool banner) const {
    if (!entry.boot_id.empty() || !current_->boot.id.empty()) {
      return entry.boot_id != current_->boot.id && !current_->boot.id.empty();
    }
    return entry.segment != segment_ || banner ||
           stamp_falls(entry.since_boot, current_->last_stamp);
  }

  void open(bool banner) {
    const bool separated = current_ != nullptr;
    current_ = &parts_.emplace_back();
    current_->boot.begins_here = banner || separated;
    current_->begins_with_banner = banner;
  }

  void append(const LogEntry& entry) {
    current_->boot.entries.push_back(
        {index_, &entry, entry.plain_kernel_before, entry.plain_user_before});
    if (current_->boot.id.empty()) {
      current_->boot.id = entry.boot_id;
    }
    if (!current_->first_time) {
      current_->first_time = entry.time;
    }
    if (entry.since_boot) {
      current_->last_stamp = entry.since_boot;
    }
    segment_ = entry.segment;
  }

  const LogFile& file_;
  size_t index_;
  std::vector<BootPart>& parts_;
  BootPart* current_ = nullptr;
  unsigned segment_ = 0;
};

/// Whether both have messages with the very same stamp of the kernel.
bool share_stamps(const BootPart& a, const BootPart& b) {
  constexpr size_t kEnough = 3;
  std::set<std::pair<std::int64_t, std::string_view>> stamps;
  for (const PlacedEntry& placed : a.boot.entries) {
    if (placed.entry->since_boot && !placed.entry->message.empty()) {
      stamps.emplace(placed.entry->since_boot->count(), placed.entry->message);
    }
  }
  size_t shared = 0;
  for (const PlacedEntry& placed : b.boot.entries) {
    shared += placed.entry->since_boot &&
                      stamps.contains({placed.entry->since_boot->count(), placed.entry->message})
                  ? 1
                  : 0;
  }
  return shared >= std::min({kEnough, stamps.size(), b.boot.entries.size()}) && shared > 0;
}

/// Whether `part` is of the boot that `earlier`, which began no later, is of.
bool is_same_boot(const BootPart& earlier, const BootPart& part) {
  if (share_stamps(earlier, part)) {
    return true;
  }
  if (!earlier.boot.id.empty() || !part.boot.id.empty()) {
    return earlier.boot.id == part.boot.id;
  }
  if (!earlier.first_time || !part.first_time) {
    return false;  // two logs by the kernel's stamp alone: nothing tells
  }
  const bool same_start = *part.first_time - *earlier.first_time < kSameStart;
  return !part.boot.begins_here || (earlier.begins_with_banner && same_start);
}

void join(BootPart& into, BootPart part) {
  auto& entries = into.boot.entries;
  entries.insert(entries.end(), part.boot.entries.begin(), part.boot.entries.end());
  into.boot.plain_kernel_after += part.boot.plain_kernel_after;
  into.boot.plain_user_after += part.boot.plain_user_after;
  into.boot.begins_here = into.boot.begins_here || part.boot.begins_here;
}

/// Joins parts of the same boot in different files.
std::vector<BootPart> join_parts(std::vector<BootPart> parts, bool several_files) {
  std::vector<BootPart> joined;
  for (BootPart& part : parts) {
    const size_t file = part.boot.entries.front().file;
    const auto same = std::find_if(joined.rbegin(), joined.rend(), [&](const BootPart& earlier) {
      return several_files && earlier.boot.entries.front().file != file &&
             is_same_boot(earlier, part);
    });
    if (same == joined.rend()) {
      joined.push_back(std::move(part));
    } else {
      join(*same, std::move(part));
    }
  }
  return joined;
}

/// Sorts by the kernel's stamp where all have it. By the time only what comes from several files:
/// within one the order is better known than the clock, which may have been set.
void sort_entries(std::vector<PlacedEntry>& entries) {
  const bool one_file = std::all_of(entries.begin(), entries.end(), [&](const PlacedEntry& placed) {
    return placed.file == entries.front().file;
  });
  const auto all_have = [&](auto member) {
    return std::all_of(entries.begin(), entries.end(), [&](const PlacedEntry& placed) {
      return (placed.entry->*member).has_value();
    });
  };
  const auto sort_by = [&](auto member) {
    std::stable_sort(entries.begin(), entries.end(),
                     [&](const PlacedEntry& a, const PlacedEntry& b) {
                       return *(a.entry->*member) < *(b.entry->*member);
                     });
  };
  if (all_have(&LogEntry::since_boot)) {
    sort_by(&LogEntry::since_boot);
  } else if (!one_file && all_have(&LogEntry::time)) {
    sort_by(&LogEntry::time);
  }
}

/// The stamp by which two files' copies of one record are told, in microseconds; dmesg -T is off by
/// a second or two.
std::optional<std::int64_t> stamp_of(const LogEntry& entry, bool by_uptime) {
  if (by_uptime) {
    return entry.since_boot ? std::optional(entry.since_boot->count()) : std::nullopt;
  }
  return entry.time ? std::optional(std::chrono::duration_cast<std::chrono::microseconds>(
                                        entry.time->time_since_epoch())
                                        .count())
                    : std::nullopt;
}

/// Leaves out what a second file says again: the same message within kSameStart, as often as the
/// first one said it.
void drop_duplicates(BootEntries& boot) {
  constexpr std::int64_t kTolerance = std::chrono::microseconds(kSameStart).count();
  const bool by_uptime =
      std::all_of(boot.entries.begin(), boot.entries.end(),
                  [](const PlacedEntry& placed) { return placed.entry->since_boot.has_value(); });
  // Of each message the stamps that no other file has said again yet, and in which file.
  std::map<std::string_view, std::deque<std::pair<std::int64_t, size_t>>> open;
  std::vector<PlacedEntry> kept;
  for (const PlacedEntry& placed : boot.entries) {
    const LogEntry& entry = *placed.entry;
    const auto stamp = stamp_of(entry, by_uptime);
    if (!stamp || entry.message.empty()) {
      kept.push_back(placed);
      continue;
    }
    auto& waiting = open[entry.message];
    while (!waiting.empty() && waiting.front().first + kTolerance < *stamp) {
      waiting.pop_front();
    }
    const auto other = std::find_if(waiting.begin(), waiting.end(), [&](const auto& each) {
      return each.second != placed.file && each.first <= *stamp + kTolerance;
    });
    if (other != waiting.end()) {
      waiting.erase(other);
      ++boot.duplicates;
    } else {
      waiting.emplace_back(*stamp, placed.file);
      kept.push_back(placed);
    }
  }
  boot.entries = std::move(kept);
}

}  // namespace

void order_entries(LogFile& file) {
  const bool stamped = std::any_of(file.entries.begin(), file.entries.end(),
                                   [](const LogEntry& e) { return e.time || e.since_boot; });
  if (stamped ? stands_newest_first(file.entries) : hogs_fall(file.entries)) {
    turn_round(file);
  }
  set_years(file);
  count_out_of_order(file);
}

std::vector<BootEntries> part_boots(std::vector<LogFile>& files) {
  std::vector<BootPart> parts;
  for (size_t i = 0; i < files.size(); ++i) {
    FileParter(files[i], i, parts).run();
  }
  const bool all_dated =
      std::all_of(parts.begin(), parts.end(), [](const BootPart& part) { return part.first_time; });
  if (all_dated) {
    std::stable_sort(parts.begin(), parts.end(), [](const BootPart& a, const BootPart& b) {
      return *a.first_time < *b.first_time;
    });
  }
  std::vector<BootEntries> boots;
  for (BootPart& part : join_parts(std::move(parts), files.size() > 1)) {
    sort_entries(part.boot.entries);
    if (files.size() > 1) {
      drop_duplicates(part.boot);
    }
    boots.push_back(std::move(part.boot));
  }
  return boots;
}

}  // namespace apu
