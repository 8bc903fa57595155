#include "collectors/kernel_log/auto_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/support/collector_log.h"

namespace apu {
namespace {

using std::chrono::microseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

LogRecord record_at(std::int64_t stamp, std::string_view message, Origin origin = Origin::kKernel) {
  LogRecord record;
  record.origin = origin;
  record.since_boot = microseconds(stamp);
  record.message = message;
  return record;
}

using Script = std::function<Status(LogSink&)>;

class ScriptedSource : public LogSource {
 public:
  ScriptedSource(std::string name, Script script, int descriptor = -1)
      : name_(std::move(name)), script_(std::move(script)), descriptor_(descriptor) {}

  [[nodiscard]] std::string name() const override { return name_; }

  Status drain(LogSink& sink) override { return script_(sink); }

  [[nodiscard]] std::vector<int> poll_descriptors() const override {
    return descriptor_ < 0 ? std::vector<int>() : std::vector{descriptor_};
  }

 private:
  std::string name_;
  Script script_;
  int descriptor_;
};

struct Entry {
  std::int64_t stamp;
  std::string message;
};

/// An auto source over a ring and a journal that a test fills.
class AutoSourceTest : public ::testing::Test {
 protected:
  std::unique_ptr<LogSource> make() {
    auto kmsg = std::make_unique<ScriptedSource>(
        "kmsg",
        [this](LogSink& sink) {
          return std::exchange(ring_, [](LogSink&) { return Status(); })(sink);
        },
        7);
    return make_auto_source(std::move(kmsg), [this](const JournalQuery& wanted) {
      asked_.push_back(wanted);
      return std::make_unique<ScriptedSource>(
          "journal", [this, wanted](LogSink& sink) { return read_journal(wanted, sink); }, 8);
    });
  }

  /// As a reader does: all that matters, and all at the end of a range.
  Status read_journal(const JournalQuery& wanted, LogSink& sink) {
    if (journal_problem_) {
      return journal_problem_;
    }
    for (const Entry& entry : wanted.kernel ? journal_ : std::vector<Entry>()) {
      const microseconds stamp(entry.stamp);
      if ((wanted.after && stamp <= *wanted.after) || (wanted.until && stamp > *wanted.until)) {
        continue;
      }
      if (entry.message == "plain" && stamp != wanted.until) {
        sink.on_plain_lines(1);
      } else {
        sink.on_record(record_at(entry.stamp, entry.message));
      }
    }
    if (wanted.managers && !std::exchange(managers_read_, true)) {
      sink.on_record(record_at(1, "a unit's", Origin::kServiceManager));
    }
    return std::nullopt;
  }

