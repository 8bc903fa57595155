#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// What a guarded reader and its helper say to each other. Both are the same program on the same
/// machine, so numbers stand in its own byte order.
namespace apu {

/// A file that the helper is to read.
struct GuardedRequest {
  std::uint32_t id = 0;
  std::uint32_t max_bytes = 0;  ///< a longer file is EFBIG
  std::string_view path;
};

/// What the helper read.
struct GuardedAnswer {
  std::uint32_t id = 0;
  std::uint32_t error = 0;  ///< errno, 0 if it was read whole
  std::string_view content;
};

/// The id of the answer that the helper gives once, unasked, when it has started.
constexpr std::uint32_t kStartedId = 0xFFFFFFFF;

void append_request(std::string& out, const GuardedRequest& request);
void append_answer(std::string& out, const GuardedAnswer& answer);

/// How many bytes append_request adds.
size_t request_size(std::string_view path);

/// Removes the first message from `bytes`, into which its text points; nullopt, and nothing
/// removed, if it has not come whole.
std::optional<GuardedRequest> take_request(std::string_view& bytes);
std::optional<GuardedAnswer> take_answer(std::string_view& bytes);

}  // namespace apu
