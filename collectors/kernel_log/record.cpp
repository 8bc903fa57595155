#include "collectors/kernel_log/record.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "collectors/kernel_log/stamp.h"
#include "exporter/text.h"

namespace apu {
namespace {

// PRIO is facility * 8 + level; the kernel's facility is 0.
constexpr std::uint64_t kLevels = 8;

void set_priority(LogRecord& record, std::uint64_t priority) {
  record.origin = priority < kLevels ? Origin::kKernel : Origin::kUserspace;
  record.level = static_cast<int>(priority % kLevels);
}

// --- /dev/kmsg

std::optional<LogRecord> parse_kmsg(std::string_view line) {
  constexpr std::uint64_t kMaxStamp = 10ULL * 366 * 24 * 3600 * 1'000'000;  // of uptime
  const size_t semicolon = line.find(';');
  if (semicolon == std::string_view::npos) {
    return std::nullopt;
  }
  std::string_view head = line.substr(0, semicolon);
  const auto priority = take_unsigned(head);
  const bool first = consume(head, ",");
  const auto sequence = take_unsigned(head);
  const bool second = consume(head, ",");
  const auto stamp = take_unsigned(head);
  const bool flagged = head.starts_with(',');  // then "-" or "c", then fields of newer kernels
  if (!priority || !sequence || !stamp || *stamp > kMaxStamp || !first || !second || !flagged) {
    return std::nullopt;
  }
  LogRecord record;
  set_priority(record, *priority);
  record.sequence = sequence;
  record.since_boot = std::chrono::microseconds(*stamp);
  record.message = line.substr(semicolon + 1);
  return record;
}

// --- text

/// "kern  :warn  : ", as `dmesg -x` writes it: the facility's name, then the level's, padded.
bool take_decoded_priority(std::string_view& text, LogRecord& record) {
  constexpr std::array<std::string_view, 8> kLevelNames{"emerg", "alert",  "crit", "err",
                                                        "warn",  "notice", "info", "debug"};
  const size_t first = text.find(':');
  const size_t second = first == std::string_view::npos ? first : text.find(": ", first + 1);
  constexpr size_t kLongest = 20;  // of both names
  if (second == std::string_view::npos || second > kLongest) {
    return false;
  }
  const std::string_view level = trim(text.substr(first + 1, second - first - 1));
  const auto* const found = std::find(kLevelNames.begin(), kLevelNames.end(), level);
  if (found == kLevelNames.end()) {
    return false;
  }
  record.level = static_cast<int>(found - kLevelNames.begin());
  record.origin = trim(text.substr(0, first)) == "kern" ? Origin::kKernel : Origin::kUserspace;
  text.remove_prefix(second + 2);
  return true;
}

/// Removes "<4>", or what `dmesg -x` writes. False if it is cut.
bool take_priority(std::string_view& text, LogRecord& record) {
  if (!consume(text, "<")) {
    const bool letter = !text.empty() && text.front() >= 'a' && text.front() <= 'z';
    if (letter) {
      take_decoded_priority(text, record);
    }
    return true;
  }
  const auto priority = take_unsigned(text);
  if (!priority || !consume(text, ">")) {
    return false;
  }
  set_priority(record, *priority);
  return true;
}

/// Removes a tag and says whose it is. A file cannot prove it: who may write to the system's log
/// may write this. nullopt if there is none of those that matter.
std::optional<Origin> take_tag(std::string_view& text) {
  if (consume(text, "kernel: ")) {
    return Origin::kKernel;
  }
  if (consume(text, "systemd[1]: ")) {
    return Origin::kServiceManager;
  }
  std::string_view rest = text;
  if (consume(rest, "systemd-journald[") && take_unsigned(rest) && consume(rest, "]: ")) {
    text = rest;
    return Origin::kJournald;
  }
  return std::nullopt;
}

/// The same, with or without a host in front of the tag.
std::optional<Origin> take_host_and_tag(std::string_view& text) {
  if (const auto origin = take_tag(text)) {
    return origin;
  }
  std::string_view rest = text;
  const std::string_view host = take_field(rest);
  if (host.empty() || host.ends_with(':') || !consume(rest, " ")) {
    return std::nullopt;
  }
  const auto origin = take_tag(rest);
  if (origin) {
    text = rest;
  }
  return origin;
}

/// "host app[4711]: text", as journalctl -o short-monotonic has it: no line of a kernel has a
/// process's tag for its second word.
bool has_user_tag(std::string_view text) {
  const size_t first = text.find(' ');
  if (first == std::string_view::npos) {
    return false;
  }
  const std::string_view rest = text.substr(first + 1);
  const std::string_view tag = rest.substr(0, rest.find(' '));
  return tag.ends_with("]:") && tag.find('[') != std::string_view::npos;
}

std::optional<LogRecord> parse_text(std::string_view line, TimePoint now) {
  std::string_view rest = line;
  LogRecord record;
  record.origin = Origin::kKernel;
  if (!take_priority(rest, record)) {
    return std::nullopt;
  }
  const auto stamp = take_stamp(rest, now);
  if (!stamp) {
    return std::nullopt;
  }
  record.since_boot = stamp->since_boot;
  record.time = stamp->time;
  record.year_missing = stamp->year_missing;
  if (!stamp->of_dmesg && rest.empty()) {
    return std::nullopt;  // cut off
  }
  if (record.origin != Origin::kKernel) {
    record.message = rest;  // by its priority
    return record;
  }
  if (const auto origin = take_host_and_tag(rest)) {
    record.origin = *origin;
  } else if (!stamp->of_dmesg || has_user_tag(rest)) {
    record.origin = Origin::kUserspace;
  }
  // rsyslog keeps the kernel's own stamp.
  if (record.origin == Origin::kKernel && !record.since_boot) {
    std::string_view behind = rest;
    if (const auto own = take_stamp(behind, now); own && own->since_boot) {
      record.since_boot = own->since_boot;
      rest = behind;
    }
  }
  record.message = rest;
  return record;
}

}  // namespace

std::string unescape_kmsg(std::string_view message) {
  constexpr size_t kEscapeBytes = 4;
  std::string plain;
  while (!message.empty()) {
    const size_t escape = message.find("\\x");
    plain += message.substr(0, escape);
    message.remove_prefix(std::min(escape, message.size()));
    unsigned value = 0;
    const std::string_view digits = message.substr(std::min<size_t>(2, message.size()), 2);
    const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (digits.size() == 2 && parsed.ec == std::errc() &&
        parsed.ptr == digits.data() + digits.size()) {
      plain += static_cast<char>(value);
      message.remove_prefix(kEscapeBytes);
    } else if (!message.empty()) {
      plain += message.front();
      message.remove_prefix(1);
    }
  }
  return plain;
}

ParsedLine parse_log_line(std::string_view line, TimePoint now) {
  if (line.starts_with(' ') || line.starts_with('\t')) {
    return {LineKind::kContinuation, {}};
  }
  if (const auto record = parse_kmsg(line)) {
    return {LineKind::kRecord, *record};
  }
  if (const auto record = parse_text(line, now)) {
    return {LineKind::kRecord, *record};
  }
  return {};
}

std::optional<TimePoint> resolve_time(const LogRecord& record,
                                      const std::optional<TimePoint>& boot_time) {
  return record.since_boot && boot_time ? *boot_time + *record.since_boot : record.time;
}

}  // namespace apu
