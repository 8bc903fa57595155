#include "collectors/seats/states.h"

#include <gtest/gtest.h>

namespace apu {
namespace {

using std::chrono::seconds;

constexpr const char* kGpu = "0000:c5:00.0";

TEST(RecentSeries, RisesOverItsWindow) {
  RecentSeries series;
  series.add(seconds(0), 10);
  EXPECT_FALSE(series.rise(seconds(30)));
  series.add(seconds(29), 20);
  EXPECT_FALSE(series.rise(seconds(30)));
  series.add(seconds(40), 50);
  EXPECT_EQ(series.rise(seconds(30)), 40);
  EXPECT_EQ(series.rate(seconds(30)), 1);
  series.add(seconds(40), 99);  // not later
  EXPECT_EQ(series.rise(seconds(30)), 40);
  series.add(seconds(400), 50);
  EXPECT_EQ(series.rise(seconds(60)), 0);
}

class SeatStatesTest : public ::testing::Test {
 protected:
  static constexpr ProcessKey kKey{41, 410};

  SeatStatesTest() {
    auto index = std::make_shared<SeatIndex>();
    index->seats.resize(1);
    index->seats[0].name = "llama";
    index->seats[0].processes = {{kKey, "llama-server", "/system.slice/llama.service", true}};
    cgroup_.index = index;
    KfdProcess process;
    process.pid = kKey.pid;
    process.start_ticks = kKey.start_ticks;
    process.gpus = {{7, kGpu, 1000, 0, std::nullopt}};
    kfd_.processes = {process};
    SeatProcessFacts facts;
    facts.key = kKey;
    facts.comm = "llama-server";
    facts.on_gpu = true;
    facts.start = from_unix_seconds(1000);
    facts.activity.last = ProcessInterval{};
    facts.activity.last->length = seconds(5);
    tasks_.seats["llama"] = {facts};
  }

  SeatStateFacts pass(int time) {
    tasks_.time = seconds(time);
    const StateInputs inputs{&cgroup_, &tasks_, &kfd_, clients_, nullptr, nullptr, &lock_};
    return states_.update(inputs, from_unix_seconds(5000 + time), seconds(time))["llama"];
  }