  Script ring_ = [](LogSink&) { return Status(); };
  std::vector<Entry> journal_;
  Status journal_problem_;
  bool managers_read_ = false;
  std::vector<JournalQuery> asked_;
  RecordingSink sink_;
};

TEST_F(AutoSourceTest, WhatTheRingLostComesFirstAndNothingTwice) {
  journal_ = {{1, "a"}, {2, "plain"}, {3, "b"}, {5, "c"}, {5, "d"}, {6, "e"}, {7, "f"}};
  ring_ = [](LogSink& sink) -> Status {
    sink.on_record(record_at(5, "d"));
    sink.on_record(record_at(6, "e"));
    sink.on_record(record_at(7, "f"));
    return std::nullopt;
  };
  const auto source = make();
  EXPECT_EQ(source->drain(sink_), std::nullopt);
  EXPECT_THAT(sink_.messages, ElementsAre("a", "b", "c", "d", "e", "f", "a unit's"));
  EXPECT_EQ(sink_.plain_lines, 1U);
  EXPECT_TRUE(asked_.at(0).journald);
}

TEST_F(AutoSourceTest, TheSameTextOfTheSameTimeCountsAsOftenAsItWasPrinted) {
  journal_ = {{5, "x"}, {5, "x"}, {5, "x"}, {5, "y"}, {6, "z"}};
  ring_ = [](LogSink& sink) -> Status {
    sink.on_record(record_at(5, "x"));
    sink.on_record(record_at(5, "y"));
    return std::nullopt;
  };
  EXPECT_EQ(make()->drain(sink_), std::nullopt);
  EXPECT_THAT(sink_.messages, ElementsAre("x", "x", "x", "y", "a unit's"));
}

TEST_F(AutoSourceTest, ARingFromTheStartOfTheBootNeedsNoJournal) {
  journal_ = {{0, "a"}, {1, "b"}};
  ring_ = [](LogSink& sink) -> Status {
    sink.on_boot_start();
    sink.on_record(record_at(0, "a"));
    sink.on_record(record_at(1, "b"));
    return std::nullopt;
  };
  EXPECT_EQ(make()->drain(sink_), std::nullopt);
  EXPECT_THAT(sink_.messages, ElementsAre("a", "b", "a unit's"));
  EXPECT_EQ(sink_.boot_starts, 1);
  EXPECT_EQ(asked_.size(), 1U);
  EXPECT_TRUE(asked_.at(0).managers);
  EXPECT_FALSE(asked_.at(0).kernel || asked_.at(0).journald);
}

TEST_F(AutoSourceTest, OfAGapOnlyWhatTheJournalLacksIsLost) {
  journal_ = {{10, "a"}, {20, "b"}, {21, "plain"}, {30, "c"}, {40, "d"}};
  ring_ = [](LogSink& sink) -> Status {
    sink.on_boot_start();
    sink.on_record(record_at(10, "a"));
    sink.on_loss("kmsg_overrun", 5);
    sink.on_record(record_at(30, "c"));
    return std::nullopt;
  };
  EXPECT_EQ(make()->drain(sink_), std::nullopt);
  EXPECT_THAT(sink_.messages, ElementsAre("a", "b", "c", "a unit's"));
  EXPECT_EQ(sink_.plain_lines, 1U);
  EXPECT_EQ(sink_.losses, (std::map<std::string, std::uint64_t>{{"kmsg_overrun", 3}}));
}

TEST_F(AutoSourceTest, AGapThatTheJournalFillsIsNoLoss) {
  journal_ = {{10, "a"}, {20, "b"}, {30, "c"}};
  ring_ = [](LogSink& sink) -> Status {
    sink.on_record(record_at(10, "a"));
    sink.on_loss("kmsg_overrun", 1);
    sink.on_record(record_at(30, "c"));
    return std::nullopt;
  };
  EXPECT_EQ(make()->drain(sink_), std::nullopt);
  EXPECT_THAT(sink_.messages, ElementsAre("a", "b", "c", "a unit's"));
  EXPECT_THAT(sink_.losses, IsEmpty());
}

TEST_F(AutoSourceTest, AGapWithoutAJournalIsLost) {
  journal_problem_ = Error{ErrorKind::kPermissionDenied, "no"};
  ring_ = [](LogSink& sink) -> Status {
    sink.on_boot_start();
    sink.on_record(record_at(10, "a"));
    sink.on_loss("kmsg_overrun", 4);
    sink.on_record(record_at(30, "c"));
    return std::nullopt;
  };
  EXPECT_EQ(make()->drain(sink_), std::nullopt);
  EXPECT_EQ(sink_.losses.at("kmsg_overrun"), 4U);
}

TEST_F(AutoSourceTest, WithoutAJournalTheRingGoesOnAndItIsSaid) {
  journal_problem_ = Error{ErrorKind::kPermissionDenied, "no"};
  ring_ = [](LogSink& sink) -> Status {
    sink.on_record(record_at(5, "d"));
    return std::nullopt;
  };
  const auto source = make();
  const Status drained = source->drain(sink_);
  EXPECT_EQ(drained, std::nullopt);
  EXPECT_THAT(sink_.messages, ElementsAre("d"));
  EXPECT_EQ(sink_.unreadable.size(), 1U);  // the records before the ring's
  const auto states = source->states(drained);
  ASSERT_EQ(states.size(), 2U);
  EXPECT_EQ(states[0].name, "kmsg");
  EXPECT_EQ(states[0].status, std::nullopt);
  EXPECT_EQ(states[1].name, "journal");
  EXPECT_EQ(states[1].status->kind, ErrorKind::kPermissionDenied);
  EXPECT_EQ(source->name(), "kmsg");
}

TEST_F(AutoSourceTest, WithoutARingTheJournalHasTheKernelsRecords) {
  journal_ = {{1, "a"}, {2, "b"}};
  ring_ = [](LogSink&) -> Status { return Error{ErrorKind::kPermissionDenied, "no"}; };
  const auto source = make();
  const Status drained = source->drain(sink_);
  EXPECT_EQ(drained, std::nullopt);
  EXPECT_THAT(sink_.messages, ElementsAre("a", "b", "a unit's"));
  EXPECT_EQ(source->name(), "journal");
  const auto states = source->states(drained);
  EXPECT_EQ(states[0].status->kind, ErrorKind::kPermissionDenied);
  EXPECT_EQ(states[1].status, std::nullopt);
  EXPECT_EQ(source->poll_descriptors(), std::vector{8});
  ring_ = [](LogSink& sink) -> Status {
    sink.on_record(record_at(1, "a"));
    return std::nullopt;
  };
  journal_.clear();
  EXPECT_EQ(source->drain(sink_), std::nullopt);
  EXPECT_EQ(sink_.messages.size(), 3U);  // the ring would tell again what was told
}

TEST_F(AutoSourceTest, WithNeitherItSaysWhyAndTriesAgain) {
  journal_problem_ = Error{ErrorKind::kNotFound, "none"};
  ring_ = [](LogSink&) -> Status { return Error{ErrorKind::kPermissionDenied, "no"}; };
  const auto source = make();
  EXPECT_EQ(source->drain(sink_)->kind, ErrorKind::kPermissionDenied);
  ring_ = [](LogSink& sink) -> Status {
    sink.on_boot_start();
    sink.on_record(record_at(0, "a"));
    return std::nullopt;
  };
  EXPECT_EQ(source->drain(sink_), std::nullopt);
  EXPECT_THAT(sink_.messages, ElementsAre("a"));
  EXPECT_EQ(source->poll_descriptors(), (std::vector{8, 7}));
}

}  // namespace
}  // namespace apu
