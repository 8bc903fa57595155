#include "collectors/parsers/driver_number.h"

#include "exporter/text.h"

namespace apu {

std::optional<std::uint64_t> parse_bare_number(std::string_view text) {
  constexpr std::uint64_t kWrapped = std::uint64_t{1} << 63U;
  const auto value = parse_number<std::uint64_t>(text);
  return value && *value < kWrapped ? value : std::nullopt;
}

std::optional<std::uint64_t> parse_driver_number(std::string_view text) {
  if (!text.ends_with('\n')) {
    return std::nullopt;
  }
  text.remove_suffix(1);
  return parse_bare_number(text);
}

std::optional<std::uint32_t> parse_pci_id(std::string_view text) {
  if (!consume(text, "0x") || !text.ends_with('\n')) {
    return std::nullopt;
  }
  constexpr int kHexadecimal = 16;
  std::uint32_t value = 0;
  const char* end = text.data() + text.size() - 1;
  const auto parsed = std::from_chars(text.data(), end, value, kHexadecimal);
  return parsed.ec == std::errc{} && parsed.ptr == end ? std::optional(value) : std::nullopt;
}

}  // namespace apu