  CgroupFacts cgroup_;
  SeatTasksFacts tasks_;
  KfdFacts kfd_;
  MmapLockFacts lock_;
  const ClientMemory* clients_ = nullptr;
  SeatStates states_;
};

TEST_F(SeatStatesTest, EvictedTimeThatGoesOnIsThrashing) {
  for (int time = 0; time <= 90; time += 5) {
    kfd_.processes[0].gpus[0].evicted_ms = static_cast<std::uint64_t>(time) * 600;
    pass(time);
  }
  const SeatStateFacts facts = pass(95);
  EXPECT_EQ(facts.state, SeatState::kThrashing);
  EXPECT_EQ(facts.process, kKey);
  ASSERT_FALSE(facts.reasons.empty());
  EXPECT_EQ(facts.reasons[0].source, "evicted_ms");
}

TEST_F(SeatStatesTest, LongEvictionThatEndedIsNone) {
  for (int time = 0; time <= 90; time += 5) {
    kfd_.processes[0].gpus[0].evicted_ms = time < 60 ? 0 : 45'000;
    EXPECT_EQ(pass(time).state, SeatState::kIdle) << time;
  }
}

TEST_F(SeatStatesTest, MemoryThatCannotBeReadForAWhileHasNotGrown) {
  tasks_.seats["llama"][0].activity.watched_from_birth = true;
  ClientMemory readable;
  readable.by_process[kKey][kGpu] = {{"vram", 0}, {"gtt", 10ULL << 30U}};
  ClientMemory half;  // one pool is not known
  half.by_process[kKey][kGpu] = {{"vram", 0}};
  for (int time = 0; time <= 200; time += 5) {
    kfd_.processes[0].gpus[0].vram_bytes.reset();
    if (time < 60 || time > 120) {
      kfd_.processes[0].gpus[0].vram_bytes = 10ULL << 30U;
    }
    const ClientMemory unread;
    clients_ = time < 60 || time > 120 ? &readable : time % 2 == 0 ? &unread : &half;
    EXPECT_EQ(pass(time).state, SeatState::kIdle) << time;
  }
}

TEST_F(SeatStatesTest, GpuMemoryThatGrowsIsALoad) {
  tasks_.seats["llama"][0].activity.watched_from_birth = true;
  ClientMemory clients;
  clients_ = &clients;
  for (int time = 0; time <= 40; time += 5) {
    clients.by_process[kKey][kGpu] = {{"vram", 0},
                                      {"gtt", static_cast<std::uint64_t>(time) << 20U}};
    pass(time);
  }
  EXPECT_EQ(pass(45).state, SeatState::kLoading);
}

TEST_F(SeatStatesTest, HeldLockIsOfItsProcess) {
  lock_.processes = {{99, 1}};
  EXPECT_EQ(pass(0).state, SeatState::kIdle);
  lock_.processes = {kKey};
  EXPECT_EQ(pass(5).state, SeatState::kThrashing);
}

TEST_F(SeatStatesTest, HealthIsOfItsProcess) {
  SeatHealthFacts health;
  health.evidence[{99, 1}] = HealthEvidence{true, seconds(500)};
  const auto state_with = [&](int time) {
    tasks_.time = seconds(time);
    StateInputs inputs{&cgroup_, &tasks_, &kfd_, clients_, nullptr, nullptr, &lock_};
    inputs.health = &health;
    return states_.update(inputs, from_unix_seconds(5000 + time), seconds(time)).at("llama").state;
  };
  EXPECT_EQ(state_with(0), SeatState::kIdle);
  health.evidence[kKey] = HealthEvidence{true, seconds(119)};
  EXPECT_EQ(state_with(5), SeatState::kIdle);
  health.evidence[kKey] = HealthEvidence{true, seconds(120)};
  EXPECT_EQ(state_with(10), SeatState::kStalled);
}

TEST_F(SeatStatesTest, TimeIsCountedByState) {
  pass(0);
  lock_.processes = {kKey};
  pass(10);
  SeatStateFacts facts = pass(30);
  EXPECT_EQ(facts.seconds.at(SeatState::kIdle), 10);
  EXPECT_EQ(facts.seconds.at(SeatState::kThrashing), 20);
  EXPECT_EQ(facts.since, from_unix_seconds(5010));
  auto index = std::make_shared<SeatIndex>(*cgroup_.index);
  index->seats[0].processes.clear();
  cgroup_.index = index;
  tasks_.seats.clear();
  facts = pass(40);
  EXPECT_EQ(facts.state, SeatState::kDown);
  EXPECT_FALSE(facts.process);
  EXPECT_EQ(facts.seconds.at(SeatState::kThrashing), 30);
}

TEST_F(SeatStatesTest, HelperBesideTheEngineDoesNotCount) {
  SeatProcessFacts helper = tasks_.seats["llama"][0];
  helper.key = {60, 600};
  helper.on_gpu = false;
  helper.activity.blocked = seconds(300);
  tasks_.seats["llama"].push_back(helper);
  EXPECT_EQ(pass(0).state, SeatState::kIdle);
  tasks_.seats["llama"][0].on_gpu = false;
  EXPECT_EQ(pass(5).state, SeatState::kBlocked);
}

TEST_F(SeatStatesTest, ResumeThatFailedBeforeTheStartIsAnothersSeats) {
  KernelLogFacts log;
  LogRecord record;
  record.origin = Origin::kKernel;
  record.message = "amdgpu: amdgpu_amdkfd_restore_userptr_worker: Failed to resume KFD";
  tasks_.seats["llama"][0].activity.watched_from_birth = true;
  tasks_.seats["llama"][0].activity.blocked = seconds(40);
  log.log.fold(record, from_unix_seconds(900));
  const auto state_with = [&](const KernelLogFacts& facts) {
    SeatStates states;
    tasks_.time = seconds(5);
    const StateInputs inputs{&cgroup_, &tasks_, &kfd_, nullptr, &facts, nullptr, &lock_};
    return states.update(inputs, from_unix_seconds(5000), seconds(5)).at("llama").state;
  };
  EXPECT_EQ(state_with(log), SeatState::kBlocked);
  log.log.fold(record, from_unix_seconds(1100));
  ASSERT_FALSE(log.log.events().empty());
  EXPECT_EQ(state_with(log), SeatState::kThrashing);
}

TEST(RestoreKworkers, AreThoseOnTheQueuesOfTheRestoreWorkers) {
  KworkersFacts kworkers;
  kworkers.seconds_by_workqueue = {
      {"events_freezable", 5}, {"kfd_restore_wq", 2}, {"events", 1}, {"mm_percpu_wq", 100}};
  EXPECT_EQ(restore_kworker_seconds(kworkers), 7) << "events is every driver's";
  kworkers.seconds_by_workqueue.erase("events_freezable");
  EXPECT_EQ(restore_kworker_seconds(kworkers), 3) << "where there is nothing better";
}

}  // namespace
}  // namespace apu
