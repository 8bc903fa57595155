#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "collectors/kernel_log/journal_frame.h"

namespace apu {

/// What a reader found and has not sent yet.
class JournalBatch {
 public:
  explicit JournalBatch(int descriptor) : descriptor_(descriptor) {}

  void add_record(const LogRecord& record);

  void add_plain_line() { ++plain_lines_; }

  void add_trouble(std::string_view what);

  /// Counts an entry that was read. True when it is time to send what there is: it is as much as a
  /// pipe takes, or as old as a sign of life may be.
  bool count_step();

  [[nodiscard]] bool empty() const { return steps_ == 0 && bytes_.empty() && plain_lines_ == 0; }

  /// Sends what there is, which ends at these positions. False when nobody reads.
  bool commit(const JournalPosition& kernel, const JournalPosition& other);

  /// Sends the answer to a sync, after a commit. False when nobody reads.
  bool answer(std::uint64_t sync, const Status& problem);

 private:
  using Steady = std::chrono::steady_clock;

  void flush_lines();
  bool write_bytes();

  int descriptor_;
  std::string bytes_;
  std::uint64_t plain_lines_ = 0;
  unsigned steps_ = 0;
  Steady::time_point begun_ = Steady::now();
};

}  // namespace apu
