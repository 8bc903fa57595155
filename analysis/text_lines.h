#pragma once

#include <memory>
#include <string_view>

#include "analysis/log_reader.h"

namespace apu {

/// Lines with stamps, in every form of parse_log_line.
std::unique_ptr<LineParser> make_text_parser(EntryCollector& entries, TimePoint now);

/// Messages of the kernel without stamps.
std::unique_ptr<LineParser> make_bare_parser(EntryCollector& entries);

/// Whether a line of `head`, the start of a file, is of these formats. One of the second has to be
/// a message that counts: any text is lines.
bool looks_like_text(std::string_view head, TimePoint now);
bool looks_like_bare(std::string_view head);

}  // namespace apu
