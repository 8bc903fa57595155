#include "collectors/kernel_log/stream.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <functional>
#include <future>

#include "exporter/descriptor.h"
#include "tests/support/collector_host.h"
#include "tests/support/collector_log.h"
#include "tests/support/wait.h"

namespace apu {
namespace {

using std::chrono::seconds;

const TimePoint kBoot = from_unix_seconds(1783062724);

constexpr const char* kBanner = "Linux version 6.14.0-36-generic (buildd@lcy02-amd64-067) (gcc 13)";
constexpr const char* kRefusal = "amdgpu: SVM mapping failed, exceeds resident system memory limit";

/// A source whose drains a test writes.
class ScriptedSource : public LogSource {
 public:
  explicit ScriptedSource(std::function<Status(LogSink&)> script, int descriptor = -1)
      : script_(std::move(script)), descriptor_(descriptor) {}

  [[nodiscard]] std::string name() const override { return "scripted"; }

  Status drain(LogSink& sink) override { return script_(sink); }

  [[nodiscard]] std::vector<int> poll_descriptors() const override {
    return descriptor_ < 0 ? std::vector<int>() : std::vector{descriptor_};
  }

 private:
  std::function<Status(LogSink&)> script_;
  int descriptor_;
};

LogRecord record_at(std::chrono::microseconds since_boot, std::string_view message) {
  LogRecord record;
  record.origin = Origin::kKernel;
  record.since_boot = since_boot;
  record.message = message;
  return record;
}

LogRecord record_at(TimePoint time, std::string_view message) {
  LogRecord record;
  record.origin = Origin::kKernel;
  record.time = time;
  record.message = message;
  return record;
}

std::uint64_t refusals(const KernelLogState& state) {
  const auto found = state.events().find(EventKind::kSvmMappingFailed);
  return found == state.events().end() ? 0 : found->second.lines.at("");
}

class KernelLogStreamTest : public ::testing::Test {
 protected:
  /// A stream on `script`, and its state after all that one drain gives.
  Result<KernelLogState> state_after(std::function<void(LogSink&)> script,
                                     std::optional<TimePoint> boot_time = kBoot) {
    bool first = true;
    KernelLogStream stream(std::make_unique<ScriptedSource>([&](LogSink& sink) -> Status {
                             if (std::exchange(first, false)) {
                               script(sink);
                             }
                             return std::nullopt;
                           }),
                           reporter(), [&] { return boot_time; });
    auto log = stream.caught_up();
    if (!log) {
      return log.error();
    }
    return std::move(log->state);
  }

  [[nodiscard]] SourceReporter reporter() const { return SourceReporter(host_.board, "test"); }

  CollectorHost host_{"/nonexistent"};
};

TEST_F(KernelLogStreamTest, StateIsThatAfterTheWholeLog) {
  std::promise<void> reading;
  std::promise<void> release;
  bool first = true;
  KernelLogStream stream(std::make_unique<ScriptedSource>([&](LogSink& sink) -> Status {
                           if (std::exchange(first, false)) {
                             sink.on_record(record_at(seconds(1), kRefusal));
                             reading.set_value();
                             release.get_future().wait();
                             sink.on_record(record_at(seconds(2), kRefusal));
                           }
                           return std::nullopt;
                         }),
                         reporter(), [] { return kBoot; });
  auto state = std::async(std::launch::async, [&] { return stream.caught_up(); });
  reading.get_future().wait();
  EXPECT_EQ(state.wait_for(seconds(0)), std::future_status::timeout);
  release.set_value();
  EXPECT_EQ(refusals(state.get()->state), 2U);
}

TEST_F(KernelLogStreamTest, EachRequestIsAnsweredByADrainThatBeganAfterIt) {
  const Descriptor always_readable(::eventfd(1, EFD_CLOEXEC));  // drain follows on drain
  std::atomic<int> available = 0;
  int read = 0;
  KernelLogStream stream(std::make_unique<ScriptedSource>(
                             [&](LogSink& sink) -> Status {
                               for (const int end = available; read < end; ++read) {
                                 sink.on_record(record_at(seconds(read), kRefusal));
                               }
                               std::this_thread::sleep_for(std::chrono::microseconds(200));
                               return std::nullopt;
                             },
                             always_readable.get()),
                         reporter(), [] { return kBoot; });
  for (int i = 1; i <= 100; ++i) {
    available = i;
    EXPECT_EQ(refusals(stream.caught_up()->state), static_cast<std::uint64_t>(i));
  }
}

TEST_F(KernelLogStreamTest, ErrorOfTheSourceIsTheAnswerUntilItRecovers) {
  std::atomic<bool> broken = true;
  KernelLogStream stream(
      std::make_unique<ScriptedSource>([&](LogSink&) -> Status {
        return broken ? Status(Error{ErrorKind::kPermissionDenied, "no"}) : std::nullopt;
      }),
      reporter(), [] { return kBoot; });
  const auto state = stream.caught_up();
  ASSERT_FALSE(state);
  EXPECT_EQ(state.error().kind, ErrorKind::kPermissionDenied);
  broken = false;
  EXPECT_TRUE(stream.caught_up());
}

TEST_F(KernelLogStreamTest, SourceThatFailsIsNotAskedWithoutPause) {
  const Descriptor always_readable(::eventfd(1, EFD_CLOEXEC));
  std::atomic<int> drains = 0;
  KernelLogStream stream(std::make_unique<ScriptedSource>(
                             [&](LogSink&) -> Status {
                               ++drains;
                               return Error{ErrorKind::kUnknown, "no"};
                             },
                             always_readable.get()),
                         reporter(), [] { return kBoot; });
  EXPECT_FALSE(stream.caught_up());
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_LT(drains, 10);
}

TEST_F(KernelLogStreamTest, ReadsWhatComesWithoutBeingAsked) {
  // A pipe of packets gives one record a read, as the device does.
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_DIRECT | O_CLOEXEC), 0);
  const Descriptor out(ends[0]);
  const Descriptor in(ends[1]);
  KernelLogStream stream(make_kmsg_source("/proc/self/fd/" + std::to_string(out.get())), reporter(),
                         [] { return kBoot; });
  ASSERT_TRUE(stream.caught_up());
  const std::string garbage = "no record\n";
  for (int i = 1; i <= 3; ++i) {
    ASSERT_EQ(::write(in.get(), garbage.data(), garbage.size()),
              static_cast<ssize_t>(garbage.size()));
    EXPECT_TRUE(eventually([&] { return host_.parse_errors("kmsg") == i; }));
  }
  const std::string record = "6,1,1000000,-;" + std::string(kRefusal) + "\n";
  ASSERT_EQ(::write(in.get(), record.data(), record.size()), static_cast<ssize_t>(record.size()));
  EXPECT_EQ(refusals(stream.caught_up()->state), 1U);
}

