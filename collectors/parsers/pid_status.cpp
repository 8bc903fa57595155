#include "collectors/parsers/pid_status.h"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <utility>

#include "exporter/text.h"

namespace apu {
namespace {

constexpr std::uint64_t kKilobyte = 1024;

using Member = std::optional<std::uint64_t> PidStatus::*;

struct StatusKey {
  std::string_view name;
  Member member;
  bool is_memory;  // has a unit, kB
};

constexpr std::array kKeys{
    StatusKey{"RssAnon", &PidStatus::anon_bytes, true},
    StatusKey{"RssFile", &PidStatus::file_bytes, true},
    StatusKey{"RssShmem", &PidStatus::shmem_bytes, true},
    StatusKey{"VmSwap", &PidStatus::swap_bytes, true},
    StatusKey{"VmLck", &PidStatus::locked_bytes, true},
    StatusKey{"voluntary_ctxt_switches", &PidStatus::voluntary_switches, false},
    StatusKey{"nonvoluntary_ctxt_switches", &PidStatus::involuntary_switches, false}};

const StatusKey* find_key(std::string_view name) {
  for (const StatusKey& key : kKeys) {
    if (key.name == name) {
      return &key;
    }
  }
  return nullptr;
}

std::optional<std::uint64_t> parse_value(std::string_view text, bool is_memory) {
  const std::string_view field = take_field(text);
  const auto number = parse_number<std::uint64_t>(field);
  if (!is_memory) {
    return number;
  }
  // A line cut before its unit may have been cut inside its number.
  const bool whole = take_field(text) == "kB";
  return whole && number && *number <= std::numeric_limits<std::uint64_t>::max() / kKilobyte
             ? std::optional(*number * kKilobyte)
             : std::nullopt;
}

}  // namespace

std::optional<std::uint64_t> PidStatus::resident_bytes() const {
  return anon_bytes && file_bytes
             ? std::optional(*anon_bytes + *file_bytes + shmem_bytes.value_or(0))
             : std::nullopt;
}

PidStatus parse_pid_status(std::string_view text) {
  PidStatus status;
  int line_number = 0;
  for_each_line(text, [&](std::string_view line) {
    ++line_number;
    const size_t colon = line.find(':');
    const StatusKey* key =
        colon == std::string_view::npos ? nullptr : find_key(line.substr(0, colon));
    if (key == nullptr) {
      return;
    }
    const auto value = parse_value(line.substr(colon + 1), key->is_memory);
    if (!value) {
      status.problems.push_back({line_number, fmt::format("no number in '{}'", line)});
    } else {
      status.*(key->member) = value;
    }
  });
  return status;
}

std::optional<std::uint64_t> parse_read_bytes(std::string_view text) {
  std::optional<std::uint64_t> bytes;
  for_each_line(text, [&](std::string_view line) {
    if (consume(line, "read_bytes:")) {
      bytes = parse_number<std::uint64_t>(trim(line));
    }
  });
  return bytes;
}

std::optional<SchedStat> parse_schedstat(std::string_view text) {
  std::string_view line = first_line(text);
  const auto run = parse_number<std::uint64_t>(take_field(line));
  const auto wait = parse_number<std::uint64_t>(take_field(line));
  const auto slices = parse_number<std::uint64_t>(take_field(line));
  return run && wait && slices ? std::optional(SchedStat{*run, *wait}) : std::nullopt;
}

}  // namespace apu
