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

#include "collectors/kernel_log/position.h"
#include "collectors/kernel_log/saved_state.h"
#include "collectors/kernel_log/source.h"
#include "collectors/kernel_log/state.h"
#include "exporter/collector.h"
#include "exporter/descriptor.h"

namespace apu {

/// What a log says up to now, and how far that is.
struct CaughtUpLog {
  KernelLogState state;
  LogPosition position;
};

/// Follows a kernel log on a thread of its own and folds it into a state.
class KernelLogStream : private LogSink {
 public:
  /// `read_boot_time` is called on the stream's thread, at its start. `saved` is what an earlier
  /// stream of this boot saw: if the log does not reach back to the boot, it is gone on from there.
  KernelLogStream(std::unique_ptr<LogSource> source, SourceReporter sources,
                  std::function<std::optional<TimePoint>()> read_boot_time,
                  std::optional<SavedState> saved = std::nullopt);

  /// Stops and joins the thread: for ever, if the log hangs. Destroyed on the collector's worker,
  /// for which nobody waits.
  ~KernelLogStream() override;
  KernelLogStream(const KernelLogStream&) = delete;
  KernelLogStream& operator=(const KernelLogStream&) = delete;

  /// Waits until all that the log holds now is folded in, and returns a copy of the state; or why
  /// the log cannot be read. Blocks for as long as the log does.
  Result<CaughtUpLog> caught_up();

  /// The logs that the source reads, as of the last drain.
  [[nodiscard]] std::vector<LogSourceState> source_states();

 private:
  /// A saved state, and what of the log comes after it.
  struct ResumedLog {
    explicit ResumedLog(SavedState saved) : log(std::move(saved.log)), filter(saved.position) {}

    KernelLogState log;
    PositionFilter filter;
    bool past_saved = false;  ///< the last record was after it
  };

  void run();
  void wait_for_more(std::uint64_t served, bool failed);
  [[nodiscard]] bool is_of_earlier_boot(const std::optional<TimePoint>& time) const;

  void begin_with_boot();
  void follow_position(const LogRecord& record, std::optional<TimePoint> time);
  void take_up_saved_state();

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
  LogPosition position_;
  std::optional<ResumedLog> resumed_;  // until the log was read once
  Status status_;                      // of the last drain
  std::vector<LogSourceState> source_states_;
  std::uint64_t requested_ = 0;  // drains asked for
  std::uint64_t served_ = 0;     // requests that the last drain answered
  bool stopping_ = false;

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace apu
