// A line of a kernel log: what the triage waves through counts for nothing.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "collectors/kernel_log/record.h"
#include "collectors/kernel_log/relevance.h"
#include "collectors/kernel_log/state.h"
#include "exporter/text.h"

namespace {

using apu::LineTriage;

void require(bool holds) {
  if (!holds) {
    std::abort();
  }
}

bool counts(const apu::KernelLogState& state) {
  return !state.hogs().empty() || !state.events().empty() || !state.lost().empty() ||
         !state.units().empty() || !state.oom().events().empty() || !state.oom().kills().empty();
}

void check_line(std::string_view line, apu::TimePoint now) {
  const apu::ParsedLine parsed = apu::parse_log_line(line, now);
  const apu::TriagedLine triaged = apu::triage_line(line);
  apu::KernelLogState state;
  if (parsed.kind == apu::LineKind::kRecord) {
    const auto trouble = state.fold(parsed.record, apu::resolve_time(parsed.record, now));
    require(!trouble || apu::may_matter(parsed.record.message));
  }
  if (triaged.triage == LineTriage::kLook) {
    return;
  }
  require(!counts(state));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const apu::TimePoint now = apu::from_unix_seconds(1'790'000'000);
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast)
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  apu::for_each_line(text, [&](std::string_view line) { check_line(line, now); });
  return 0;
}
