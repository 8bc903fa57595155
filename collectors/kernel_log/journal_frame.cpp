#include "collectors/kernel_log/journal_frame.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace apu {
namespace {

constexpr size_t kLengthBytes = 4;
constexpr size_t kMaxFrame = 2 * kMaxJournalMessage;
constexpr std::int64_t kAbsent = -1;  // of numbers that are never negative

void append_number(std::string& out, std::uint64_t number, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) {
    out += static_cast<char>((number >> (8 * i)) & 0xFF);
  }
}

void append_signed(std::string& out, std::int64_t number) {
  append_number(out, static_cast<std::uint64_t>(number), 8);
}

void append_text(std::string& out, std::string_view text) {
  const std::string_view kept = text.substr(0, kMaxJournalMessage);
  append_number(out, kept.size(), 4);
  out += kept;
}

/// Writes the length of a frame once its body is complete.
class FrameScope {
 public:
  FrameScope(std::string& out, FrameType type) : out_(out), start_(out.size()) {
    out_.append(kLengthBytes, '\0');
    out_ += static_cast<char>(type);
  }

  ~FrameScope() {
    const size_t length = out_.size() - start_ - kLengthBytes;
    for (size_t i = 0; i < kLengthBytes; ++i) {
      out_[start_ + i] = static_cast<char>((length >> (8 * i)) & 0xFF);
    }
  }

  FrameScope(const FrameScope&) = delete;
  FrameScope& operator=(const FrameScope&) = delete;

 private:
  std::string& out_;
  size_t start_;
};

/// Takes the body of a frame apart; `ok` is false once it was too short.
struct Body {
  std::string_view rest;
  bool ok = true;

  std::uint64_t number(size_t bytes) {
    if (rest.size() < bytes) {
      ok = false;
      return 0;
    }
    std::uint64_t value = 0;
    for (size_t i = 0; i < bytes; ++i) {
      value |= std::uint64_t{static_cast<unsigned char>(rest[i])} << (8 * i);
    }
    rest.remove_prefix(bytes);
    return value;
  }

  /// Microseconds; nullopt for kAbsent, and for what no clock has: a journal may be damaged.
  std::optional<std::chrono::microseconds> stamp() {
    constexpr std::int64_t kLatest = 9'000'000'000'000'000;  // in the year 2255
    const auto value = static_cast<std::int64_t>(number(8));
    return value >= 0 && value <= kLatest ? std::optional(std::chrono::microseconds(value))
                                          : std::nullopt;
  }

  std::string_view text() {
    const size_t size = number(4);
    if (!ok || rest.size() < size) {
      ok = false;
      return {};
    }
    const std::string_view value = rest.substr(0, size);
    rest.remove_prefix(size);
    return value;
  }
};

JournalPosition take_position(Body& body) {
  const bool unread = body.number(1) != 0;
  return {std::string(body.text()), unread};
}

void append_position(std::string& out, const JournalPosition& position) {
  append_number(out, position.unread ? 1 : 0, 1);
  append_text(out, position.cursor);
}

LogRecord take_record(Body& body) {
  LogRecord record;
  const std::uint64_t origin = body.number(1);
  body.ok = body.ok && origin <= static_cast<std::uint64_t>(Origin::kUserspace);
  record.origin = static_cast<Origin>(origin);
  const std::uint64_t level = body.number(1);
  record.level = level <= 7 ? std::optional(static_cast<int>(level)) : std::nullopt;
  record.since_boot = body.stamp();
  if (const auto time = body.stamp()) {
    record.time = TimePoint(*time);
  }
  record.user = body.text();
  record.message = body.text();
  return record;
}

constexpr std::uint64_t kNoProblem = 0xFF;

std::optional<ErrorKind> take_problem(Body& body) {
  const std::uint64_t kind = body.number(1);
  if (kind == kNoProblem) {
    return std::nullopt;
  }
  body.ok = body.ok && kind <= static_cast<std::uint64_t>(ErrorKind::kUnknown);
  return static_cast<ErrorKind>(kind);
}

bool parse_body(Body& body, Frame& frame) {
  frame.type = static_cast<FrameType>(body.number(1));
  switch (frame.type) {
    case FrameType::kRecord:
      frame.record = take_record(body);
      break;
    case FrameType::kPlainLines:
      frame.number = body.number(8);
      break;
    case FrameType::kTrouble:
      frame.text = body.text();
      break;
    case FrameType::kCheckpoint:
      frame.kernel_position = take_position(body);
      frame.other_position = take_position(body);
      break;
    case FrameType::kAnswer:
      frame.number = body.number(8);
      frame.problem = take_problem(body);
      frame.text = body.text();
      break;
    default:
      return false;
  }
  return body.ok && body.rest.empty();
}

}  // namespace

void append_record(std::string& out, const LogRecord& record) {
  constexpr std::uint64_t kNoLevel = 0xFF;
  const FrameScope frame(out, FrameType::kRecord);
  append_number(out, static_cast<std::uint64_t>(record.origin), 1);
  append_number(out, record.level ? static_cast<std::uint64_t>(*record.level) : kNoLevel, 1);
  append_signed(out, record.since_boot ? record.since_boot->count() : kAbsent);
  append_signed(out, record.time ? std::chrono::duration_cast<std::chrono::microseconds>(
                                       record.time->time_since_epoch())
                                       .count()
                                 : kAbsent);
  append_text(out, record.user);
  append_text(out, record.message);
}

void append_plain_lines(std::string& out, std::uint64_t count) {
  const FrameScope frame(out, FrameType::kPlainLines);
  append_number(out, count, 8);
}

void append_trouble(std::string& out, std::string_view text) {
  const FrameScope frame(out, FrameType::kTrouble);
  append_text(out, text);
}

void append_checkpoint(std::string& out, const JournalPosition& kernel,
                       const JournalPosition& other) {
  const FrameScope frame(out, FrameType::kCheckpoint);
  append_position(out, kernel);
  append_position(out, other);
}

void append_answer(std::string& out, std::uint64_t sync, const Status& problem) {
  const FrameScope frame(out, FrameType::kAnswer);
  append_number(out, sync, 8);
  append_number(out, problem ? static_cast<std::uint64_t>(problem->kind) : kNoProblem, 1);
  append_text(out, problem ? std::string_view(problem->message) : std::string_view());
}

Result<std::optional<Frame>> take_frame(std::string_view& bytes) {
  if (bytes.size() < kLengthBytes) {
    return std::optional<Frame>();
  }
  Body header{bytes};
  const size_t length = header.number(kLengthBytes);
  if (length == 0 || length > kMaxFrame) {
    return Error{ErrorKind::kMalformed, fmt::format("a frame of {} bytes", length)};
  }
  if (header.rest.size() < length) {
    return std::optional<Frame>();
  }
  Body body{header.rest.substr(0, length)};
  Frame frame;
  if (!parse_body(body, frame)) {
    return Error{ErrorKind::kMalformed, "a frame that is none"};
  }
  bytes.remove_prefix(kLengthBytes + length);
  return std::optional(std::move(frame));
}

}  // namespace apu
