#include "exporter/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace apu {
namespace {

constexpr std::string_view kBlanks = " \t";
constexpr std::string_view kReplacement = "\xef\xbf\xbd";

/// The length of the valid UTF-8 sequence at the start of `text`; 0 if there is none. By hand,
/// since no library at hand does it without pulling in locales: 20 lines after RFC 3629.
size_t utf8_sequence_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) {
    return 1;
  }
  const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) {
    return 0;
  }
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) {
      return 0;
    }
  }
  const unsigned char second = byte(1);
  const bool overlong = (lead == 0xe0 && second < 0xa0) || (lead == 0xf0 && second < 0x90);
  const bool surrogate = lead == 0xed && second >= 0xa0;
  const bool too_large = lead == 0xf4 && second >= 0x90;
  return overlong || surrogate || too_large ? 0 : length;
}

/// Whether it is a byte of a UTF-8 sequence other than the first.
bool is_continuation(char c) {
  return (static_cast<unsigned char>(c) & 0xc0U) == 0x80;
}

/// Removes and returns the first `bytes` of a word, less those of a character that would be cut.
std::string take_start(std::string_view& word, size_t bytes) {
  size_t end = bytes;
  while (end > 1 && is_continuation(word[end])) {
    --end;
  }
  std::string start(word.substr(0, end));
  word.remove_prefix(end);
  return start;
}

bool is_octal(char c) {
  return c >= '0' && c <= '7';
}

/// Whether it is a character that breaks a line, or turns the direction in which text is shown.
bool turns_text(std::string_view sequence) {
  return sequence == "\u061c" || sequence == "\u200e" || sequence == "\u200f" ||
         (sequence >= "\u2028" && sequence <= "\u202e") ||
         (sequence >= "\u2066" && sequence <= "\u2069");
}

bool is_control(std::string_view sequence) {
  const auto lead = static_cast<unsigned char>(sequence[0]);
  const bool c1 = lead == 0xc2 && static_cast<unsigned char>(sequence[1]) < 0xa0;
  return lead < 0x20 || lead == 0x7f || c1 || turns_text(sequence);
}

}  // namespace

std::string_view first_line(std::string_view text) {
  return text.substr(0, text.find('\n'));
}

std::string_view trim(std::string_view text) {
  // By hand: find_first_not_of calls memchr for each byte, and some parsers trim every line.
  const auto is_blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && is_blank(text.front())) {
    text.remove_prefix(1);
  }
  while (!text.empty() && is_blank(text.back())) {
    text.remove_suffix(1);
  }
  return text;
}

std::string_view take_field(std::string_view& rest) {
  const size_t first = rest.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) {
    rest = {};
    return {};
  }
  const size_t end = std::min(rest.find_first_of(kBlanks, first), rest.size());
  const std::string_view field = rest.substr(first, end - first);
  rest.remove_prefix(end);
  return field;
}

std::vector<std::string_view> split_fields(std::string_view line) {
  std::vector<std::string_view> fields;
  for (auto field = take_field(line); !field.empty(); field = take_field(line)) {
    fields.push_back(field);
  }
  return fields;
}

bool consume(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) {
    return false;
  }
  text.remove_prefix(prefix.size());
  return true;
}

std::optional<std::uint64_t> take_unsigned(std::string_view& text) {
  std::uint64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc{}) {
    return std::nullopt;
  }
  text.remove_prefix(static_cast<size_t>(parsed.ptr - text.data()));
  return value;
}

std::string to_valid_utf8(std::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  while (!text.empty()) {
    const size_t length = utf8_sequence_length(text);
    const std::string_view sequence = text.substr(0, length);
    if (length == 0) {
      valid += kReplacement;
    } else if (is_control(sequence)) {
      valid += ' ';
    } else {
      valid += sequence;
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return valid;
}

std::string unescape_octal(std::string_view text) {
  std::string plain;
  while (!text.empty()) {
    const bool escaped = text.size() >= 4 && text[0] == '\\' && is_octal(text[1]) &&
                         is_octal(text[2]) && is_octal(text[3]);
    if (escaped) {
      plain += static_cast<char>((text[1] - '0') * 64 + (text[2] - '0') * 8 + (text[3] - '0'));
    } else {
      plain += text[0];
    }
    text.remove_prefix(escaped ? 4 : 1);
  }
  return plain;
}

std::string cut_text(std::string_view text, size_t width) {
  constexpr std::string_view kMark = "...";
  std::string plain = to_valid_utf8(text);
  if (plain.size() <= width) {
    return plain;
  }
  size_t end = width - kMark.size();
  while (end > 0 && is_continuation(plain[end])) {
    --end;  // a character is left out as a whole
  }
  return plain.substr(0, end).append(kMark);
}

void append_wrapped(std::string& out, size_t width, std::string_view first, std::string_view text) {
  std::string line(first);
  const std::string indent(first.size(), ' ');
  bool empty = true;
  for (std::string_view word = take_field(text); !word.empty(); word = take_field(text)) {
    for (const size_t room = width - std::min(width - 1, indent.size()); word.size() > room;) {
      out.append(line).append(empty ? "" : "\n" + indent);
      out.append(take_start(word, room)).append("\n");
      line = indent;
      empty = true;
    }
    if (!empty && line.size() + 1 + word.size() > width) {
      out += line + "\n";
      line = indent;
      empty = true;
    }
    line += (empty ? "" : " ");
    line += word;
    empty = false;
  }
  out += line + "\n";
}

std::string number_of(std::uint64_t number, std::string_view noun) {
  return fmt::format("{} {}{}", number, noun, number == 1 ? "" : "s");
}

std::string escape_html(std::string_view text) {
  std::string escaped;
  escaped.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

}  // namespace apu
