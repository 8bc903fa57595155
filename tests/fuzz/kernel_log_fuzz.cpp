// A whole log folded into a state, the state written down and taken up again: nothing is lost.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "collectors/kernel_log/kernel_log.h"
#include "collectors/kernel_log/record.h"
#include "collectors/kernel_log/saved_state.h"
#include "exporter/exposition.h"
#include "exporter/text.h"

namespace {

std::string page_of(const apu::KernelLogState& log, apu::TimePoint now) {
  apu::KernelLogFacts facts;
  facts.log = log;
  const apu::Families families = apu::to_families(facts, now);
  return apu::to_text(apu::merge_families({&families}).families);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const apu::TimePoint now = apu::from_unix_seconds(1'790'000'000);
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast)
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  apu::SavedState saved;
  apu::for_each_line(text, [&](std::string_view line) {
    const apu::ParsedLine parsed = apu::parse_log_line(line, now);
    if (parsed.kind == apu::LineKind::kRecord) {
      const auto time = apu::resolve_time(parsed.record, now);
      saved.log.fold(parsed.record, time);
      saved.position.pass(parsed.record, time);
    }
  });
  const auto again = apu::parse_saved_state(apu::to_text(saved));
  if (!again || page_of(again->log, now) != page_of(saved.log, now)) {
    std::abort();
  }
  return 0;
}
