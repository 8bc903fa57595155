#include "collectors/kernel_log/auto_source.h"

#include <utility>
#include <vector>

#include "collectors/kernel_log/ring_tap.h"

namespace apu {
namespace {

/// Notes whether anything was handed on.
class WatchingSink : public LogSink {
 public:
  explicit WatchingSink(LogSink& next) : next_(next) {}

  [[nodiscard]] bool saw_any() const { return saw_any_; }

  void on_record(const LogRecord& record) override {
    saw_any_ = true;
    next_.on_record(record);
  }

  void on_plain_lines(std::uint64_t count) override {
    saw_any_ = true;
    next_.on_plain_lines(count);
  }

  void on_loss(std::string_view by, std::uint64_t count) override { next_.on_loss(by, count); }

  void on_boot_start() override { next_.on_boot_start(); }

  void on_unreadable(const std::string& source, const std::string& what) override {
    next_.on_unreadable(source, what);
  }

 private:
  LogSink& next_;
  bool saw_any_ = false;
};

class AutoSource : public LogSource {
 public:
  AutoSource(std::unique_ptr<LogSource> kmsg, OpenJournal open_journal)
      : kmsg_(std::move(kmsg)),
        open_journal_(std::move(open_journal)),
        tap_([this](const JournalQuery& wanted, LogSink& sink) {
          return open_journal_(wanted)->drain(sink);
        }) {}

  [[nodiscard]] std::string name() const override {
    return kernel_from_ == KernelFrom::kJournal ? "journal" : "kmsg";
  }

  Status drain(LogSink& sink) override {
    if (kernel_from_ != KernelFrom::kJournal) {
      drain_kmsg(sink);
    }
    drain_journal(sink);
    return kernel_from_ == KernelFrom::kJournal ? journal_status_ : kmsg_status_;
  }

  [[nodiscard]] std::vector<int> poll_descriptors() const override {
    std::vector<int> descriptors = journal_ ? journal_->poll_descriptors() : std::vector<int>();
    if (kernel_from_ != KernelFrom::kJournal) {
      const auto more = kmsg_->poll_descriptors();
      descriptors.insert(descriptors.end(), more.begin(), more.end());
    }
    return descriptors;
  }

  [[nodiscard]] std::vector<LogSourceState> states(const Status& /*drained*/) const override {
    return {{"kmsg", kmsg_status_}, {"journal", journal_status_}};
  }

 private:
  /// Decided once: by the first of the two that gives a record, or all that it holds.
  enum class KernelFrom { kUndecided, kKmsg, kJournal };

  void drain_kmsg(LogSink& sink) {
    tap_.set_sink(sink);
    kmsg_status_ = kmsg_->drain(tap_);
    tap_.end_drain();
    if (kernel_from_ == KernelFrom::kUndecided && (!kmsg_status_ || tap_.saw_record())) {
      kernel_from_ = KernelFrom::kKmsg;
      journal_.reset();
    }
  }

  void drain_journal(LogSink& sink) {
    const bool kmsg = kernel_from_ == KernelFrom::kKmsg;
    if (!journal_) {
      JournalQuery wanted;
      wanted.managers = true;
      wanted.kernel = wanted.journald = !kmsg;
      journal_ = open_journal_(wanted);
    }
    WatchingSink watching(sink);
    journal_status_ = journal_->drain(watching);
    if (!kmsg && (!journal_status_ || watching.saw_any())) {
      kernel_from_ = KernelFrom::kJournal;
    }
  }

  std::unique_ptr<LogSource> kmsg_;
  OpenJournal open_journal_;
  RingTap tap_;
  std::unique_ptr<LogSource> journal_;  // followed
  KernelFrom kernel_from_ = KernelFrom::kUndecided;
  Status kmsg_status_;
  Status journal_status_;
};

}  // namespace

std::unique_ptr<LogSource> make_auto_source(std::unique_ptr<LogSource> kmsg, OpenJournal journal) {
  return std::make_unique<AutoSource>(std::move(kmsg), std::move(journal));
}

}  // namespace apu
