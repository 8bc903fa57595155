// A saved log of any format, in two files and in pieces of any size, analysed and printed.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "analysis/analysis.h"
#include "analysis/log_reader.h"
#include "analysis/report.h"

namespace {

apu::LogFile read(std::string_view text, std::size_t piece) {
  apu::LogReader reader("log", apu::from_unix_seconds(1'790'000'000));
  while (!text.empty()) {
    reader.feed(text.substr(0, piece));
    text.remove_prefix(std::min(piece, text.size()));
  }
  return reader.finish(std::nullopt);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) {
    return 0;
  }
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast)
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  std::vector<apu::LogFile> files;
  files.push_back(read(text, text.size() + 1));
  files.push_back(read(text, static_cast<std::size_t>(data[0]) + 1));
  if (files[0].entries.size() != files[1].entries.size() ||
      files[0].unreadable != files[1].unreadable) {
    std::abort();
  }
  const apu::Analysis analysis = apu::analyze(std::move(files));
  static_cast<void>(apu::to_report_text(analysis));
  static_cast<void>(apu::to_report_json(analysis));
  static_cast<void>(apu::to_report_metrics(analysis));
  return 0;
}
