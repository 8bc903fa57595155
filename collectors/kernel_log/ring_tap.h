#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "collectors/kernel_log/journal_query.h"
#include "collectors/kernel_log/source.h"

namespace apu {

/// Reads the records of the kernel between the bounds of `wanted` into the sink.
using ReadKernelRange = std::function<Status(const JournalQuery& wanted, LogSink& sink)>;

/// Stands between the source of the kernel's ring and the sink, and has the gaps filled: what the
/// ring had lost before its first record, and what was overwritten before it was read.
class RingTap : public LogSink {
 public:
  explicit RingTap(ReadKernelRange read) : read_(std::move(read)) {}

  /// Where the records of the next drain go.
  void set_sink(LogSink& sink) { sink_ = &sink; }

  /// The ring is drained: hands on what waited for more.
  void end_drain() { release(); }

  [[nodiscard]] bool saw_record() const { return saw_record_; }

  void on_record(const LogRecord& record) override;
  void on_loss(std::string_view by, std::uint64_t count) override;
  void on_boot_start() override;
  void on_plain_lines(std::uint64_t count) override;
  void on_unreadable(const std::string& source, const std::string& what) override;

 private:
  struct Held {
    LogRecord record;
    std::string message;
  };

  void hold(const LogRecord& record);
  void release();
  void fill_gap(std::chrono::microseconds until);

  ReadKernelRange read_;
  LogSink* sink_ = nullptr;
  bool saw_record_ = false;
  bool saw_boot_start_ = false;
  std::vector<Held> held_;  // the first records, while all are of one time
  std::uint64_t lost_ = 0;  // before the next record
  std::optional<std::chrono::microseconds> last_stamp_;
  std::chrono::steady_clock::time_point next_fill_;
};

}  // namespace apu
