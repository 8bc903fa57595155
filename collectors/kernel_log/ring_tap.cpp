#include "collectors/kernel_log/ring_tap.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace apu {
namespace {

using std::chrono::microseconds;

// In a storm of the log gap follows on gap: so often at most one is filled.
constexpr std::chrono::seconds kFillInterval{1};

/// Passes on what a range of the journal holds, but for records at its end that the ring has.
class RangeSink : public LogSink {
 public:
  RangeSink(LogSink& next, microseconds until, std::vector<std::string> in_ring)
      : next_(next), until_(until), in_ring_(std::move(in_ring)) {}

  /// Records of the kernel's ring that were passed on.
  [[nodiscard]] std::uint64_t passed() const { return passed_; }

  void on_record(const LogRecord& record) override {
    if (record.since_boot == until_ && drop_if_in_ring(record.message)) {
      return;
    }
    passed_ += record.origin == Origin::kKernel || record.origin == Origin::kUserspace ? 1 : 0;
    next_.on_record(record);
  }

  void on_plain_lines(std::uint64_t count) override {
    passed_ += count;
    next_.on_plain_lines(count);
  }

  void on_loss(std::string_view by, std::uint64_t count) override { next_.on_loss(by, count); }

  void on_boot_start() override { next_.on_boot_start(); }

  void on_unreadable(const std::string& source, const std::string& what) override {
    next_.on_unreadable(source, what);
  }

 private:
  bool drop_if_in_ring(std::string_view message) {
    const auto found = std::find(in_ring_.begin(), in_ring_.end(), message);
    if (found == in_ring_.end()) {
      return false;
    }
    in_ring_.erase(found);  // the same text may have been printed more than once at that time
    return true;
  }

  LogSink& next_;
  microseconds until_;
  std::vector<std::string> in_ring_;
  std::uint64_t passed_ = 0;
};

}  // namespace

void RingTap::on_record(const LogRecord& record) {
  const microseconds stamp = record.since_boot.value_or(microseconds(0));
  const bool first = !std::exchange(saw_record_, true);
  if (lost_ > 0) {
    release();
    fill_gap(stamp);
  }
  if ((first && !saw_boot_start_) ||
      (!held_.empty() && held_.front().record.since_boot == record.since_boot)) {
    hold(record);
    return;
  }
  release();
  last_stamp_ = stamp;
  sink_->on_record(record);
}

void RingTap::hold(const LogRecord& record) {
  held_.push_back({record, std::string(record.message)});
}

/// Hands on the first records of the ring, after what came before them.
void RingTap::release() {
  if (held_.empty()) {
    return;
  }
  const std::vector<Held> held = std::exchange(held_, {});
  std::vector<std::string> messages;
  std::transform(held.begin(), held.end(), std::back_inserter(messages),
                 [](const Held& one) { return one.message; });
  JournalQuery wanted;
  wanted.kernel = wanted.journald = true;
  wanted.until = last_stamp_ = held.front().record.since_boot.value_or(microseconds(0));
  RangeSink range(*sink_, *wanted.until, std::move(messages));
  const Status error = read_(wanted, range);
  if (error && error->kind != ErrorKind::kNotFound) {
    // The source's state says it as well, but not what follows from it.
    sink_->on_unreadable("journal", "records older than the kernel's ring: " + error->message);
  }
  for (const Held& one : held) {
    LogRecord record = one.record;
    record.message = one.message;
    sink_->on_record(record);
  }
}

/// Of records that were overwritten before they were read the journal may have some.
void RingTap::fill_gap(microseconds until) {
  const auto now = std::chrono::steady_clock::now();
  std::uint64_t filled = 0;
  if (last_stamp_ && *last_stamp_ + microseconds(1) < until && now >= next_fill_) {
    JournalQuery wanted;
    wanted.kernel = true;
    wanted.after = last_stamp_;
    wanted.until = until - microseconds(1);
    RangeSink range(*sink_, until, {});
    (void)read_(wanted, range);  // what is not filled is lost
    filled = range.passed();
    next_fill_ = std::chrono::steady_clock::now() + kFillInterval;
  }
  const std::uint64_t lost = std::exchange(lost_, 0);
  if (lost > filled) {
    sink_->on_loss("kmsg_overrun", lost - filled);
  }
}

void RingTap::on_loss(std::string_view by, std::uint64_t count) {
  if (by == "kmsg_overrun") {
    lost_ += count;
  } else {
    sink_->on_loss(by, count);
  }
}

void RingTap::on_boot_start() {
  saw_boot_start_ = true;
  sink_->on_boot_start();
}

void RingTap::on_plain_lines(std::uint64_t count) {
  sink_->on_plain_lines(count);
}

void RingTap::on_unreadable(const std::string& source, const std::string& what) {
  sink_->on_unreadable(source, what);
}

}  // namespace apu
