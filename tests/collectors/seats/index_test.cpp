#include "collectors/seats/index.h"

#include <gtest/gtest.h>

namespace apu {
namespace {

SeatProcess process(std::int64_t pid, const std::string& cgroup, bool on_gpu = true,
                    std::uint64_t start = 0, const std::string& command = "llama-server") {
  return {{pid, start == 0 ? static_cast<std::uint64_t>(pid) : start}, command, cgroup, on_gpu};
}

std::vector<std::string> names_of(const SeatIndex& index) {
  std::vector<std::string> names;
  for (const Seat& seat : index.seats) {
    names.push_back(seat.name);
  }
  return names;
}

SeatRules rules(size_t max = 64) {
  return {SeatRules::default_patterns(), max};
}

constexpr const char* kSession = "/user.slice/user-1000.slice/session-2.scope";

TEST(SeatIndex, EveryCgroupWithAGpuProcessIsASeat) {
  SeatNamer namer(rules());
  const auto index = namer.update(
      {process(1, "/system.slice/a.service"), process(2, "/system.slice/a.service", false),
       process(3, "/system.slice/b.service"), process(4, "/system.slice/sshd.service", false)},
      {});
  EXPECT_EQ(names_of(*index), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(index->seats[0].processes.size(), 2U);
  EXPECT_EQ(index->find({2, 2})->name, "a");
  EXPECT_EQ(index->find({4, 4}), nullptr);
  EXPECT_EQ(index->find({2, 99}), nullptr);  // another process of that id
}

TEST(SeatIndex, UnitOfTheModelServersIsOneWithoutAProcess) {
  SeatNamer namer(rules());
  const auto index =
      namer.update({}, {"/system.slice/llama-26b.service", "/system.slice/ssh.service",
                        "/user.slice/user-1000.slice/user@1000.service/app.slice/Ollama.service"});
  EXPECT_EQ(names_of(*index), (std::vector<std::string>{"1000/Ollama", "llama-26b"}));
  EXPECT_TRUE(index->seats[0].processes.empty());
}

TEST(SeatIndex, PatternsMatchWithAndWithoutTheSuffix) {
  const SeatRules rules{{"ollama.service", "llama@*", "x.scope"}};
  EXPECT_TRUE(rules.matches("ollama"));
  EXPECT_TRUE(rules.matches("llama@1"));
  EXPECT_TRUE(rules.matches("x.scope"));
  EXPECT_FALSE(rules.matches("x"));
}

TEST(SeatIndex, ContainerOfAUnitIsKnownByItsProcess) {
  SeatNamer namer(rules());
  const std::string id(64, 'c');
  const auto index = namer.update({process(1, "/system.slice/llama.service/libpod-payload-" + id)},
                                  {"/system.slice/llama.service"});
  ASSERT_EQ(index->seats.size(), 1U);
  EXPECT_EQ(index->seats[0].place.container_id, id);
}

TEST(SeatIndex, SessionIsPartedByCommand) {
  SeatNamer namer(rules());
  const auto index = namer.update({process(1, kSession), process(2, kSession, true, 0, "python3"),
                                   process(3, kSession, false, 0, "bash")},
                                  {});
  EXPECT_EQ(names_of(*index), (std::vector<std::string>{"1000/llama-server", "1000/python3"}));
}

TEST(SeatIndex, NamesThatClashAreNumberedByAgeAndStay) {
  SeatNamer namer(rules());
  const std::string first = "/system.slice/llama.service";
  const std::string second = "/lxc.payload.ct1/system.slice/llama.service";
  const auto name_at = [](const SeatIndex& index, const std::string& cgroup) {
    for (const Seat& seat : index.seats) {
      if (seat.place.cgroup == cgroup) {
        return seat.name;
      }
    }
    return std::string();
  };
  const auto both = namer.update({process(7, second), process(5, first)}, {});
  EXPECT_EQ(name_at(*both, first), "llama");
  EXPECT_EQ(name_at(*both, second), "llama-2");
  // The older one ends and comes again: the other keeps the name that its series have.
  EXPECT_EQ(name_at(*namer.update({process(7, second)}, {}), second), "llama-2");
  const auto again = namer.update({process(7, second), process(9, first)}, {});
  EXPECT_EQ(name_at(*again, first), "llama");
  EXPECT_EQ(name_at(*again, second), "llama-2");
}

TEST(SeatIndex, RestartedProcessLeavesTheNameToItsUnit) {
  SeatNamer namer(rules());
  const std::vector<std::string> units{"/system.slice/llama.service"};
  namer.update({process(5, units[0])}, units);
  EXPECT_EQ(names_of(*namer.update({}, units)), std::vector<std::string>{"llama"});
  EXPECT_EQ(names_of(*namer.update({process(8, units[0])}, units)),
            std::vector<std::string>{"llama"});
}

TEST(SeatIndex, BeyondTheLimitSeatsOnTheGpuComeFirstAndUnitsBeforeSessions) {
  SeatNamer namer(rules(2));
  namer.update({}, {"/system.slice/llama-idle.service", "/system.slice/llama-other.service"});
  const auto index =
      namer.update({process(1, kSession), process(2, "/system.slice/a.service"),
                    process(3, "/system.slice/b.service")},
                   {"/system.slice/llama-idle.service", "/system.slice/llama-other.service"});
  EXPECT_EQ(names_of(*index), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(index->beyond, 3U);
}

TEST(SeatIndex, NamesThatDifferInNoTextAreNumbered) {
  SeatNamer namer(rules());
  const auto index = namer.update(
      {process(1, kSession, true, 0, "\xfe"), process(2, kSession, true, 0, "\xff")}, {});
  EXPECT_EQ(names_of(*index),
            (std::vector<std::string>{"1000/\xef\xbf\xbd", "1000/\xef\xbf\xbd-2"}));
}

TEST(SeatIndex, BeyondTheLimitOldSeatsStayAndNewOnesAreCounted) {
  SeatNamer namer(rules(2));
  namer.update({process(5, "/system.slice/b.service"), process(6, "/system.slice/c.service")}, {});
  const auto index =
      namer.update({process(7, "/system.slice/a.service"), process(5, "/system.slice/b.service"),
                    process(6, "/system.slice/c.service")},
                   {});
  EXPECT_EQ(names_of(*index), (std::vector<std::string>{"b", "c"}));
  EXPECT_EQ(index->beyond, 1U);
}

TEST(SeatRules, PatternsAreShellPatternsWithoutCase) {
  const SeatRules own{{"qwen-*"}, 64};
  EXPECT_TRUE(own.matches("Qwen-32b"));
  EXPECT_FALSE(own.matches("llama"));
  EXPECT_TRUE(rules().matches("my-llama-server@1"));
  EXPECT_TRUE(rules().matches("ComfyUI"));
  EXPECT_FALSE(rules().matches("postgresql"));
}

}  // namespace
}  // namespace apu
