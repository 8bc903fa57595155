#include "collectors/kernel_log/stream.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <utility>

#include "exporter/thread.h"

namespace apu {
namespace {

// How often a log that cannot be polled is asked for more, between the passes that ask anyway.
constexpr std::chrono::milliseconds kAskInterval{1000};

// The boot time that a stamp is held against moves when the clock is set.
constexpr std::chrono::seconds kBootTimeSlack{60};

/// The banner comes in the first instant; later ones are text that user space wrote.
bool starts_boot(const LogRecord& record) {
  return record.origin == Origin::kKernel && is_boot_banner(record.message) &&
         record.since_boot.value_or(std::chrono::microseconds(0)) < std::chrono::seconds(1);
}

}  // namespace

KernelLogStream::KernelLogStream(std::unique_ptr<LogSource> source, SourceReporter sources,
                                 std::function<std::optional<TimePoint>()> read_boot_time,
                                 std::optional<SavedState> saved)
    : source_(std::move(source)),
      sources_(std::move(sources)),
      read_boot_time_(std::move(read_boot_time)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      position_(saved ? saved->position : LogPosition()),
      resumed_(saved ? std::optional<ResumedLog>(*std::move(saved)) : std::nullopt),
      thread_([this] { run(); }) {}

KernelLogStream::~KernelLogStream() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  ::eventfd_write(wake_.get(), 1);
  thread_.join();
}

Result<CaughtUpLog> KernelLogStream::caught_up() {
  std::unique_lock lock(mutex_);
  const std::uint64_t mine = ++requested_;
  ::eventfd_write(wake_.get(), 1);
  served_changed_.wait(lock, [&] { return served_ >= mine; });
  if (status_) {
    return *status_;
  }
  return CaughtUpLog{state_, position_};
}

std::vector<LogSourceState> KernelLogStream::source_states() {
  const std::lock_guard lock(mutex_);
  return source_states_;
}

void KernelLogStream::run() {
  set_thread_name("kernel_log-read");
  while (true) {
    if (!boot_time_) {
      boot_time_ = read_boot_time_();
    }
    std::uint64_t requested = 0;
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) {
        return;
      }
      requested = requested_;
    }
    Status status = source_->drain(*this);
    const bool failed = status.has_value();
    {
      std::vector<LogSourceState> states = source_->states(status);
      const std::lock_guard lock(mutex_);
      if (!failed && resumed_) {
        take_up_saved_state();
      }
      status_ = std::move(status);
      source_states_ = std::move(states);
      served_ = requested;
    }
    served_changed_.notify_all();
    wait_for_more(requested, failed);
  }
}

void KernelLogStream::wait_for_more(std::uint64_t served, bool failed) {
  {
    const std::lock_guard lock(mutex_);
    if (requested_ > served || stopping_) {
      return;
    }
  }
  // A descriptor that gives errors polls readable for ever.
  std::vector<pollfd> polled{{wake_.get(), POLLIN, 0}};
  if (!failed) {
    for (const int descriptor : source_->poll_descriptors()) {
      polled.push_back({descriptor, POLLIN, 0});
    }
  }
  const auto timeout = polled.size() == 1 ? static_cast<int>(kAskInterval.count()) : -1;
  ::poll(polled.data(), polled.size(), timeout);
  eventfd_t ignored = 0;
  ::eventfd_read(wake_.get(), &ignored);
}

bool KernelLogStream::is_of_earlier_boot(const std::optional<TimePoint>& time) const {
  return time && boot_time_ && *time < *boot_time_ - kBootTimeSlack;
}

void KernelLogStream::on_record(const LogRecord& record) {
  const std::optional<TimePoint> time = resolve_time(record, boot_time_);
  if (is_of_earlier_boot(time)) {
    const std::lock_guard lock(mutex_);
    state_.ignore_earlier_boot();
    return;
  }
  std::optional<KernelLogState::Trouble> trouble;
  {
    const std::lock_guard lock(mutex_);
    if (starts_boot(record)) {
      state_ = KernelLogState();
      begin_with_boot();
    }
    trouble = state_.fold(record, time);
    follow_position(record, time);
  }
  if (trouble) {
    sources_.parse_error(source_->name(), "hog report without a count: '" +
                                              std::string(record.message.substr(0, 200)) + "'");
  }
}

/// The log has all of this boot: nothing that was saved is needed.
void KernelLogStream::begin_with_boot() {
  state_.mark_boot_start();
  if (resumed_) {
    resumed_.reset();
    position_ = {};
  }
}

void KernelLogStream::follow_position(const LogRecord& record, std::optional<TimePoint> time) {
  if (resumed_) {
    resumed_->past_saved = resumed_->filter.is_after(record, time);
    if (!resumed_->past_saved) {
      return;
    }
    resumed_->log.fold(record, time);
  }
  position_.pass(record, time);
}

/// The log was read once and does not reach back to the boot.
void KernelLogStream::take_up_saved_state() {
  if (const std::uint64_t missing = resumed_->filter.missing(); missing > 0) {
    resumed_->log.lose("kmsg_overrun", missing);
    resumed_->log.mark_incomplete();
  }
  state_ = std::move(resumed_->log);
  resumed_.reset();
}

void KernelLogStream::on_loss(std::string_view by, std::uint64_t count) {
  const std::lock_guard lock(mutex_);
  state_.lose(by, count);
  if (resumed_ && resumed_->past_saved) {
    resumed_->log.lose(by, count);
  }
}

void KernelLogStream::on_boot_start() {
  const std::lock_guard lock(mutex_);
  begin_with_boot();
}

void KernelLogStream::on_plain_lines(std::uint64_t count) {
  const std::lock_guard lock(mutex_);
  state_.fold_plain_lines(count);
  if (resumed_ && resumed_->past_saved) {
    resumed_->log.fold_plain_lines(count);
  }
}

void KernelLogStream::on_unreadable(const std::string& source, const std::string& what) {
  sources_.parse_error(source, what);
}

}  // namespace apu
