#include "collectors/mmap_lock.h"

#include <gtest/gtest.h>

#include "collectors/cgroup/cgroup.h"
#include "tests/support/collector_host.h"
#include "tests/support/temp_tree.h"

namespace apu {
namespace {

using Answer = LockProbe::Answer;
using std::chrono::seconds;

constexpr ProcessIdentity kProcess{41, 410};

TEST(LockSuspects, AreThosePeggedOrInDiskSleep) {
  LockSuspects suspects;
  const auto start = std::chrono::steady_clock::now();
  EXPECT_FALSE(suspects.is_suspect(kProcess, false, 100, start));  // nothing to compare with
  EXPECT_TRUE(suspects.is_suspect(kProcess, false, 129, start + seconds(30)));
  EXPECT_FALSE(suspects.is_suspect(kProcess, false, 135, start + seconds(60)));
  EXPECT_TRUE(suspects.is_suspect(kProcess, true, 135, start + seconds(90)));
}

TEST(LockSuspects, AreHeldAfterTwoWaitsInARow) {
  LockSuspects suspects;
  const auto start = std::chrono::steady_clock::now();
  const auto held_after = [&](Answer answer) {
    EXPECT_TRUE(suspects.is_suspect(kProcess, true, 0, start));
    suspects.note(kProcess, answer);
    return suspects.is_held(kProcess);
  };
  EXPECT_FALSE(held_after(Answer::kWaits));
  EXPECT_TRUE(held_after(Answer::kWaits));
  EXPECT_FALSE(held_after(Answer::kFree));
  EXPECT_FALSE(held_after(Answer::kWaits));
  EXPECT_FALSE(held_after(Answer::kNoProof));
  EXPECT_FALSE(held_after(Answer::kWaits));
  EXPECT_FALSE(held_after(Answer::kNotAsked));  // in quarantine: it is not a second wait
  EXPECT_TRUE(held_after(Answer::kWaits));
  EXPECT_TRUE(held_after(Answer::kNotAsked));
}

TEST(LockSuspects, AreAskedUntilTheyAnswer) {
  LockSuspects suspects;
  const auto start = std::chrono::steady_clock::now();
  suspects.is_suspect(kProcess, false, 0, start);
  EXPECT_TRUE(suspects.is_suspect(kProcess, false, 30, start + seconds(30)));
  suspects.note(kProcess, Answer::kWaits);
  // It had to share its CPU for a while: the next probe is the second one, and not the first.
  EXPECT_TRUE(suspects.is_suspect(kProcess, false, 50, start + seconds(60)));
  suspects.note(kProcess, Answer::kWaits);
  EXPECT_TRUE(suspects.is_held(kProcess));
  EXPECT_TRUE(suspects.is_suspect(kProcess, false, 50, start + seconds(90)));
  suspects.note(kProcess, Answer::kFree);
  EXPECT_FALSE(suspects.is_held(kProcess));
  EXPECT_FALSE(suspects.is_suspect(kProcess, false, 50, start + seconds(120)));
}

TEST(LockSuspects, ThatEndedAreForgotten) {
  LockSuspects suspects;
  suspects.note(kProcess, Answer::kWaits);
  suspects.note(kProcess, Answer::kWaits);
  suspects.keep_only({{41, 999}});
  EXPECT_FALSE(suspects.is_held(kProcess));
}

TEST(WaitsForMmapLock, IsToldByTheNameOfTheSleep) {
  for (const char* wchan : {"__access_remote_vm", "rwsem_down_read_slowpath", "down_read_killable",
                            "rwbase_read_lock", "rwsem_down_read_slowpath\n"}) {
    EXPECT_TRUE(waits_for_mmap_lock(wchan)) << wchan;
  }
  for (const char* wchan : {"", "0", "folio_wait_bit_common", "io_schedule", "wait_for_partner",
                            "request_wait_answer", "x rwsem_down_read_slowpath"}) {
    EXPECT_FALSE(waits_for_mmap_lock(wchan)) << wchan;
  }
}

// --- the collector

/// Gives what it is told to, and counts.
class ScriptedProbe : public LockProbe {
 public:
  explicit ScriptedProbe(Answer answer, int& asked) : answer_(answer), asked_(asked) {}

  Answer ask(const ProcessIdentity& /*process*/) override {
    ++asked_;
    return answer_;
  }

 private:
  Answer answer_;
  int& asked_;
};

class MmapLockTest : public ::testing::Test {
 protected:
  MmapLockTest() : host_(tree_.path()) {
    auto index = std::make_shared<SeatIndex>();
    index->seats.resize(1);
    index->seats[0].name = "llama";
    index->seats[0].processes = {{{41, 410}, "llama-server", "/system.slice/llama.service", true}};
    CgroupFacts facts;
    facts.index = index;
    host_.store->put("cgroup", {std::make_shared<const Snapshot>(Snapshot{facts, {}}),
                                host_.clock->now(), std::chrono::steady_clock::now()});
    write_thread(41, 'S');
  }

  void write_thread(int tid, char state) {
    const std::string stat = std::to_string(tid) + " (llama-server) " + state +
                             " 1 1 1 0 -1 0 0 0 0 0 5 5 0 0 20 0 1 0 410 0 0 1 0 0 0 0\n";
    tree_.write("proc/41/task/" + std::to_string(tid) + "/stat", stat);
    if (tid == 41) {
      tree_.write("proc/41/stat", stat);
    }
  }

  TempTree tree_;
  CollectorHost host_;
  int asked_ = 0;
};

constexpr const char* kSeries = "apu_seat_mmap_lock_held{seat=\"llama\"}";

TEST_F(MmapLockTest, SeatWhoseThreadHangsOnTheLockIsHeld) {
  write_thread(44, 'D');
  const auto collector = make_mmap_lock_collector(
      host_.context("mmap_lock"), std::make_unique<ScriptedProbe>(Answer::kWaits, asked_));
  EXPECT_EQ(value_of(collector->collect()->families, kSeries), 0);
  EXPECT_EQ(value_of(collector->collect()->families, kSeries), 1);
}

TEST_F(MmapLockTest, SeatThatSleepsIsNotProbed) {
  const auto collector = make_mmap_lock_collector(
      host_.context("mmap_lock"), std::make_unique<ScriptedProbe>(Answer::kWaits, asked_));
  EXPECT_EQ(value_of(collector->collect()->families, kSeries), 0);
  EXPECT_EQ(asked_, 0);
}

TEST_F(MmapLockTest, FileThatHangsForAnotherReasonIsNoProof) {
  // The helper hangs in a FIFO: it does not wait for a lock.
  write_thread(44, 'D');
  tree_.make_fifo("proc/41/cmdline");
  const auto collector = make_mmap_lock_collector(host_.context("mmap_lock"));
  EXPECT_EQ(value_of(collector->collect()->families, kSeries), 0);
  EXPECT_EQ(host_.source("apu_guarded_read_timeouts_total{file=\"cmdline\"}"), 1);
}

TEST_F(MmapLockTest, WithoutSeatsThereIsNothing) {
  const CollectorHost bare(tree_.path());
  const auto collector = make_mmap_lock_collector(
      bare.context("mmap_lock"), std::make_unique<ScriptedProbe>(Answer::kWaits, asked_));
  EXPECT_TRUE(collector->collect()->families.empty());
}

}  // namespace
}  // namespace apu
