#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "collectors/kernel_log/journal_query.h"
#include "collectors/kernel_log/record.h"
#include "exporter/result.h"

/// What a reader of the journal sends, as frames: a length of 4 bytes, a type, and what the type
/// says; little endian. A batch of frames ends with a checkpoint and counts as a whole: whoever
/// goes on at the last checkpoint misses nothing and gets nothing twice.
namespace apu {

/// The longest message that is sent; the rest of a longer one is cut off.
constexpr size_t kMaxJournalMessage = size_t{64} << 10;

enum class FrameType : std::uint8_t {
  kRecord = 1,
  kPlainLines = 2,  ///< so many lines of the kernel that stand for nothing
  kTrouble = 3,     ///< an entry, or a file, that could not be read
  kCheckpoint = 4,  ///< all before it belongs together
  kAnswer = 5,      ///< to a sync: all that the journal holds was sent, or why it cannot be read
};

struct Frame {
  FrameType type = FrameType::kRecord;
  LogRecord record;
  std::uint64_t number = 0;          ///< of lines; of the sync that is answered
  std::string_view text;             ///< what the trouble is; why the journal cannot be read
  std::optional<ErrorKind> problem;  ///< of an answer
  JournalPosition kernel_position;   ///< of a checkpoint
  JournalPosition other_position;
};

/// Appends one frame each. A record's since_boot, time, level and user may be missing.
void append_record(std::string& out, const LogRecord& record);
void append_plain_lines(std::string& out, std::uint64_t count);
void append_trouble(std::string& out, std::string_view text);
void append_checkpoint(std::string& out, const JournalPosition& kernel,
                       const JournalPosition& other);
void append_answer(std::string& out, std::uint64_t sync, const Status& problem);

/// Removes the first frame from `bytes`, into which its texts point; nullopt, and nothing removed,
/// if it has not come whole. Errors: kMalformed.
Result<std::optional<Frame>> take_frame(std::string_view& bytes);

}  // namespace apu
