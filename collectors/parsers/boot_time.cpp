#include "collectors/parsers/boot_time.h"

#include <optional>

#include "exporter/text.h"

namespace apu {

Result<TimePoint> parse_boot_time(std::string_view text) {
  constexpr std::uint64_t kLatest = 9'000'000'000;  // the year 2255; the clock's type ends in 2262
  std::optional<std::uint64_t> seconds;
  for_each_line(text, [&](std::string_view line) {
    if (consume(line, "btime ")) {
      seconds = parse_number<std::uint64_t>(trim(line));
    }
  });
  if (!seconds || *seconds > kLatest) {
    return Error{ErrorKind::kMalformed, "stat: no btime line with a number"};
  }
  return from_unix_seconds(static_cast<double>(*seconds));
}

Result<TimePoint> read_boot_time(const FileRoot& procfs) {
  const auto text = procfs.read("stat");
  return text ? parse_boot_time(*text) : Result<TimePoint>(text.error());
}

}  // namespace apu
