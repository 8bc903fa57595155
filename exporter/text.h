#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace apu {

/// Calls `visit(line)` for each line of `text`, without its newline. A final newline makes no
/// empty last line; a last line without one is visited too.
template <typename Visit>
void for_each_line(std::string_view text, Visit visit) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    visit(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
}

/// `text` up to its first newline.
std::string_view first_line(std::string_view text);

/// Blanks and TABs at both ends removed.
std::string_view trim(std::string_view text);

/// The fields of `line` that blanks or TABs separate.
std::vector<std::string_view> split_fields(std::string_view line);

/// Removes and returns the first field of `rest`, empty if there is none.
std::string_view take_field(std::string_view& rest);

/// Removes `prefix` from `text` if it starts with it.
bool consume(std::string_view& text, std::string_view prefix);

/// The whole of `text` as a decimal number; nullopt if it is none, or does not fit.
template <typename Number>
std::optional<Number> parse_number(std::string_view text) {
  Number value{};
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  if (parsed.ec != std::errc{} || parsed.ptr != end) {
    return std::nullopt;
  }
  return value;
}

/// Removes leading decimal digits from `text` and returns their value; nullopt, and nothing
/// removed, if there are none or they do not fit.
std::optional<std::uint64_t> take_unsigned(std::string_view& text);

/// `text` with each byte that is no valid UTF-8 replaced by U+FFFD, and control characters by
/// blanks. One bad byte in a label makes Prometheus reject the whole scrape.
std::string to_valid_utf8(std::string_view text);

/// Resolves "\\NNN", by which the kernel writes blanks, TABs, newlines and backslashes in names.
std::string unescape_octal(std::string_view text);

/// As to_valid_utf8, and what does not fit into `width` bytes, of 3 at least, is "...".
std::string cut_text(std::string_view text, size_t width);

/// Adds `text` to `out`, broken into lines of at most `width` bytes, inside a word only where it is
/// longer than a line. The first line starts with `first`, the others with as many blanks.
void append_wrapped(std::string& out, size_t width, std::string_view first, std::string_view text);

/// "1 line", "2 lines".
std::string number_of(std::uint64_t number, std::string_view noun);

/// `text` made fit for HTML text and attribute values.
std::string escape_html(std::string_view text);

}  // namespace apu
