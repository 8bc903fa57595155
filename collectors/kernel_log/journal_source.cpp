#include "collectors/kernel_log/journal_source.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "collectors/kernel_log/journal_frame.h"
#include "exporter/helper_process.h"

namespace apu {
namespace {

using Steady = std::chrono::steady_clock;

constexpr const char* kName = "journal";

// A reader that ends so often without having got any further is not started again at once.
constexpr unsigned kMaxCrashes = 3;

constexpr std::chrono::seconds kEndWait{1};
constexpr size_t kReadBytes = size_t{64} << 10;

class JournalSource : public LogSource {
 public:
  JournalSource(JournalQuery query, JournalReaderSettings settings)
      : query_(std::move(query)), settings_(std::move(settings)) {}

  [[nodiscard]] std::string name() const override { return kName; }

  Status drain(LogSink& sink) override {
    while (true) {
      if (Status error = ensure_reader()) {
        return error;
      }
      switch (receive(sink)) {
        case Received::kMore:
          break;
        case Received::kNothingYet:
        case Received::kAnswer:
        case Received::kFailed:
          return problem_;
      }
    }
  }

  [[nodiscard]] std::vector<int> poll_descriptors() const override {
    return reader_ ? std::vector{reader_->output()} : std::vector<int>();
  }

 private:
  enum class Received {
    kMore,        ///< go on
    kNothingYet,  ///< and nobody waits
    kAnswer,      ///< problem_ says what it was
    kFailed,      ///< problem_ says why
  };

  Status ensure_reader() {
    if (!reader_) {
      if (Steady::now() < retry_at_) {
        return problem_;
      }
      auto started = HelperProcess::start(settings_.program, to_arguments(query_));
      if (!started) {
        give_up(started.error());
        return problem_;
      }
      reader_ = *std::move(started);
      last_byte_ = Steady::now();
      advanced_ = false;
    }
    if (!awaits_answer_) {
      ask();
    }
    return std::nullopt;
  }

  /// A reader that has ended is noticed when its answer is read.
  void ask() {
    constexpr size_t kBytes = 8;
    std::string bytes;
    ++sync_;
    for (size_t i = 0; i < kBytes; ++i) {
      bytes += static_cast<char>((sync_ >> (8 * i)) & 0xFF);
    }
    (void)reader_->send(bytes);
    awaits_answer_ = true;
    last_byte_ = Steady::now();
  }

  Received receive(LogSink& sink) {
    const auto silent_at = last_byte_ + settings_.silence;
    const auto left =
        std::max(std::chrono::ceil<std::chrono::milliseconds>(silent_at - Steady::now()),
                 std::chrono::milliseconds(0));
    pollfd polled{reader_->output(), POLLIN, 0};
    const int ready = ::poll(&polled, 1, waits_ ? static_cast<int>(left.count()) : 0);
    if (ready > 0) {
      return read_some(sink);
    }
    if (ready < 0 || Steady::now() < silent_at) {
      return waits_ ? Received::kMore : Received::kNothingYet;
    }
    give_up({ErrorKind::kBlocked,
             fmt::format("the reader of the journal below {} has said nothing "
                         "for {} ms",
                         query_.place.directory.string(), settings_.silence.count())});
    return Received::kFailed;
  }

  Received read_some(LogSink& sink) {
    std::array<char, kReadBytes> piece{};
    const ssize_t count = ::read(reader_->output(), piece.data(), piece.size());
    if (count == 0) {
      return take_end(sink);
    }
    if (count < 0) {
      return Received::kMore;
    }
    last_byte_ = Steady::now();
    pending_.append(piece.data(), static_cast<size_t>(count));
    return take_batches(sink);
  }

