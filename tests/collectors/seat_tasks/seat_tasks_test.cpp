#include "collectors/seat_tasks/seat_tasks.h"

#include <gtest/gtest.h>

#include "collectors/cgroup/cgroup.h"
#include "collectors/seats/counters.h"
#include "tests/support/collector_host.h"
#include "tests/support/temp_tree.h"

namespace apu {
namespace {

using std::chrono::seconds;

TEST(SurvivingSum, NeverFallsAndCountsNothingTwice) {
  SurvivingSum sum;
  const ProcessIdentity main{41, 410};
  const ProcessIdentity worker{42, 411};
  const auto total = [&](const std::map<ProcessIdentity, std::uint64_t>& values,
                         const std::set<ProcessIdentity>& living) {
    return sum.total(values, [&](const ProcessIdentity& key) { return living.contains(key); });
  };
  EXPECT_EQ(total({{main, 10}, {worker, 5}}, {main, worker}), 15U);
  EXPECT_EQ(total({{main, 11}}, {main, worker}), 16U);               // one that could not be read
  EXPECT_EQ(total({{main, 11}, {worker, 6}}, {main, worker}), 17U);  // and can again
  EXPECT_EQ(total({{main, 11}}, {main}), 17U);                       // it ended,
  EXPECT_EQ(total({{main, 11}, {worker, 6}}, {main, worker}), 17U);  // as it seemed
  EXPECT_EQ(total({{main, 12}, {{42, 999}, 3}}, {main, {42, 999}}), 21U);  // its id used again
  EXPECT_EQ(total({{main, 2}, {{42, 999}, 3}}, {main, {42, 999}}), 23U);   // it began anew
}

/// A thread as its files show it.
struct Thread {
  char state = 'S';
  int user = 0;
  int system = 0;
  int voluntary = 0;
  const char* wchan = "0";
  const char* syscall = "running\n";
};

class SeatTasksTest : public ::testing::Test {
 protected:
  static constexpr std::int64_t kBoot = 1'790'000'000;

  SeatTasksTest() : host_(tree_.path()) {
    tree_.write("proc/stat", "cpu  1 2 3\nbtime " + std::to_string(kBoot) + "\n");
    host_.clock->set(from_unix_seconds(kBoot + 1000));
    set_seat({41});
    write_process(41, {{41, {}}, {44, {}}});
  }

  void set_seat(const std::vector<std::int64_t>& pids, bool on_gpu = true) {
    auto index = std::make_shared<SeatIndex>();
    index->seats.resize(1);
    index->seats[0].name = "llama";
    for (const std::int64_t pid : pids) {
      index->seats[0].processes.push_back({{pid, static_cast<std::uint64_t>(pid * 10)},
                                           "llama-server",
                                           "/system.slice/llama.service",
                                           on_gpu});
    }
    CgroupFacts facts;
    facts.index = index;
    host_.store->put("cgroup", {std::make_shared<const Snapshot>(Snapshot{facts, {}}),
                                host_.clock->now(), std::chrono::steady_clock::now()});
  }

  void write_process(int pid, const std::map<int, Thread>& threads, int reads = 4096) {
    const std::string directory = "proc/" + std::to_string(pid);
    Thread all;
    for (const auto& [tid, thread] : threads) {
      write_thread(directory + "/task/" + std::to_string(tid), pid, tid, thread);
      all.user += thread.user;
      all.system += thread.system;
    }
    write_thread(directory, pid, pid, all);
    tree_.write(directory + "/io", "read_bytes: " + std::to_string(reads) + "\n");
  }

  void write_thread(const std::string& directory, int pid, int tid, const Thread& thread) {
    tree_.write(
        directory + "/stat",
        fmt::format("{} (llama) server) {} 1 1 1 0 -1 0 7 0 3 0 {} {} 0 0 20 0 2 0 {} 0 0 1\n", tid,
                    thread.state, thread.user, thread.system, pid * 10));
    tree_.write(
        directory + "/status",
        fmt::format("Name:\tllama\nRssAnon:\t 2048 kB\nRssFile:\t 1024 kB\nRssShmem:\t 0 kB\n"
                    "VmSwap:\t 4 kB\nVmLck:\t 8 kB\nvoluntary_ctxt_switches:\t{}\n"
                    "nonvoluntary_ctxt_switches:\t1\n",
                    thread.voluntary));
    tree_.write(directory + "/wchan", thread.wchan);
    tree_.write(directory + "/syscall", thread.syscall);
  }

  Families pass(seconds later = seconds(0)) {
    host_.clock->set(host_.clock->now() + later);
    auto snapshot = collector_->collect();
    EXPECT_TRUE(snapshot);
    facts_ = std::any_cast<SeatTasksFacts>(snapshot->facts);
    return snapshot->families;
  }

