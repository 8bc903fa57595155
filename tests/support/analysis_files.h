#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "analysis/analysis.h"
#include "analysis/log_reader.h"
#include "exporter/input.h"
#include "tests/support/collector_files.h"

namespace apu {

/// What LogReader makes of `text`, given to it in pieces of `piece` bytes.
inline LogFile read_log_text(std::string_view text, TimePoint now, size_t piece = 1 << 16,
                             const std::string& name = "log") {
  LogReader reader(name, now);
  while (!text.empty()) {
    reader.feed(text.substr(0, piece));
    text.remove_prefix(std::min(piece, text.size()));
  }
  return reader.finish(std::nullopt);
}

inline Analysis analyze_text(std::string_view text, TimePoint now) {
  std::vector<LogFile> files;
  files.push_back(read_log_text(text, now));
  return analyze(std::move(files));
}

inline Analysis analyze_case(const std::string& file, TimePoint now) {
  return analyze_text(read_file(case_path(file)), now);
}

}  // namespace apu
