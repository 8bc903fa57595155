#include "collectors/parsers/zram.h"

#include <fmt/format.h>

#include <utility>

#include "exporter/text.h"

namespace apu {
namespace {

bool is_zram_name(std::string_view name) {
  return consume(name, "zram") && parse_number<unsigned>(name).has_value();
}

}  // namespace

Result<std::uint64_t> parse_zram_memory_used(std::string_view text) {
  constexpr size_t kMemoryUsedColumn = 2;
  const auto fields = split_fields(first_line(text));
  if (fields.size() > kMemoryUsedColumn) {
    if (const auto value = parse_number<std::uint64_t>(fields[kMemoryUsedColumn])) {
      return *value;
    }
  }
  return Error{ErrorKind::kMalformed, fmt::format("mm_stat:1: no third number in '{}'", text)};
}

Result<std::vector<ZramUsage>> read_zram_usage(const FileRoot& sysfs) {
  const auto names = sysfs.list("block");
  if (!names) {
    return names.error();
  }
  std::vector<ZramUsage> devices;
  for (const std::string& name : *names) {
    if (!is_zram_name(name)) {
      continue;
    }
    const auto text = sysfs.read("block/" + name + "/mm_stat");
    if (!text && text.error().kind == ErrorKind::kNotFound) {
      continue;
    }
    const auto used = text ? parse_zram_memory_used(*text) : Result<std::uint64_t>(text.error());
    if (!used) {
      return Error{used.error().kind, fmt::format("block/{}/{}", name, used.error().message)};
    }
    devices.push_back({name, *used});
  }
  return devices;
}

}  // namespace apu
