#include "collectors/parsers/keyed_numbers.h"

#include <fmt/format.h>

#include "exporter/text.h"

namespace apu {
namespace {

void add(KeyedNumbers& table, int line_number, std::string_view line, std::string_view key,
         std::string_view number) {
  const auto value = parse_number<std::uint64_t>(number);
  if (!value) {
    table.problems.push_back({line_number, fmt::format("no number in '{}'", line)});
  } else if (!table.values.try_emplace(std::string(key), *value).second) {
    table.problems.push_back({line_number, fmt::format("'{}' is there twice", key)});
  }
}

}  // namespace

std::optional<std::uint64_t> KeyedNumbers::get(std::string_view key) const {
  const auto found = values.find(key);
  return found == values.end() ? std::nullopt : std::optional(found->second);
}

std::uint64_t KeyedNumbers::get_or_zero(std::string_view key) const {
  return get(key).value_or(0);
}

KeyedNumbers parse_vmstat(std::string_view text) {
  KeyedNumbers table;
  int line_number = 0;
  for_each_line(text, [&](std::string_view line) {
    std::string_view rest = line;
    const std::string_view key = take_field(rest);
    add(table, ++line_number, line, key, trim(rest));
  });
  return table;
}

KeyedNumbers parse_meminfo(std::string_view text) {
  KeyedNumbers table;
  int line_number = 0;
  for_each_line(text, [&](std::string_view line) {
    ++line_number;
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) {
      table.problems.push_back({line_number, fmt::format("no colon in '{}'", line)});
      return;
    }
    const std::string_view key = line.substr(0, colon);
    std::string_view rest = line.substr(colon + 1);
    const std::string_view number = take_field(rest);
    const std::string_view unit = take_field(rest);
    // A line cut before its unit may have been cut inside its number.
    const bool whole = unit == "kB" || (unit.empty() && key.starts_with("HugePages_"));
    add(table, line_number, line, key, whole ? number : std::string_view());
  });
  return table;
}

KeyedNumbers parse_kstat(std::string_view text) {
  constexpr int kHeaderLines = 2;
  constexpr std::string_view kUnsigned32 = "2";
  constexpr std::string_view kUnsigned64 = "4";
  KeyedNumbers table;
  int line_number = 0;
  for_each_line(text, [&](std::string_view line) {
    if (++line_number <= kHeaderLines) {
      return;
    }
    std::string_view rest = line;
    const std::string_view key = take_field(rest);
    const std::string_view type = take_field(rest);
    if (type == kUnsigned64 || type == kUnsigned32) {
      add(table, line_number, line, key, trim(rest));
    }
  });
  return table;
}

}  // namespace apu