TEST_F(KernelLogStreamTest, BannerStartsTheStateAnew) {
  const auto state = state_after([](LogSink& sink) {
    sink.on_record(record_at(seconds(500), kRefusal));
    sink.on_record(record_at(seconds(0), kBanner));
    sink.on_record(record_at(seconds(7), kRefusal));
  });
  EXPECT_EQ(refusals(*state), 1U);
  EXPECT_EQ(state->lines(), 2U);
  EXPECT_TRUE(state->covers_boot());
}

TEST_F(KernelLogStreamTest, BannerWithoutAStampStartsTheStateAnew) {
  const auto state = state_after([](LogSink& sink) {
    sink.on_record(record_at(kBoot + seconds(1), kRefusal));
    sink.on_record(record_at(kBoot + seconds(2), kBanner));
  });
  EXPECT_EQ(refusals(*state), 0U);
}

TEST_F(KernelLogStreamTest, BannerOfLaterOrOfUserSpaceIsText) {
  const auto state = state_after([](LogSink& sink) {
    sink.on_record(record_at(seconds(500), kRefusal));
    sink.on_record(record_at(seconds(501), kBanner));
    LogRecord forged = record_at(seconds(0), kBanner);
    forged.origin = Origin::kUserspace;
    sink.on_record(forged);
  });
  EXPECT_EQ(refusals(*state), 1U);
  EXPECT_FALSE(state->covers_boot());
}

TEST_F(KernelLogStreamTest, LinesBeforeThisBootAreIgnored) {
  const auto state = state_after([](LogSink& sink) {
    sink.on_record(record_at(kBoot - seconds(3600), kRefusal));
    sink.on_record(record_at(kBoot - seconds(61), kRefusal));
    sink.on_record(record_at(kBoot - seconds(59), kRefusal));  // clocks are set
    sink.on_record(record_at(kBoot + seconds(5), kRefusal));
  });
  EXPECT_EQ(refusals(*state), 2U);
  EXPECT_EQ(state->lines(), 2U);
}

TEST_F(KernelLogStreamTest, WithoutABootTimeAllLinesCount) {
  const auto state =
      state_after([](LogSink& sink) { sink.on_record(record_at(kBoot - seconds(3600), kRefusal)); },
                  std::nullopt);
  EXPECT_EQ(refusals(*state), 1U);
}

TEST_F(KernelLogStreamTest, StampsAreOnTopOfTheBootTime) {
  const auto state =
      state_after([](LogSink& sink) { sink.on_record(record_at(seconds(90), kRefusal)); });
  EXPECT_EQ(state->events().at(EventKind::kSvmMappingFailed).last_time, kBoot + seconds(90));
}

TEST_F(KernelLogStreamTest, LossAndBootStartReachTheState) {
  const auto state = state_after([](LogSink& sink) {
    sink.on_boot_start();
    sink.on_loss("kmsg_overrun", 5);
  });
  EXPECT_TRUE(state->covers_boot());
  EXPECT_EQ(state->lost().at("kmsg_overrun"), 5U);
}

TEST_F(KernelLogStreamTest, WhatCannotBeReadIsCountedOnTheBoard) {
  EXPECT_TRUE(state_after([](LogSink& sink) {
    sink.on_unreadable("scripted", "file:1: no known format");
    sink.on_record(record_at(seconds(1), "workqueue: f hogged CPU for >10000us"));
  }));
  EXPECT_EQ(host_.parse_errors("scripted"), 2);
}

}  // namespace
}  // namespace apu
