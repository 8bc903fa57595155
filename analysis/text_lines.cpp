#include "analysis/text_lines.h"

#include <algorithm>
#include <array>
#include <utility>

#include "analysis/meaning.h"
#include "collectors/kernel_log/relevance.h"
#include "exporter/text.h"

namespace apu {
namespace {

using std::chrono::microseconds;

LogEntry to_entry(const LogRecord& record, std::uint64_t line) {
  LogEntry entry;
  entry.line = line;
  entry.origin = record.origin;
  entry.level = record.level;
  entry.sequence = record.sequence;
  entry.since_boot = record.since_boot;
  entry.time = record.time;
  entry.year_missing = record.year_missing;
  entry.message = record.sequence ? unescape_kmsg(record.message) : std::string(record.message);
  return entry;
}

/// "-- Boot 1111... --", "-- Reboot --".
bool is_separator(std::string_view line) {
  return line.starts_with("-- ") && line.ends_with(" --") &&
         (line.starts_with("-- Boot ") || line.starts_with("-- Reboot"));
}

/// Lines that journalctl puts around those of the log: "-- Journal begins at ... --".
bool is_frame(std::string_view line) {
  return line.starts_with("-- ") && (line.ends_with("--") || line.ends_with("."));
}

/// The tag of a record of user space that tells something, and removes all before its message:
/// systemd-oomd, and any service manager's.
std::string take_telling_tag(std::string_view& message) {
  for (const std::string_view tag : {"systemd-oomd", "systemd-shutdown", "systemd"}) {
    const size_t at = message.find(tag);
    if (at == std::string_view::npos || (at > 0 && message[at - 1] != ' ')) {
      continue;
    }
    std::string_view rest = message.substr(at + tag.size());
    if (consume(rest, "[") && take_unsigned(rest) && consume(rest, "]: ")) {
      message = rest;
      return std::string(tag);
    }
  }
  return {};
}

class TextParser : public LineParser {
 public:
  TextParser(EntryCollector& entries, TimePoint now) : entries_(entries), now_(now) {}

  [[nodiscard]] std::string format() const override { return format_.empty() ? "text" : format_; }

  void take(std::string_view line, std::uint64_t number) override {
    if (line.starts_with('\0')) {
      line.remove_prefix(std::min(line.find_first_not_of('\0'), line.size()));
      entries_.problem(number, "NUL bytes: what was written there is lost", {});
    }
    if (line.empty()) {
      return;
    }
    const TriagedLine triaged = triage_line(line);
    if (triaged.triage == LineTriage::kLook || !is_plain(triaged)) {
      look(line, number);
      return;
    }
    if (triaged.triage == LineTriage::kPlainKernel) {
      entries_.count_plain_kernel();
    } else {
      entries_.count_plain_user();
    }
    follow(triaged.sequence, triaged.since_boot);
    remember(line, number);
  }

  void finish() override {
    if (last_length_ == 0) {
      return;
    }
    const ParsedLine parsed = parse_log_line({last_.data(), last_length_}, now_);
    if (parsed.kind == LineKind::kRecord) {
      LogEntry mark = to_entry(parsed.record, last_number_);
      mark.message.clear();
      entries_.add(std::move(mark));
    }
  }

 private:
  /// Whether a line that tells nothing may be counted without being kept.
  [[nodiscard]] bool is_plain(const TriagedLine& line) const {
    return !format_.empty() && !stamp_falls(line.since_boot, last_since_boot_);
  }

  void look(std::string_view line, std::uint64_t number) {
    const ParsedLine parsed = parse_log_line(line, now_);
    if (parsed.kind == LineKind::kContinuation) {
      return;
    }
    if (parsed.kind == LineKind::kUnknown) {
      take_unknown(line, number);
      return;
    }
    note_format(line, parsed.record);
    follow(parsed.record.sequence, parsed.record.since_boot);
    if (parsed.record.origin == Origin::kKernel) {
      take_kernel(parsed.record, line, number);
    } else if (parsed.record.origin == Origin::kUserspace) {
      take_user(parsed.record, line, number);
    } else if (manager_matters(parsed.record.message)) {
      keep(to_entry(parsed.record, number));
    } else {
      remember(line, number);
    }
  }