  /// Hands on the batches that have come whole.
  Received take_batches(LogSink& sink) {
    std::string_view rest = pending_;
    std::vector<Frame> batch;
    Received received = Received::kMore;
    while (received == Received::kMore) {
      auto frame = take_frame(rest);
      if (!frame) {
        return take_crash(sink, "sent " + frame.error().message);
      }
      if (!*frame) {
        break;
      }
      batch.push_back(**std::move(frame));
      if (ends_batch(batch.back())) {
        received = take_batch(batch, sink);
        batch.clear();
        taken_ = pending_.size() - rest.size();
      }
    }
    pending_.erase(0, std::exchange(taken_, 0));
    return received;
  }

  static bool ends_batch(const Frame& frame) {
    return frame.type == FrameType::kCheckpoint || frame.type == FrameType::kAnswer;
  }

  Received take_batch(const std::vector<Frame>& batch, LogSink& sink) {
    for (const Frame& frame : batch) {
      switch (frame.type) {
        case FrameType::kRecord:
          sink.on_record(frame.record);
          break;
        case FrameType::kPlainLines:
          sink.on_plain_lines(frame.number);
          break;
        case FrameType::kTrouble:
          sink.on_unreadable(kName, "journal: " + std::string(frame.text));
          sink.on_loss("journal_unreadable", 1);
          break;
        case FrameType::kCheckpoint:
          query_.kernel_position = frame.kernel_position;
          query_.other_position = frame.other_position;
          advanced_ = true;
          break;
        case FrameType::kAnswer:
          if (frame.number == sync_) {
            take_answer(frame);
            return Received::kAnswer;
          }
      }
    }
    return Received::kMore;
  }

  void take_answer(const Frame& frame) {
    awaits_answer_ = false;
    waits_ = true;
    crashes_ = 0;
    problem_ =
        frame.problem ? Status(Error{*frame.problem, std::string(frame.text)}) : std::nullopt;
  }

  Received take_end(LogSink& sink) {
    const auto end = reader_->wait_end(kEndWait);
    std::string what = end ? "ended by " + to_text(*end) : "closed its output";
    if (end && end->signal == SIGBUS) {
      what += ": a journal file was truncated while it was read, or its disk fails";
      sink.on_loss("journal_unreadable", 1);
    }
    return take_crash(sink, what);
  }

  /// Goes on at the last checkpoint: what came after it was not handed on.
  Received take_crash(LogSink& sink, const std::string& what) {
    const std::string place = query_.kernel_position.cursor.empty() ? query_.other_position.cursor
                                                                    : query_.kernel_position.cursor;
    Error error{ErrorKind::kMalformed,
                fmt::format("journal below {}: the reader {}; after entry '{}'",
                            query_.place.directory.string(), what, place)};
    crashes_ = advanced_ ? 1 : crashes_ + 1;
    if (crashes_ >= kMaxCrashes) {
      give_up(std::move(error));
      return Received::kFailed;
    }
    sink.on_unreadable(kName, error.message);
    drop_reader();
    return Received::kMore;
  }

  void give_up(Error error) {
    drop_reader();
    problem_ = std::move(error);
    retry_at_ = Steady::now() + settings_.back_off;
    waits_ = false;
  }

  void drop_reader() {
    reader_.reset();
    pending_.clear();
    taken_ = 0;
    awaits_answer_ = false;
  }

  JournalQuery query_;  // its positions are those of the last checkpoint
  JournalReaderSettings settings_;
  std::unique_ptr<HelperProcess> reader_;
  std::string pending_;  // what has come of the next batch
  size_t taken_ = 0;     // bytes of it that were handed on
  std::uint64_t sync_ = 0;
  bool awaits_answer_ = false;
  bool waits_ = true;      // for an answer: not after a failure, until one has come
  bool advanced_ = false;  // since the reader was started
  unsigned crashes_ = 0;   // in a row at one place
  Status problem_;
  Steady::time_point last_byte_;
  Steady::time_point retry_at_;
};

}  // namespace

std::unique_ptr<LogSource> make_journal_source(JournalQuery query, JournalReaderSettings settings) {
  return std::make_unique<JournalSource>(std::move(query), std::move(settings));
}

}  // namespace apu
