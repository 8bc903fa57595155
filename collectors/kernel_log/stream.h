#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "collectors/kernel_log/source.h"
#include "collectors/kernel_log/state.h"
#include "exporter/collector.h"
#include "exporter/descriptor.h"

namespace apu {

/// Follows a kernel log on a thread of its own and folds it into a state.
class KernelLogStream : private LogSink {
 public:
  /// `read_boot_time` is called on the stream's thread, at its start.
  KernelLogStream(std::unique_ptr<LogSource> source, SourceReporter sources,
                  std::function<std::optional<TimePoint>()> read_boot_time);

  /// Stops and joins the thread: for ever, if the log hangs. Destroyed on the collector's worker,
  /// for which nobody waits.
  ~KernelLogStream() override;
  KernelLogStream(const KernelLogStream&) = delete;
  KernelLogStream& operator=(const KernelLogStream&) = delete;

  /// Waits until all that the log holds now is folded in, and returns a copy of the state; or why
  /// the log cannot be read. Blocks for as long as the log does.
  Result<KernelLogState> caught_up_state();

  /// The logs that the source reads, as of the last drain.
  [[nodiscard]] std::vector<LogSourceState> source_states();

 private:
  void run();
  void wait_for_more(std::uint64_t served, bool failed);
  [[nodiscard]] bool is_of_earlier_boot(const std::optional<TimePoint>& time) const;

  void on_record(const LogRecord& record) override;
  void on_loss(std::string_view by, std::uint64_t count) override;
  void on_boot_start() override;
  void on_plain_lines(std::uint64_t count) override;
  void on_unreadable(const std::string& source, const std::string& what) override;

  std::unique_ptr<LogSource> source_;
  SourceReporter sources_;
  std::function<std::optional<TimePoint>()> read_boot_time_;
  std::optional<TimePoint> boot_time_;  // the stream thread's own
  Descriptor wake_;                     // eventfd

  std::mutex mutex_;
  std::condition_variable served_changed_;
  KernelLogState state_;
  Status status_;  // of the last drain
  std::vector<LogSourceState> source_states_;
  std::uint64_t requested_ = 0;  // drains asked for
  std::uint64_t served_ = 0;     // requests that the last drain answered
  bool stopping_ = false;

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace apu
