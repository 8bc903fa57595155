#include "collectors/kernel_log/relevance.h"

#include <algorithm>

#include "collectors/kernel_log/event.h"
#include "collectors/kernel_log/unit_event.h"
#include "exporter/text.h"

namespace apu {
namespace {

constexpr std::string_view kSuppressed = "callbacks suppressed";

bool may_continue_hung_task_report(std::string_view message) {
  return continues_hung_task_report(message) && names_gpu_driver(message);
}

/// By the first character, since most messages begin with none of these.
bool begins_like_one_that_matters(std::string_view message) {
  switch (message.front()) {
    case 'w':
      return message.starts_with("workqueue: ");
    case 'a':
      return message.starts_with("amdgpu");
    case 'k':
      return message.starts_with("kfd");
    case '[':
      return message.starts_with("[drm") || message.starts_with("[TTM]");
    case 'I':
      return message.starts_with("INFO: task ");
    case 'o':
      return message.starts_with("oom-kill:") || message.starts_with("oom_reaper:");
    case 'O':
      return message.starts_with("Out of memory");
    case 'M':
      return message.starts_with("Memory cgroup");
    case 'T':
      return message.starts_with("Tasks in ");
    case 'L':
      return message.starts_with("Linux version ");
    case 'F':
      return message.starts_with("Future hung task");
    case 'D':
      return message.starts_with("DMI: ");
    case 'r':
      return message.starts_with("reboot: ");
    case 's':
      return message.starts_with("systemd");
    case 'K':
      return message.starts_with("Kernel command line: ");
    case 'C':
      return message.starts_with("Command line: ") || may_continue_hung_task_report(message);
    case ' ':
    case 't':
    case 'W':
    case 'R':
    case '"':
      return may_continue_hung_task_report(message);
    default:
      return false;
  }
}

/// "SITE: 12 callbacks suppressed", and blanks.
bool tells_of_suppression(std::string_view message) {
  const char last = message.back();
  return (last == kSuppressed.back() || last == ' ' || last == '\t') &&
         trim(message).ends_with(kSuppressed);
}

/// Whether `text`, of the kernel in a log file, may matter, behind the kernel's own stamp too.
bool may_matter_behind_stamp(std::string_view text) {
  const size_t end = text.starts_with('[') ? text.find(']') : std::string_view::npos;
  if (may_matter(text) || end == std::string_view::npos) {
    return may_matter(text);
  }
  std::string_view behind = text.substr(end + 1);
  consume(behind, " ");
  return behind.starts_with('[') || may_matter(behind);  // the caller may follow the stamp
}

/// What the text after a stamp of a log file is: "host kernel: message", "kernel: message".
LineTriage triage_tagged(std::string_view rest) {
  if (rest.starts_with(' ')) {
    return LineTriage::kLook;
  }
  std::string_view tag = take_field(rest);
  if (!tag.ends_with(':')) {
    consume(rest, " ");
    tag = rest.substr(0, rest.find(' '));
    rest.remove_prefix(tag.size());
  }
  if (tag == "kernel:" && consume(rest, " ")) {
    return may_matter_behind_stamp(rest) ? LineTriage::kLook : LineTriage::kPlainKernel;
  }
  return tag.size() > 1 && tag.ends_with(':') && !tag.starts_with("systemd")
             ? LineTriage::kPlainUser
             : LineTriage::kLook;
}

/// "kernel: text", "host kernel: text", "host app[4711]: text": only journalctl writes these behind
/// a stamp like dmesg's. No blanks but single ones are looked for, for speed.
bool may_be_tagged(std::string_view text) {
  const size_t first = text.find(' ');
  if (first == std::string_view::npos) {
    return false;
  }
  if (first == 0) {
    return true;  // a host may follow
  }
  const std::string_view rest = text.substr(first + 1);
  const std::string_view second = rest.substr(0, rest.find(' '));
  return text.starts_with("kernel:") || second == "kernel:" || second.ends_with("]:");
}

/// "[    5.678901] text"; also "[    5.678901] host kernel: text" of journalctl.
TriagedLine triage_dmesg(std::string_view line) {
  constexpr size_t kFractionDigits = 6;
  constexpr std::uint64_t kMaxSeconds = 10ULL * 366 * 24 * 3600;  // of uptime
  line.remove_prefix(1);
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  const auto seconds = take_unsigned(line);
  const bool point = consume(line, ".");
  const size_t before = line.size();
  const auto micros = take_unsigned(line);
  if (!seconds || *seconds > kMaxSeconds || !point || !micros ||
      before - line.size() != kFractionDigits || !consume(line, "] ") || may_matter(line)) {
    return {};
  }
  if (may_be_tagged(line)) {
    return {};
  }
  return {LineTriage::kPlainKernel, std::nullopt,
          std::chrono::seconds(*seconds) + std::chrono::microseconds(*micros)};
}

/// "4,1234,5678901,-;text".
TriagedLine triage_kmsg(std::string_view line) {
  constexpr std::uint64_t kLevels = 8;
  constexpr std::uint64_t kMaxStamp = 10ULL * 366 * 24 * 3600 * 1'000'000;  // of uptime
  const size_t semicolon = line.find(';');
  const auto priority = take_unsigned(line);
  const bool first = consume(line, ",");
  const auto sequence = take_unsigned(line);
  const bool second = consume(line, ",");
  const auto stamp = take_unsigned(line);
  if (semicolon == std::string_view::npos || !priority || !first || !sequence || !second ||
      !stamp || *stamp > kMaxStamp || !line.starts_with(',')) {
    return {};
  }
  const std::string_view message = line.substr(line.find(';') + 1);
  if (*priority < kLevels && may_matter(message)) {
    return {};
  }
  return {*priority < kLevels ? LineTriage::kPlainKernel : LineTriage::kPlainUser, sequence,
          std::chrono::microseconds(*stamp)};
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// "Jul  4 18:18:52 ": the stamp's length, 0 if there is none.
size_t traditional_stamp(std::string_view line) {
  constexpr size_t kLength = 16;
  const bool fits = line.size() > kLength && line[3] == ' ' && line[6] == ' ' && line[9] == ':' &&
                    line[12] == ':' && line[15] == ' ' && is_digit(line[5]) && is_digit(line[8]) &&
                    is_digit(line[11]) && is_digit(line[14]);
  return fits ? kLength : 0;
}

/// "2026-07-05T13:04:41.123456+02:00 ". A comma in it is dmesg's, and no tag follows.
size_t rfc3339_stamp(std::string_view line) {
  constexpr size_t kShortest = 20;
  if (line.size() <= kShortest || line[4] != '-' || line[7] != '-' || line[10] != 'T') {
    return 0;
  }
  const size_t blank = line.find(' ');
  const bool of_dmesg = line.substr(0, blank).find(',') != std::string_view::npos;
  return blank == std::string_view::npos || of_dmesg ? 0 : blank + 1;
}

}  // namespace

bool may_matter(std::string_view message) {
  return !message.empty() &&
         (begins_like_one_that_matters(message) || tells_of_suppression(message));
}

bool may_matter_of_others(std::string_view message) {
  return message.starts_with("Missed ") || message.starts_with("/dev/kmsg buffer overrun") ||
         parse_unit_event(message, {}).has_value();
}

TriagedLine triage_line(std::string_view line) {
  if (line.empty()) {
    return {};
  }
  if (line.front() == '[') {
    return triage_dmesg(line);
  }
  size_t stamp = traditional_stamp(line);
  if (stamp == 0 && is_digit(line.front())) {
    stamp = rfc3339_stamp(line);
    if (stamp == 0) {
      return triage_kmsg(line);
    }
  }
  return stamp == 0 ? TriagedLine{} : TriagedLine{triage_tagged(line.substr(stamp)), {}, {}};
}

}  // namespace apu
