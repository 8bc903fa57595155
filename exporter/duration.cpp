#include "exporter/duration.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "exporter/text.h"

namespace apu {
namespace {

using std::chrono::milliseconds;

constexpr std::uint64_t kMaxMilliseconds = 10ULL * 366 * 24 * 3600 * 1000;

// "ms" before "m", so that the longer unit is tried first.
constexpr std::array<std::pair<std::string_view, std::uint64_t>, 4> kUnits{
    {{"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}}};

/// Removes a unit from `text` and returns its length in milliseconds, 0 if there is none.
std::uint64_t take_unit(std::string_view& text) {
  for (const auto& [unit, length] : kUnits) {
    if (consume(text, unit)) {
      return length;
    }
  }
  return 0;
}

Error malformed(std::string_view text) {
  return {ErrorKind::kMalformed,
          fmt::format("'{}' is not a duration (write 15s, 1m30s, 500ms)", text)};
}

}  // namespace

Result<milliseconds> parse_duration(std::string_view text) {
  std::string_view rest = text;
  std::uint64_t total = 0;
  do {
    const auto number = take_unsigned(rest);
    const std::uint64_t unit = number ? take_unit(rest) : 0;
    if (unit == 0 || *number > kMaxMilliseconds / unit) {
      return malformed(text);
    }
    total += *number * unit;
  } while (!rest.empty() && total <= kMaxMilliseconds);
  if (total > kMaxMilliseconds) {
    return malformed(text);
  }
  return milliseconds(total);
}

std::string format_duration(milliseconds duration) {
  std::string text;
  auto rest = static_cast<std::uint64_t>(duration.count());
  for (const auto& [unit, length] : {std::pair<std::string_view, std::uint64_t>{"h", 3'600'000},
                                     {"m", 60'000},
                                     {"s", 1000},
                                     {"ms", 1}}) {
    if (rest >= length) {
      text += fmt::format("{}{}", rest / length, unit);
      rest %= length;
    }
  }
  return text.empty() ? "0s" : text;
}

}  // namespace apu
