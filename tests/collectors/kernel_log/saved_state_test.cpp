#include "collectors/kernel_log/saved_state.h"

#include <gtest/gtest.h>

#include "collectors/kernel_log/kernel_log.h"
#include "exporter/exposition.h"
#include "exporter/text.h"
#include "tests/support/collector_files.h"
#include "tests/support/collector_log.h"

namespace apu {
namespace {

const TimePoint kNow = from_unix_seconds(1'790'000'000);

/// Everything that all recorded logs say, as if it were one log.
KernelLogState state_of_everything() {
  KernelLogState state;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(case_path(""))) {
    if (entry.path().extension() != ".log" && entry.path().extension() != ".bin") {
      continue;
    }
    for_each_line(read_file(entry.path()), [&](std::string_view line) {
      const ParsedLine parsed = parse_log_line(line, kNow);
      if (parsed.kind == LineKind::kRecord) {
        state.fold(parsed.record, resolve_time(parsed.record, kNow));
      }
    });
  }
  state.lose("kmsg_overrun", 7);
  state.ignore_earlier_boot();
  return state;
}

std::string page_of(const KernelLogState& log) {
  KernelLogFacts facts;
  facts.log = log;
  return to_text(to_families(facts, kNow));
}

SavedState saved(KernelLogState log = {}) {
  SavedState state{"b007", {}, std::move(log)};
  state.position.kernel.sequence = 2193;
  state.position.kernel.since_boot = std::chrono::microseconds(12'346'000'000);
  state.position.kernel.at_stamp = 2;
  state.position.others.time = kNow;
  state.position.others.at_stamp = 1;
  return state;
}

TEST(SavedState, SurvivesBeingWrittenAndRead) {
  const SavedState before = saved(state_of_everything());
  ASSERT_GT(before.log.events().size(), 14U);
  const auto after = parse_saved_state(to_text(before));
  ASSERT_TRUE(after) << after.error().message;
  EXPECT_EQ(to_text(*after), to_text(before));
  EXPECT_EQ(page_of(after->log), page_of(before.log));
  EXPECT_EQ(after->position.kernel.sequence, 2193U);
  EXPECT_EQ(after->position.others.time, kNow);
}

TEST(SavedState, GoesOnCountingAsIfNothingHadBeen) {
  // A report between the two halves of what counts once: a group kill, a hung task, a burst.
  const std::string text =
      "[  100.000000] INFO: task kworker/1:0:77 blocked for more than 120 seconds.\n"
      "[  100.000001] task:kworker/1:0 state:D stack:0 pid:77\n"
      "[  100.000002]  svm_range_restore_work+0xe5/0x390 [amdgpu]\n"
      "[  101.000000] oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,"
      "global_oom,task_memcg=/a.service,task=a,pid=7,uid=0\n"
      "[  101.000001] Out of memory: Killed process 7 (a) total-vm:1kB\n"
      "[  101.000002] Out of memory: Killed process 7 (a) total-vm:1kB\n"
      "[  102.000000] workqueue: svm_range_restore_work [amdgpu] hogged CPU for >10000us 4 times\n"
      "[  103.000000] workqueue: svm_range_restore_work [amdgpu] hogged CPU for >10000us 5 times\n"
      "[  104.000000] amdgpu: SVM mapping failed, exceeds resident system memory limit\n"
      "[  106.000000] amdgpu: SVM mapping failed, exceeds resident system memory limit\n";
  const std::string whole = page_of(fold_log(text, kNow, kNow));
  const auto lines = [&] {
    std::vector<std::string_view> all;
    for_each_line(text, [&](std::string_view line) { all.push_back(line); });
    return all;
  }();
  for (size_t cut = 0; cut <= lines.size(); ++cut) {
    KernelLogState state;
    for (size_t i = 0; i < lines.size(); ++i) {
      if (i == cut) {
        state = parse_saved_state(to_text(saved(std::move(state))))->log;
      }
      const LogRecord record = parse_log_line(lines[i], kNow).record;
      state.fold(record, resolve_time(record, kNow));
    }
    EXPECT_EQ(page_of(state), whole) << cut;
  }
}

TEST(SavedState, DamageOfAnyKindIsAnErrorAndNoCrash) {
  const std::string text = to_text(saved(state_of_everything()));
  for (size_t size = 0; size + 2 < text.size(); size += 97) {
    EXPECT_FALSE(parse_saved_state(text.substr(0, size))) << size;
  }
  std::string other = text;
  other.replace(other.find("\"version\":1"), 11, "\"version\":9");
  EXPECT_FALSE(parse_saved_state(other));
  for (const char* wrong :
       {"", "null", "[]", "{}", "\xff\xfe", R"({"version":1})", R"({"version":1,"boot_id":3})"}) {
    EXPECT_FALSE(parse_saved_state(wrong)) << wrong;
  }
}

TEST(SavedState, NumbersThatCannotBeAreRefused) {
  const std::string text = to_text(saved());
  for (const char* number : {"-1", "1.5", "1e300", "18446744073709551616", "\"7\"", "null"}) {
    std::string edited = text;
    const std::string key = "\"lines\":";
    edited.replace(edited.find(key) + key.size(), 1, number);
    EXPECT_FALSE(parse_saved_state(edited)) << number;
  }
}

// --- positions

LogRecord stamped(std::int64_t micros, Origin origin = Origin::kKernel) {
  LogRecord record;
  record.origin = origin;
  record.since_boot = std::chrono::microseconds(micros);
  return record;
}

LogRecord numbered(std::uint64_t sequence, std::int64_t micros) {
  LogRecord record = stamped(micros);
  record.sequence = sequence;
  return record;
}

LogRecord timed(int seconds, TimePoint* time) {
  LogRecord record;
  record.origin = Origin::kKernel;
  *time = kNow + std::chrono::seconds(seconds);
  record.time = *time;
  return record;
}

TEST(LogPosition, BySequenceKnowsWhatIsMissing) {
  LogPosition position;
  position.pass(numbered(10, 100), std::nullopt);
  position.pass(numbered(11, 100), std::nullopt);
  PositionFilter same(position);
  EXPECT_FALSE(same.is_after(numbered(10, 100), std::nullopt));
  EXPECT_FALSE(same.is_after(numbered(11, 100), std::nullopt));
  EXPECT_TRUE(same.is_after(numbered(12, 100), std::nullopt));
  EXPECT_EQ(same.missing(), 0U);
  PositionFilter later(position);
  EXPECT_TRUE(later.is_after(numbered(15, 900), std::nullopt));
  EXPECT_EQ(later.missing(), 3U);
}

TEST(LogPosition, WhatTheJournalFillsInIsNotMissing) {
  LogPosition position;
  position.pass(numbered(11, 100), std::nullopt);
  PositionFilter filter(position);
  EXPECT_FALSE(filter.is_after(stamped(100), std::nullopt));
  EXPECT_TRUE(filter.is_after(stamped(200), std::nullopt));
  EXPECT_TRUE(filter.is_after(numbered(15, 900), std::nullopt));
  EXPECT_EQ(filter.missing(), 2U);
}

TEST(LogPosition, OfEqualStampsAsManyAsWereReadAreSkipped) {
  LogPosition position;
  for (const int micros : {50, 100, 100, 90}) {
    position.pass(stamped(micros), std::nullopt);
  }
  PositionFilter filter(position);
  std::vector<bool> after;
  for (const int micros : {50, 100, 100, 90, 100, 101}) {
    after.push_back(filter.is_after(stamped(micros), std::nullopt));
  }
  EXPECT_EQ(after, (std::vector<bool>{false, false, false, false, true, true}));
}

TEST(LogPosition, GoesByTheTimeWhereThatIsAllThereIs) {
  LogPosition position;
  TimePoint time;
  position.pass(timed(5, &time), kNow + std::chrono::seconds(5));
  position.pass(timed(5, &time), kNow + std::chrono::seconds(5));
  PositionFilter filter(position);
  EXPECT_FALSE(filter.is_after(timed(5, &time), kNow + std::chrono::seconds(5)));
  EXPECT_FALSE(filter.is_after(timed(5, &time), kNow + std::chrono::seconds(5)));
  EXPECT_TRUE(filter.is_after(timed(5, &time), kNow + std::chrono::seconds(5)));
  EXPECT_TRUE(filter.is_after(timed(6, &time), kNow + std::chrono::seconds(6)));
}

TEST(LogPosition, ManagersHaveTheirOwn) {
  LogPosition position;
  position.pass(stamped(1000), std::nullopt);
  PositionFilter filter(position);
  EXPECT_TRUE(filter.is_after(stamped(500, Origin::kServiceManager), std::nullopt));
  EXPECT_FALSE(filter.is_after(stamped(500), std::nullopt));
}

}  // namespace
}  // namespace apu
