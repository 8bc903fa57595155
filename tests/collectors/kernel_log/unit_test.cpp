#include <gtest/gtest.h>

#include <string>

#include "collectors/kernel_log/unit_event.h"
#include "collectors/kernel_log/unit_name.h"

namespace apu {
namespace {

const std::string kId = std::string(64, 'c');

TEST(UnitOfCgroup, IsTheUnitWithAllBelowIt) {
  EXPECT_EQ(unit_of_cgroup("/system.slice/ollama.service"), "ollama");
  EXPECT_EQ(unit_of_cgroup("/system.slice/system-llama.slice/llama@26b.service/engine"),
            "llama@26b");
  EXPECT_EQ(unit_of_cgroup("/system.slice/llama.service/libpod-payload-" + kId), "llama");
  EXPECT_EQ(unit_of_cgroup("/user.slice/user-1000.slice/user@1000.service/app.slice/llama.service"),
            "1000/llama");
  EXPECT_EQ(unit_of_cgroup("/user.slice/user-1000.slice/session-3.scope"), "session-3.scope");
}

TEST(UnitOfCgroup, IsTheShortIdOfAContainer) {
  for (const std::string& path :
       {"/system.slice/docker-" + kId + ".scope", "/docker/" + kId,
        "/machine.slice/libpod-" + kId + ".scope/container",
        "/kubepods.slice/kubepods-burstable.slice/cri-containerd-" + kId + ".scope",
        "/kubepods/burstable/pod11111111-2222-3333-4444-555555555555/" + kId}) {
    EXPECT_EQ(unit_of_cgroup(path), "cccccccccccc") << path;
  }
}

TEST(UnitOfCgroup, ResolvesEscapes) {
  EXPECT_EQ(unit_of_cgroup("/system.slice/llama\\x2dbig.service"), "llama-big");
  EXPECT_EQ(unit_of_cgroup("/system.slice/a\\x2.service"), "a\\x2");
}

TEST(UnitOfCgroup, IsUnknownWhereThePathNamesNone) {
  for (const char* path : {"", "/", "/user.slice", "/user.slice/user-1000.slice/vte>",
                           "/system.slice/llama.service>"}) {
    EXPECT_EQ(unit_of_cgroup(path), "") << path;
  }
}

TEST(ParseUnitEvent, KnowsAKillAndATimeout) {
  const auto kill = parse_unit_event(
      "llama-26b.service: Killing process 41001 (llama-server) with signal SIGKILL.", "");
  ASSERT_TRUE(kill);
  EXPECT_EQ(kill->kind, UnitEventKind::kSigkill);
  EXPECT_EQ(kill->unit, "llama-26b");
  const auto timeout =
      parse_unit_event("llama.service: State 'stop-sigterm' timed out. Killing.", "1000");
  ASSERT_TRUE(timeout);
  EXPECT_EQ(timeout->kind, UnitEventKind::kStopTimeout);
  EXPECT_EQ(timeout->unit, "1000/llama");
}

TEST(ParseUnitEvent, WhatIsNeitherIsNone) {
  for (const char* message :
       {"llama.service: Killing process 1 (x) with signal SIGTERM.",
        "llama.service: Main process exited, code=killed, status=9/KILL",
        "llama.service: start operation timed out. Terminating.",
        "llama.service: State 'start-pre' timed out. Killing.", "Stopping llama.service...",
        "a b.service: Killing process 1 (x) with signal SIGKILL.", ": State 'stop' timed out.",
        ""}) {
    EXPECT_FALSE(parse_unit_event(message, "")) << message;
  }
}

}  // namespace
}  // namespace apu