  TempTree tree_;
  CollectorHost host_;
  std::unique_ptr<Collector> collector_ = make_seat_tasks_collector(host_.context("seat_tasks"));
  SeatTasksFacts facts_;
};

TEST_F(SeatTasksTest, ShowsWhatTheFilesSay) {
  write_process(41, {{41, {'R', 500, 20, 9}}, {44, {'D', 1, 2, 3, "svm_range_evict"}}});
  const Families families = pass();
  const auto value = [&](const char* series) { return value_of(families, series); };
  EXPECT_EQ(value("apu_seat_cpu_seconds_total{seat=\"llama\",mode=\"user\"}"), 5.01);
  EXPECT_EQ(value("apu_seat_cpu_seconds_total{seat=\"llama\",mode=\"system\"}"), 0.22);
  EXPECT_EQ(value("apu_seat_context_switches_total{seat=\"llama\",kind=\"voluntary\"}"), 12);
  EXPECT_EQ(value("apu_seat_page_faults_total{seat=\"llama\",kind=\"minor\"}"), 7);
  EXPECT_EQ(value("apu_seat_page_faults_total{seat=\"llama\",kind=\"major\"}"), 3);
  EXPECT_EQ(value("apu_seat_read_bytes_total{seat=\"llama\"}"), 4096);
  EXPECT_EQ(value("apu_seat_memory_resident_bytes{seat=\"llama\",kind=\"anon\"}"), 2048 * 1024);
  EXPECT_EQ(value("apu_seat_memory_swapped_bytes{seat=\"llama\"}"), 4096);
  EXPECT_EQ(value("apu_seat_memory_locked_bytes{seat=\"llama\"}"), 8192);
  EXPECT_EQ(value("apu_seat_threads{seat=\"llama\",state=\"disk_sleep\"}"), 1);
  EXPECT_EQ(value("apu_seat_threads{seat=\"llama\",state=\"running\"}"), 1);
  EXPECT_EQ(value("apu_seat_blocked_threads{seat=\"llama\",wait=\"kfd\"}"), 1);
  EXPECT_EQ(value("apu_seat_blocked_threads{seat=\"llama\",wait=\"io\"}"), 0);
  EXPECT_EQ(value("apu_seat_start_time_seconds{seat=\"llama\"}"), kBoot + 4.1);
  EXPECT_EQ(value("apu_seat_process_starts_total{seat=\"llama\"}"), 1);
  EXPECT_EQ(host_.source("apu_source_available{source=\"process_io\"}"), 1);
  // What wants two passes is not there in the first.
  EXPECT_FALSE(has_family(families, "apu_seat_spinning_threads"));
}

TEST_F(SeatTasksTest, BusiestThreadIsThatOfTheLastPasses) {
  pass();
  write_process(41, {{41, {'R', 998, 1}}, {44, {}}});
  const Families families = pass(seconds(10));
  EXPECT_NEAR(
      *value_of(families, "apu_seat_hottest_thread_cpu_ratio{seat=\"llama\",mode=\"user\"}"), 0.998,
      1e-9);
  EXPECT_EQ(value_of(families, "apu_seat_spinning_threads{seat=\"llama\"}"), 1);
}

TEST_F(SeatTasksTest, CountersDoNotFallWhenAnEngineIsRestarted) {
  write_process(41, {{41, {'S', 1000, 0, 100}}});
  pass();
  tree_.remove("proc/41");
  set_seat({50});
  write_process(50, {{50, {'S', 5, 0, 2}}}, 100);
  const Families families = pass(seconds(5));
  EXPECT_EQ(value_of(families, "apu_seat_cpu_seconds_total{seat=\"llama\",mode=\"user\"}"), 10.05);
  EXPECT_EQ(
      value_of(families, "apu_seat_context_switches_total{seat=\"llama\",kind=\"voluntary\"}"),
      102);
  EXPECT_EQ(value_of(families, "apu_seat_read_bytes_total{seat=\"llama\"}"), 4196);
  EXPECT_EQ(value_of(families, "apu_seat_process_starts_total{seat=\"llama\"}"), 2);
}

TEST_F(SeatTasksTest, HelperOfAnEngineIsNoStart) {
  pass();
  auto index = std::make_shared<SeatIndex>(
      *std::any_cast<CgroupFacts>(host_.store->newest("cgroup").snapshot->facts).index);
  index->seats[0].processes.push_back({{60, 600}, "curl", "/system.slice/llama.service", false});
  CgroupFacts facts;
  facts.index = index;
  host_.store->put("cgroup", {std::make_shared<const Snapshot>(Snapshot{facts, {}}),
                              host_.clock->now(), std::chrono::steady_clock::now()});
  write_process(60, {{60, {}}});
  EXPECT_EQ(value_of(pass(seconds(5)), "apu_seat_process_starts_total{seat=\"llama\"}"), 1);
  ASSERT_EQ(facts_.seats.at("llama").size(), 2U);
}

TEST_F(SeatTasksTest, WhatIsDeniedIsAbsentAndNamed) {
  tree_.remove("proc/41/io");
  tree_.make_unreadable("proc/41/io");
  const Families families = pass();
  EXPECT_FALSE(has_family(families, "apu_seat_read_bytes_total"));
  EXPECT_EQ(host_.source(
                "apu_source_unavailable_info{source=\"process_io\",reason=\"permission_denied\"}"),
            1);
}

TEST_F(SeatTasksTest, ProcessIdOfAnotherProcessIsNotTaken) {
  tree_.write("proc/41/stat", "41 (cron) S 1 1 1 0 -1 0 7 0 3 0 1 1 0 0 20 0 2 0 999 0 0 1\n");
  const Families families = pass();
  EXPECT_FALSE(has_family(families, "apu_seat_cpu_seconds_total"));
  EXPECT_TRUE(facts_.seats.empty());
}

TEST_F(SeatTasksTest, GarbageIsCountedAndTheRestIsRead) {
  tree_.write("proc/41/task/44/stat", "44 (llama");
  const Families families = pass();
  EXPECT_EQ(host_.parse_errors("procfs"), 1);
  EXPECT_EQ(value_of(families, "apu_seat_threads{seat=\"llama\",state=\"sleeping\"}"), 1);
}

}  // namespace
}  // namespace apu
