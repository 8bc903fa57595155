#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "collectors/parsers/problem.h"
#include "exporter/sources.h"

namespace apu {

/// Counts each of `problems`, met in `file`, as a parse error of `source`.
inline void report_problems(const SourceReporter& sources, const std::string& source,
                            std::string_view file, const Problems& problems) {
  for (const Problem& problem : problems) {
    sources.parse_error(source, fmt::format("{}:{}: {}", file, problem.line, problem.what));
  }
}

}  // namespace apu