  void take_unknown(std::string_view line, std::uint64_t number) {
    if (is_separator(line)) {
      entries_.separate_boots();
      last_since_boot_.reset();
    } else if (!is_frame(line)) {
      entries_.problem(number, "no known format", {});  // it may hold anything
    }
  }

  void take_kernel(const LogRecord& record, std::string_view line, std::uint64_t number) {
    if (may_matter(record.message) || std::exchange(keep_next_, false)) {
      keep(to_entry(record, number));
    } else {
      entries_.count_plain_kernel();
      remember(line, number);
    }
  }

  void take_user(const LogRecord& record, std::string_view line, std::uint64_t number) {
    LogEntry entry = to_entry(record, number);
    std::string_view message = record.message;
    entry.tag = take_telling_tag(message);
    if (entry.tag.empty() || !manager_matters(message)) {
      entries_.count_plain_user();
      remember(line, number);
      return;
    }
    entry.message = message;
    keep(std::move(entry));
  }

  void keep(LogEntry entry) {
    last_length_ = 0;
    keep_next_ = false;
    entries_.add(std::move(entry));
  }

  /// Follows the stamps and the sequence, in which a rise by more than one is a loss.
  void follow(std::optional<std::uint64_t> sequence, std::optional<microseconds> since_boot) {
    const bool falls = stamp_falls(since_boot, last_since_boot_);
    if (sequence && last_sequence_ && !falls && *sequence > *last_sequence_ + 1) {
      entries_.lose(*sequence - *last_sequence_ - 1);
    }
    keep_next_ = keep_next_ || falls;
    last_sequence_ = sequence;
    last_since_boot_ = since_boot ? since_boot : last_since_boot_;
  }

  /// The start of a line that is not kept: of the last one the stamp is wanted.
  void remember(std::string_view line, std::uint64_t number) {
    last_length_ = std::min(line.size(), last_.size());
    std::copy_n(line.data(), last_length_, last_.data());
    last_number_ = number;
  }

  void note_format(std::string_view line, const LogRecord& record) {
    if (!format_.empty()) {
      return;
    }
    if (record.sequence) {
      format_ = "records of /dev/kmsg";
    } else if (record.since_boot) {
      format_ = record.time ? "syslog, with the kernel's stamps" : "dmesg";
    } else {
      format_ = line.starts_with('[')  ? "dmesg -T"
                : record.year_missing  ? "syslog or journalctl -o short"
                : line.find('T') == 10 ? "syslog or journalctl -o short-iso"
                                       : "journalctl";
    }
  }

  EntryCollector& entries_;
  TimePoint now_;
  std::string format_;
  bool keep_next_ = true;  // the first line dates the log's start
  std::optional<std::uint64_t> last_sequence_;
  std::optional<microseconds> last_since_boot_;
  std::array<char, 96> last_{};
  size_t last_length_ = 0;
  std::uint64_t last_number_ = 0;
};

class BareParser : public LineParser {
 public:
  explicit BareParser(EntryCollector& entries) : entries_(entries) {}

  [[nodiscard]] std::string format() const override { return "messages without stamps"; }

  void take(std::string_view line, std::uint64_t number) override {
    LogEntry entry;
    entry.line = number;
    entry.origin = Origin::kKernel;
    entry.message = line;
    if (!line.empty()) {
      entries_.add(std::move(entry));
    }
  }

  void finish() override {}

 private:
  EntryCollector& entries_;
};

/// Whether any line of `head` pleases `test`.
template <typename Test>
bool any_line(std::string_view head, Test test) {
  bool found = false;
  for_each_line(head, [&](std::string_view line) { found = found || test(line); });
  return found;
}

}  // namespace

std::unique_ptr<LineParser> make_text_parser(EntryCollector& entries, TimePoint now) {
  return std::make_unique<TextParser>(entries, now);
}

std::unique_ptr<LineParser> make_bare_parser(EntryCollector& entries) {
  return std::make_unique<BareParser>(entries);
}

bool looks_like_text(std::string_view head, TimePoint now) {
  return any_line(head, [&](std::string_view line) {
    line.remove_prefix(std::min(line.find_first_not_of('\0'), line.size()));
    return parse_log_line(line, now).kind == LineKind::kRecord;
  });
}

bool looks_like_bare(std::string_view head) {
  if (head.starts_with("{")) {
    return false;  // JSON over several lines
  }
  return head.find('\0') == std::string_view::npos && any_line(head, may_matter);
}

}  // namespace apu
