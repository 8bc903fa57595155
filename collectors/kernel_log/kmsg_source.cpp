#include <fcntl.h>
#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <optional>
#include <utility>

#include "collectors/kernel_log/source.h"
#include "exporter/descriptor.h"
#include "exporter/text.h"

namespace apu {
namespace {

// The kernel's largest record; a smaller buffer gives EINVAL and loses the record.
constexpr size_t kRecordBytes = 8192;

class KmsgSource : public LogSource {
 public:
  KmsgSource(std::filesystem::path device, ReadRecord read)
      : device_(std::move(device)), read_(std::move(read)) {}

  [[nodiscard]] std::string name() const override { return "kmsg"; }

  Status drain(LogSink& sink) override {
    if (!read_) {
      if (Status error = open()) {
        return error;
      }
    }
    std::array<char, kRecordBytes> buffer{};
    while (true) {
      const ssize_t count = read_(buffer);
      if (count > 0) {
        take({buffer.data(), static_cast<size_t>(count)}, sink);
      } else if (count == 0) {
        // The log of a kernel has no end. Containers put /dev/null in its place.
        return Error{ErrorKind::kUnsupported,
                     fmt::format("read {}: it ends, so it is no kernel log", device_.string())};
      } else if (errno == EAGAIN) {
        return std::nullopt;
      } else if (errno == EINVAL) {
        sink.on_unreadable(
            name(), fmt::format("{}: a record over {} bytes", device_.string(), kRecordBytes));
      } else if (errno != EPIPE &&
                 errno != EINTR) {  // EPIPE: overrun; the next sequence says by how much
        return error_from_errno(errno, "read " + device_.string());
      }
    }
  }

  [[nodiscard]] std::vector<int> poll_descriptors() const override {
    return file_.valid() ? std::vector{file_.get()} : std::vector<int>();
  }

 private:
  Status open() {
    file_ = Descriptor(::open(device_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    if (!file_.valid()) {
      return error_from_errno(errno, "open " + device_.string());
    }
    read_ = [this](std::span<char> buffer) {
      return ::read(file_.get(), buffer.data(), buffer.size());
    };
    return std::nullopt;
  }

  void take(std::string_view text, LogSink& sink) {
    const std::string_view line = first_line(text);
    const ParsedLine parsed = parse_log_line(line, TimePoint());
    if (parsed.kind != LineKind::kRecord || !parsed.record.sequence) {
      sink.on_unreadable(name(), fmt::format("{}: after record {}: not a record: '{}'",
                                             device_.string(), next_.value_or(0), line));
      return;
    }
    const std::uint64_t sequence = *parsed.record.sequence;
    if (!next_ && sequence == 0) {
      sink.on_boot_start();
    }
    if (next_ && sequence > *next_) {
      sink.on_loss("kmsg_overrun", sequence - *next_);
    }
    next_ = sequence + 1;
    LogRecord record = parsed.record;
    const std::string plain = unescape_kmsg(record.message);
    record.message = plain;
    sink.on_record(record);
  }

  std::filesystem::path device_;
  ReadRecord read_;  // empty until the device is open
  Descriptor file_;
  std::optional<std::uint64_t> next_;  // the sequence that comes next if nothing is lost
};

}  // namespace

std::unique_ptr<LogSource> make_kmsg_source(const std::filesystem::path& device) {
  return make_kmsg_source(device, {});
}

std::unique_ptr<LogSource> make_kmsg_source(const std::filesystem::path& device, ReadRecord read) {
  return std::make_unique<KmsgSource>(device, std::move(read));
}

}  // namespace apu
