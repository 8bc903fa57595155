#include "exporter/guarded_protocol.h"

#include <cstring>

namespace apu {
namespace {

/// What stands before the text of a message: id, number (max_bytes or error), size of the text.
struct Header {
  std::uint32_t id = 0;
  std::uint32_t number = 0;
  std::uint32_t size = 0;
};

void append(std::string& out, const Header& header, std::string_view text) {
  const size_t start = out.size();
  out.resize(start + sizeof header);
  std::memcpy(out.data() + start, &header, sizeof header);
  out += text;
}

std::optional<Header> take(std::string_view& bytes, std::string_view& text) {
  Header header;
  if (bytes.size() < sizeof header) {
    return std::nullopt;
  }
  std::memcpy(&header, bytes.data(), sizeof header);
  if (bytes.size() - sizeof header < header.size) {
    return std::nullopt;
  }
  text = bytes.substr(sizeof header, header.size);
  bytes.remove_prefix(sizeof header + header.size);
  return header;
}

}  // namespace

void append_request(std::string& out, const GuardedRequest& request) {
  append(out, {request.id, request.max_bytes, static_cast<std::uint32_t>(request.path.size())},
         request.path);
}

void append_answer(std::string& out, const GuardedAnswer& answer) {
  append(out, {answer.id, answer.error, static_cast<std::uint32_t>(answer.content.size())},
         answer.content);
}

size_t request_size(std::string_view path) {
  return sizeof(Header) + path.size();
}

std::optional<GuardedRequest> take_request(std::string_view& bytes) {
  std::string_view text;
  const auto header = take(bytes, text);
  return header ? std::optional(GuardedRequest{header->id, header->number, text}) : std::nullopt;
}

std::optional<GuardedAnswer> take_answer(std::string_view& bytes) {
  std::string_view text;
  const auto header = take(bytes, text);
  return header ? std::optional(GuardedAnswer{header->id, header->number, text}) : std::nullopt;
}

}  // namespace apu
