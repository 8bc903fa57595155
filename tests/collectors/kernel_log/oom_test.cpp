#include "collectors/kernel_log/oom.h"

#include <gtest/gtest.h>

namespace apu {
namespace {

constexpr const char* kHostEvent =
    "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,2,global_oom,"
    "task_memcg=/system.slice/llama.service,task=llama-server,pid=4242,uid=997";

TEST(ParseOomEvent, FindsValuesByTheirKeys) {
  const auto event = parse_oom_event(kHostEvent);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->scope, OomScope::kHost);
  EXPECT_EQ(event->victim_cgroup, "/system.slice/llama.service");
  EXPECT_EQ(event->pid, 4242);
}

TEST(ParseOomEvent, TaskNameMayImitateTheLine) {
  const auto event = parse_oom_event(
      "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=a,mems_allowed=0,"
      "oom_memcg=/a,task_memcg=/a/b.service,task=x,oom,pid=1,pid=77,uid=0");
  ASSERT_TRUE(event);
  EXPECT_EQ(event->scope, OomScope::kMemcg);
  EXPECT_EQ(event->victim_cgroup, "/a/b.service");
  EXPECT_EQ(event->pid, 77);
}

TEST(ParseOomEvent, LineThatWasCutOffStillCounts) {
  const auto event = parse_oom_event(
      "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=u,mems_allowed=0,global_oom,"
      "task_memcg=/user.slice/vte>");
  ASSERT_TRUE(event);
  EXPECT_EQ(event->scope, OomScope::kHost);
  EXPECT_FALSE(event->pid);
}

TEST(ParseOomKill, KnowsEachKindOfKill) {
  for (const auto& [message, scope] :
       {std::pair{"Out of memory: Killed process 7 (a) total-vm:1kB", OomScope::kHost},
        std::pair{"Out of memory (oom_kill_allocating_task): Killed process 7 (a) x",
                  OomScope::kHost},
        std::pair{"Memory cgroup out of memory: Killed process 7 (a) x", OomScope::kMemcg}}) {
    const auto kill = parse_oom_kill(message);
    ASSERT_TRUE(kill) << message;
    EXPECT_EQ(kill->scope, scope) << message;
    EXPECT_EQ(kill->pid, 7) << message;
  }
}

TEST(ParseOomKill, WhatKillsNobodyIsNone) {
  for (const char* message :
       {"Memory cgroup out of memory: OOM victim 7 (a) is already exiting. Skip killing the task",
        "oom_reaper: reaped process 7 (Out of memory: Killed process 8), now anon-rss:0kB",
        "x: Out of memory: Killed process 7 (a)", "Out of memory: Killed process x (a)",
        "Out of memory: Kill process 7 (a) score 1 or sacrifice child"}) {
    EXPECT_FALSE(parse_oom_kill(message)) << message;
  }
}

TEST(OomStateTest, KillOfAnotherProcessHasNoKnownUnit) {
  OomState oom;
  oom.fold(kHostEvent, std::nullopt);
  oom.fold("Out of memory: Killed process 4242 (llama-server) x", std::nullopt);
  // Its event's line was not printed: the kernel limits it, and not the kill's.
  oom.fold("Out of memory: Killed process 5000 (other) x", std::nullopt);
  EXPECT_EQ(oom.kills().at({OomScope::kHost, "llama"}).kills, 1U);
  EXPECT_EQ(oom.kills().at({OomScope::kHost, ""}).kills, 1U);
}

TEST(OomStateTest, ProcessIdThatIsUsedAgainIsAnotherKill) {
  OomState oom;
  for (int i = 0; i < 2; ++i) {
    oom.fold(kHostEvent, std::nullopt);
    oom.fold("Out of memory: Killed process 4242 (llama-server) x", std::nullopt);
  }
  EXPECT_EQ(oom.kills().at({OomScope::kHost, "llama"}).kills, 2U);
}

TEST(OomStateTest, UnitsBeyondTheBoundAreTogether) {
  OomState oom;
  for (int i = 0; i < 200; ++i) {
    const std::string number = std::to_string(i);
    oom.fold("oom-kill:constraint=CONSTRAINT_MEMCG,oom_memcg=/a,task_memcg=/s/u" + number +
                 ".service,task=x,pid=" + number + ",uid=0",
             std::nullopt);
    oom.fold("Memory cgroup out of memory: Killed process " + number + " (x) y", std::nullopt);
  }
  EXPECT_LE(oom.kills().size(), OomState::kMaxUnits + 1);
  EXPECT_EQ(oom.kills().at({OomScope::kMemcg, "other"}).kills, 200 - OomState::kMaxUnits);
}

TEST(OomEvent, NamesOfTasksAndCgroupsMoveNoKill) {
  const auto cgroup = [](const std::string& path, const std::string& comm) {
    static std::string line;
    line =
        "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,"
        "task_memcg=" +
        path + ",task=" + comm + ",pid=7,uid=0";
    return std::string(parse_oom_event(line)->victim_cgroup);
  };
  EXPECT_EQ(cgroup("/a.service", "/z.scope,task="), "/a.service");
  EXPECT_EQ(cgroup("/a,task=b,pid=3,uid=4 and more.service", "x"),
            "/a,task=b,pid=3,uid=4 and more.service");
}

}  // namespace
}  // namespace apu
