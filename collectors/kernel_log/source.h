#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/kernel_log/record.h"
#include "exporter/result.h"

namespace apu {

/// Takes what a source reads, in the log's order.
class LogSink {
 public:
  virtual ~LogSink() = default;
  virtual void on_record(const LogRecord& record) = 0;

  /// `count` records were lost before the next one.
  virtual void on_loss(std::string_view by, std::uint64_t count) = 0;

  /// The next record is the first of this boot.
  virtual void on_boot_start() = 0;

  /// `count` lines of the kernel that stand for nothing: see may_matter.
  virtual void on_plain_lines(std::uint64_t count) = 0;

  /// A line of `source` that could not be read; `what` names file and line.
  virtual void on_unreadable(const std::string& source, const std::string& what) = 0;
};

/// Whether one log can be read.
struct LogSourceState {
  std::string name;  ///< label value of apu_source_available
  Status status;
};

/// A kernel log that grows.
class LogSource {
 public:
  virtual ~LogSource() = default;

  /// Label value of apu_source_available; of several logs, of that which has the kernel's records.
  [[nodiscard]] virtual std::string name() const = 0;

  /// Reads all that is there now and was not read before. Errors: why the log cannot be read now;
  /// a later call tries again.
  virtual Status drain(LogSink& sink) = 0;

  /// Descriptors of which one polls readable when there is more; none if the source must be asked.
  [[nodiscard]] virtual std::vector<int> poll_descriptors() const = 0;

  /// The logs that it reads, after a drain that returned `drained`.
  [[nodiscard]] virtual std::vector<LogSourceState> states(const Status& drained) const {
    return {{name(), drained}};
  }
};

/// /dev/kmsg, from its oldest record on. Gaps in the sequence are counted exactly.
std::unique_ptr<LogSource> make_kmsg_source(const std::filesystem::path& device);

/// read(2) on an open /dev/kmsg: one record a call; negative, with errno set, where there is none.
using ReadRecord = std::function<ssize_t(std::span<char> buffer)>;

/// The same from what `read` gives; `device` is its name in messages. Cannot be polled.
std::unique_ptr<LogSource> make_kmsg_source(const std::filesystem::path& device, ReadRecord read);

/// A file in any format of parse_log_line, followed over rotation as `tail -F` does. Opening a
/// FIFO blocks, as opening a file of a hung file system would.
std::unique_ptr<LogSource> make_file_source(const std::filesystem::path& file,
                                            std::shared_ptr<const Clock> clock);

/// Standard input, until its end.
std::unique_ptr<LogSource> make_stdin_source(std::shared_ptr<const Clock> clock);

}  // namespace apu
