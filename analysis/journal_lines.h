#pragma once

#include <memory>
#include <string_view>

#include "analysis/log_reader.h"

namespace apu {

/// journalctl -o json: an object a line; a field is a string, null (too large), an array of bytes,
/// or an array of those. Prefixes of json-seq and json-sse are taken off.
std::unique_ptr<LineParser> make_json_parser(EntryCollector& entries);

/// journalctl -o export, from which the bytes of a field may hold newlines: the reader hands on
/// what stands between newlines, and the parser joins it again by the field's length.
std::unique_ptr<LineParser> make_export_parser(EntryCollector& entries);

/// Whether `head`, the start of a file, is of these formats.
bool looks_like_json(std::string_view head);
bool looks_like_export(std::string_view head);

}  // namespace apu
