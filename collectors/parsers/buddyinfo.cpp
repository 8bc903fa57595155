#include "collectors/parsers/buddyinfo.h"

#include <fmt/format.h>

#include <optional>

#include "exporter/text.h"

namespace apu {
namespace {

std::optional<std::uint64_t> huge_blocks_of(std::string_view row) {
  constexpr size_t kFirstOrderColumn = 4;  // after "Node", "0,", "zone", "Normal"
  constexpr size_t kHugeOrder = 9;
  const auto fields = split_fields(row);
  constexpr size_t kMostOrders = 64;  // so that no count is shifted out of its type
  const bool whole = fields.size() > kFirstOrderColumn + kHugeOrder &&
                     fields.size() <= kFirstOrderColumn + kMostOrders;
  if (!whole || fields[0] != "Node" || fields[2] != "zone") {
    return std::nullopt;
  }
  std::uint64_t blocks = 0;
  for (size_t order = 0; order + kFirstOrderColumn < fields.size(); ++order) {
    const auto count = parse_number<std::uint64_t>(fields[order + kFirstOrderColumn]);
    if (!count) {
      return std::nullopt;
    }
    if (order >= kHugeOrder) {
      blocks += *count << (order - kHugeOrder);
    }
  }
  return blocks;
}

}  // namespace

Buddyinfo parse_buddyinfo(std::string_view text) {
  Buddyinfo info;
  int line_number = 0;
  for_each_line(text, [&](std::string_view line) {
    ++line_number;
    if (const auto blocks = huge_blocks_of(line)) {
      info.free_huge_blocks += *blocks;
    } else {
      info.problems.push_back({line_number, fmt::format("not a zone's free blocks: '{}'", line)});
    }
  });
  if (line_number == 0) {
    info.problems.push_back({1, "no zone"});
  }
  return info;
}

}  // namespace apu
