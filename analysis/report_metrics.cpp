#include <algorithm>

#include "analysis/report.h"
#include "collectors/kernel_log/kernel_log.h"
#include "exporter/exposition.h"
#include "exporter/sources.h"

namespace apu {
namespace {

constexpr const char* kCollector = "kernel_log";
constexpr const char* kSource = "log_file";

Families log_families(const BootAnalysis& boot) {
  KernelLogFacts facts;
  facts.log = boot.log;
  Families families = to_families(facts, boot.last_time.value_or(TimePoint()));
  if (boot.times_are_uptime) {
    std::erase_if(families, [](const prometheus::MetricFamily& family) {
      return family.name.ends_with("_timestamp_seconds");
    });
  }
  return families;
}

Families source_families(const Analysis& analysis) {
  SourceBoard board;
  board.expect_parse_errors(kSource);
  for (const LogFile& file : analysis.files) {
    if (file.failure) {
      board.set_unavailable(kCollector, kSource, file.failure->kind);
    } else {
      board.set_available(kCollector, kSource);
    }
    for (std::uint64_t i = 0; i < file.unreadable; ++i) {
      static_cast<void>(board.count_parse_error(kSource, {}));
    }
  }
  return board.families();
}

}  // namespace

std::string to_report_metrics(const Analysis& analysis) {
  const Families sources = source_families(analysis);
  const Families log = analysis.boots.empty() ? Families() : log_families(analysis.boots.back());
  return to_text(merge_families({&sources, &log}).families);
}

}  // namespace apu
