// What reading a kernel log costs, each beside the floor that it is held against:
// tests/bench/run.py compares them.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <string>
#include <thread>

#include "analysis/log_reader.h"
#include "collectors/kernel_log/record.h"
#include "collectors/kernel_log/source.h"
#include "collectors/kernel_log/state.h"
#include "collectors/kernel_log/stream.h"
#include "exporter/text.h"

namespace {

using apu::TimePoint;

constexpr int kLines = 1'000'000;
constexpr int kLinesPerHog = 1000;

const TimePoint kNow = apu::from_unix_seconds(1'790'000'000);

/// A message as busy hosts have them; one in a thousand is a hog report.
std::string message_of(int line) {
  constexpr const char* kPlain[] = {
      "usb 1-1: new high-speed USB device number 2 using xhci_hcd",
      "EXT4-fs (sda1): mounted filesystem with ordered data mode. Quota mode: none.",
      "IPv6: ADDRCONF(NETDEV_CHANGE): wlp1s0: link becomes ready",
      "pcieport 0000:00:02.1: PME: Signaling with IRQ 35",
      "audit: type=1400 audit(1783000000.123:45): apparmor=\"STATUS\" operation=\"profile_load\""};
  if (line % kLinesPerHog != 0) {
    return kPlain[line % std::size(kPlain)];
  }
  return fmt::format(
      "workqueue: amdgpu_amdkfd_restore_userptr_worker [amdgpu] hogged CPU for >10000us {} times, "
      "consider switching to WQ_UNBOUND",
      3 + (1ULL << static_cast<unsigned>(line / kLinesPerHog % 40)));
}

std::string dmesg_text() {
  std::string text;
  for (int i = 0; i < kLines; ++i) {
    text += fmt::format("[{:5}.{:06}] {}\n", i / 2, i % 2 * 500'000, message_of(i));
  }
  return text;
}

std::string syslog_text() {
  std::string text;
  for (int i = 0; i < kLines; ++i) {
    text += fmt::format("Jul {:2} {:02}:{:02}:{:02} host kernel: {}\n", 1 + i / 86400,
                        i / 3600 % 24, i / 60 % 60, i % 60, message_of(i));
  }
  return text;
}

void count_lines(benchmark::State& state) {
  state.SetItemsProcessed(state.iterations() * kLines);
}

/// The floor of every reader of text: where the lines end.
void BM_TextFloor(benchmark::State& state) {
  const std::string text = dmesg_text();
  for (auto _ : state) {
    std::size_t lines = 0;
    apu::for_each_line(text, [&](std::string_view line) { lines += line.empty() ? 0 : 1; });
    benchmark::DoNotOptimize(lines);
  }
  count_lines(state);
}

void read_text(benchmark::State& state, const std::string& text) {
  constexpr std::size_t kPiece = 256U << 10U;
  for (auto _ : state) {
    apu::LogReader reader("log", kNow);
    for (std::size_t at = 0; at < text.size(); at += kPiece) {
      reader.feed(std::string_view(text).substr(at, kPiece));
    }
    const apu::LogFile file = reader.finish(std::nullopt);
    if (file.lines != kLines || file.entries.size() < kLines / kLinesPerHog) {
      state.SkipWithError("lines are missing");
    }
  }
  count_lines(state);
}

void BM_TextDmesg(benchmark::State& state) {
  read_text(state, dmesg_text());
}

void BM_TextSyslog(benchmark::State& state) {
  read_text(state, syslog_text());
}

/// Folds what a source reads, as the exporter's stream does.
class FoldingSink : public apu::LogSink {
 public:
  void on_record(const apu::LogRecord& record) override {
    log.fold(record, apu::resolve_time(record, kNow));
  }

  void on_loss(std::string_view by, std::uint64_t count) override { log.lose(by, count); }

  void on_boot_start() override { log.mark_boot_start(); }

  void on_plain_lines(std::uint64_t count) override { log.fold_plain_lines(count); }

  void on_unreadable(const std::string& /*source*/, const std::string& what) override {
    unreadable += what.size();
  }

  apu::KernelLogState log;
  std::size_t unreadable = 0;
};

/// A storm in /dev/kmsg, a record a read: a hundredth of the records is lost, in gaps.
void BM_KmsgStorm(benchmark::State& state) {
  constexpr std::uint64_t kRecords = 100'000;
  constexpr std::uint64_t kGapEvery = 1000;
  constexpr std::uint64_t kGap = 10;
  std::vector<std::string> records;
  std::uint64_t sequence = 0;
  std::uint64_t lost = 0;
  for (std::uint64_t i = 0; i < kRecords; ++i, ++sequence) {
    if (i > 0 && i % kGapEvery == 0) {
      sequence += kGap;
      lost += kGap;
    }
    records.push_back(
        fmt::format("6,{},{},-;{}\n", sequence, i * 100, message_of(static_cast<int>(i))));
  }
  for (auto _ : state) {
    std::size_t next = 0;
    const auto source = apu::make_kmsg_source("/dev/kmsg", [&](std::span<char> buffer) -> ssize_t {
      if (next == records.size()) {
        errno = EAGAIN;
        return -1;
      }
      const std::string& record = records[next++];
      std::memcpy(buffer.data(), record.data(), record.size());
      return static_cast<ssize_t>(record.size());
    });
    FoldingSink sink;
    if (source->drain(sink) || sink.log.lines() != kRecords ||
        sink.log.lost().at("kmsg_overrun") != lost) {
      state.SkipWithError("records or losses were not counted");
    }
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kRecords));
}

/// A storm of 10,000 records a second as it comes, through the stream that the collector has.
/// Counters: the share of a core, in percent, that all threads took, and what was counted.
void BM_StormAsItComes(benchmark::State& state) {
  using Clock = std::chrono::steady_clock;
  constexpr std::uint64_t kPerSecond = 10'000;
  constexpr std::uint64_t kGapEvery = 1000;
  const char* given = std::getenv("APU_STORM_SECONDS");
  const std::chrono::seconds duration(given != nullptr ? std::atoi(given) : 60);
  const std::uint64_t total = kPerSecond * static_cast<std::uint64_t>(duration.count());
  for (auto _ : state) {
    const auto start = Clock::now();
    std::uint64_t made = 0;
    std::uint64_t sequence = 1;
    std::uint64_t lost = 0;
    auto source = apu::make_kmsg_source("/dev/kmsg", [&](std::span<char> buffer) -> ssize_t {
      const std::chrono::duration<double> elapsed = Clock::now() - start;
      if (made == total || static_cast<double>(made) > elapsed.count() * kPerSecond) {
        errno = EAGAIN;
        return -1;
      }
      if (++made % kGapEvery == 0) {
        sequence += kGapEvery;
        lost += kGapEvery;
      }
      const auto end = fmt::format_to_n(buffer.data(), buffer.size(), "6,{},{},-;{}\n", sequence++,
                                        made * 100, message_of(static_cast<int>(made)));
      return static_cast<ssize_t>(end.size);
    });
    apu::KernelLogStream stream(std::move(source),
                                {std::make_shared<apu::SourceBoard>(), "kernel_log"},
                                [] { return std::optional(kNow); });
    const std::clock_t cpu_before = std::clock();
    while (Clock::now() - start < duration) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      benchmark::DoNotOptimize(stream.caught_up());
    }
    const auto log = stream.caught_up();
    const double cpu = static_cast<double>(std::clock() - cpu_before) / CLOCKS_PER_SEC;
    state.counters["percent_of_core"] =
        100 * cpu / std::chrono::duration<double>(Clock::now() - start).count();
    state.counters["records"] = static_cast<double>(log->state.lines());
    state.counters["uncounted_losses"] =
        static_cast<double>(lost) - static_cast<double>(log->state.lost().at("kmsg_overrun"));
  }
}

BENCHMARK(BM_TextFloor)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_TextDmesg)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_TextSyslog)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_KmsgStorm)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_StormAsItComes)->Unit(benchmark::kSecond)->Iterations(1)->UseRealTime();

}  // namespace

BENCHMARK_MAIN();
