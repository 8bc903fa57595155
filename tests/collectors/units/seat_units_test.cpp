#include "collectors/units/seat_units.h"

#include <fnmatch.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace apu {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;
using testing::ElementsAre;

const SeatRules kRules{SeatRules::default_patterns(), 64};

LoadedUnit loaded(const std::string& id, const std::string& active = "active",
                  const std::string& load = "loaded") {
  return {id, load, active, "", "/u"};
}

SeatIndex index_of(const std::vector<std::pair<std::string, std::string>>& seats) {
  SeatIndex index;
  for (const auto& [name, cgroup] : seats) {
    index.seats.push_back({name, parse_seat_place(cgroup), {}});
  }
  return index;
}

std::vector<std::string> names_of(const Choice& choice) {
  std::vector<std::string> names;
  for (const ChosenUnit& unit : choice.units) {
    names.push_back(unit.seat + " " + unit.id);
  }
  return names;
}

// --- patterns

bool takes(const std::string& pattern, const char* unit) {
  return ::fnmatch(manager_pattern(pattern).c_str(), unit, FNM_NOESCAPE) == 0;
}

TEST(ManagerPattern, DoesNotMindCaseNorEscapes) {
  EXPECT_EQ(manager_pattern("*llama2*"), "*[lL][lL][aA][mM][aA]2*.service");
  EXPECT_TRUE(takes("*llama*", "LLaMA-70b.service"));
  EXPECT_TRUE(takes("my seat", "my\\x20seat.service"));
  EXPECT_TRUE(takes("a?c", "a\\x2dc.service"));
  EXPECT_TRUE(takes("seat[0-9]x", "seat7x.service"));
  EXPECT_TRUE(takes("seat[!]a]x", "seatbx.service"));
  EXPECT_TRUE(takes("a\\*", "a\\x2a.service"));
  EXPECT_FALSE(takes("*llama*", "sshd.service"));
  EXPECT_FALSE(takes("*llama*", "llama.socket"));
}

TEST(UnitId, IsTheLastPartOfThePathInItsManagersSlices) {
  const auto id = [](const char* path, const char* user) {
    return unit_id(parse_seat_place(path), user);
  };
  EXPECT_EQ(id("/system.slice/llama\\x2da.service", ""), "llama\\x2da.service");
  EXPECT_EQ(id("/a.slice/a-b.slice/llama.service", ""), "llama.service");
  EXPECT_EQ(id("/llama.service", ""), "llama.service");
  EXPECT_EQ(id("/system.slice/_cgroup.service", ""), "cgroup.service");
  EXPECT_EQ(id("/system.slice/run-1.scope", ""), "run-1.scope");
  const char* users = "/user.slice/user-1000.slice/user@1000.service/app.slice/llama.service";
  EXPECT_EQ(id(users, "1000"), "llama.service");
  EXPECT_FALSE(id(users, ""));
  EXPECT_FALSE(id(users, "100"));
  EXPECT_FALSE(id("/system.slice/llama.service", "1000"));
  EXPECT_FALSE(id("/lxc/101/ns/system.slice/llama.service", ""));
  EXPECT_FALSE(id("/user.slice/user-1000.slice/session-3.scope", ""));
}

// --- the choice

TEST(ChooseUnits, TakesThoseOfTheIndexAndThoseByPattern) {
  const SeatIndex index = index_of(
      {{"engine-2", "/system.slice/engine.service"}, {"llama-2", "/system.slice/llama.service"}});
  const ManagerListing system{
      "",
      {loaded("vllm.service", "failed"), loaded("engine.service"), loaded("llama.service")},
      {}};
  EXPECT_THAT(names_of(choose_units({system}, &index, kRules, {})),
              ElementsAre("engine-2 engine.service", "llama-2 llama.service", "vllm vllm.service"));
}

TEST(ChooseUnits, TakesWhatOnlyItsFileTells) {
  const ManagerListing system{"",
                              {loaded("llama.service")},
                              {{"/etc/systemd/system/llama.service", "enabled"},
                               {"/etc/systemd/system/LLaMA-b.service", "disabled"},
                               {"/etc/systemd/system/llama@.service", "static"},
                               {"/etc/systemd/system/llama-alias.service", "alias"},
                               {"/etc/systemd/system/ssh-llama.socket", "enabled"},
                               {"/etc/systemd/system/sshd.service", "enabled"}}};
  const Choice choice = choose_units({system}, nullptr, kRules, {});
  ASSERT_THAT(names_of(choice), ElementsAre("llama llama.service", "LLaMA-b LLaMA-b.service"));
  EXPECT_EQ(choice.units[1].unit_file_state, "disabled");
  EXPECT_EQ(choice.units[1].fragment_path, "/etc/systemd/system/LLaMA-b.service");
  EXPECT_FALSE(choice.units[1].loaded);
}

TEST(ChooseUnits, LeavesOutWhatIsNoUnitAndTheExporterItself) {
  const ManagerListing system{"",
                              {loaded("llama-gone.service", "inactive", "not-found"),
                               loaded("llama-deleted.service", "active", "not-found"),
                               loaded("apu-exporter.service"), loaded("llama.timer")},
                              {}};
  const SeatRules all{{"*"}, 64};
  const auto own = parse_seat_place("/apu.slice/apu-exporter.service");
  EXPECT_THAT(names_of(choose_units({system}, nullptr, all, own)),
              ElementsAre("llama-deleted llama-deleted.service"));
}

TEST(ChooseUnits, NamesUsersUnitsByUserAndNoNameTwice) {
  const SeatIndex index = index_of({{"llama", "/lxc/1/ns/system.slice/llama.service"}});
  const ManagerListing system{"", {loaded("llama.service", "inactive")}, {}};
  const ManagerListing user{"1000", {loaded("llama.service")}, {}};
  EXPECT_THAT(names_of(choose_units({system, user}, &index, kRules, {})),
              ElementsAre("llama-2 llama.service", "1000/llama llama.service"));
}

TEST(ChooseUnits, PrefersThoseThatRunWhereThereAreTooMany) {
  const SeatIndex index = index_of({{"vllm", "/system.slice/vllm.service"}});
  const ManagerListing system{
      "",
      {loaded("llama-b.service"), loaded("vllm.service"), loaded("llama-a.service")},
      {{"/etc/systemd/system/llama-0.service", "disabled"}}};
  const Choice choice = choose_units({system}, &index, {SeatRules::default_patterns(), 2}, {});
  EXPECT_THAT(names_of(choice), ElementsAre("vllm vllm.service", "llama-a llama-a.service"));
  EXPECT_EQ(choice.omitted, 2U);
}

// --- what follows

struct Derived {
  std::vector<ChosenUnit> chosen;
  std::vector<UnitFacts> facts;

  UnitFacts& add(const std::string& id, const std::string& user = "") {
    chosen.push_back({user + id, user, id, {}, {}, {}});
    UnitFacts unit;
    unit.id = id;
    unit.user = user;
    facts.push_back(unit);
    return facts.back();
  }

  [[nodiscard]] std::vector<SeatUnit> all(const CgroupInput& cgroup = {}) const {
    return derive(chosen, facts, cgroup);
  }
};

TEST(StopTimeout, IsShortBelowTwoMinutes) {
  const auto is_short = [](std::optional<double> timeout) {
    Derived derived;
    derived.add("a.service").stop_timeout = timeout;
    return derived.all()[0].stop_timeout_short;
  };
  EXPECT_EQ(is_short(90), true);
  EXPECT_EQ(is_short(120), false);
  EXPECT_EQ(is_short(std::numeric_limits<double>::infinity()), false);
  EXPECT_EQ(is_short(std::nullopt), std::nullopt);
}

TEST(PullsInSeat, IsToldByEachOfTheThreeDependencies) {
  using Texts = std::vector<std::string>;
  const auto pulls_in = [](std::optional<Texts> wants, std::optional<Texts> needs,
                           std::optional<Texts> binds_to, const std::string& user = "") {
    Derived derived;
    derived.add("b.service");
    UnitFacts& unit = derived.add("a.service", user);
    unit.wants = std::move(wants);
    unit.needs = std::move(needs);
    unit.binds_to = std::move(binds_to);
    return derived.all()[1].pulls_in_seat;
  };
  EXPECT_EQ(pulls_in(Texts{"x.service", "b.service"}, Texts{}, Texts{}), true);
  EXPECT_EQ(pulls_in(Texts{}, Texts{"b.service"}, std::nullopt), true);
  EXPECT_EQ(pulls_in(Texts{}, Texts{}, Texts{"b.service"}), true);
  EXPECT_EQ(pulls_in(Texts{"x.service"}, Texts{"a.service"}, Texts{}), false);
  EXPECT_EQ(pulls_in(Texts{}, std::nullopt, Texts{}), std::nullopt);
  EXPECT_EQ(pulls_in(Texts{"b.service"}, Texts{}, Texts{}, "1000"), false);  // another manager's
}

/// A cgroup that was looked at 100 s after the boot and has processes, or none.
struct Cgroups {
  explicit Cgroups(bool populated, bool in_index = true, std::uint64_t beyond = 0) {
    auto index = std::make_shared<SeatIndex>();
    index->beyond = beyond;
    if (in_index) {
      index->seats.push_back({"a.service", parse_seat_place("/system.slice/a.service"), {}});
    }
    if (populated) {
      index->seats[0].processes.push_back({{41, 410}, "llama-server", "", true});
    }
    facts.index = index;
  }

  [[nodiscard]] CgroupInput input() const {
    return {&facts, steady_clock::time_point(seconds(100))};
  }

  CgroupFacts facts;
};

std::optional<bool> left_behind(const Cgroups& cgroups, const std::string& state,
                                seconds inactive_since = seconds(50)) {
  Derived derived;
  UnitFacts& unit = derived.add("a.service");
  unit.active_state = state;
  unit.inactive_since = inactive_since;
  return derived.all(cgroups.input())[0].inactive_but_populated;
}

TEST(InactiveButPopulated, IsAUnitThatEndedAndLeftProcesses) {
  EXPECT_EQ(left_behind(Cgroups(true), "inactive"), true);
  EXPECT_EQ(left_behind(Cgroups(true), "failed"), true);
  EXPECT_EQ(left_behind(Cgroups(true), "active"), false);
  EXPECT_EQ(left_behind(Cgroups(true), "deactivating"), false);
  EXPECT_EQ(left_behind(Cgroups(false), "inactive"), false);
  EXPECT_EQ(left_behind(Cgroups(false, false), "inactive"), false);
}

TEST(InactiveButPopulated, IsNotToldOfAUnitThatEndedAfterTheCgroupsWereLookedAt) {
  EXPECT_EQ(left_behind(Cgroups(true), "inactive", seconds(101)), std::nullopt);
  EXPECT_EQ(left_behind(Cgroups(true), "inactive", seconds(99)), std::nullopt);
}

TEST(InactiveButPopulated, IsNotToldWithoutTheCgroup) {
  EXPECT_EQ(left_behind(Cgroups(false, false, 3), "inactive"), std::nullopt);
  Derived derived;
  derived.add("a.service").active_state = "inactive";
  EXPECT_EQ(derived.all()[0].inactive_but_populated, std::nullopt);
}

std::map<std::string, bool> differing(const std::map<std::string, MemoryLimit>& units,
                                      const std::map<std::string, MemoryLimit>& kernels,
                                      const std::string& state = "active") {
  Cgroups cgroups(true);
  cgroups.facts.memory["a.service"].limits = kernels;
  Derived derived;
  UnitFacts& unit = derived.add("a.service");
  unit.active_state = state;
  unit.limits = units;
  return derived.all(cgroups.input())[0].limit_differs;
}

TEST(LimitDiffers, ComparesWholePagesOfWhatBothHave) {
  const MemoryLimit none;
  const auto differs =
      differing({{"low", {1'000'000}}, {"high", {8192}}, {"max", none}, {"swap_max", none}},
                {{"low", {999'424}}, {"high", {16384}}, {"max", none}, {"min", none}});
  EXPECT_EQ(differs, (std::map<std::string, bool>{{"low", false}, {"high", true}, {"max", false}}));
  EXPECT_EQ(differing({{"max", none}}, {{"max", {4096}}}).at("max"), true);
}

TEST(LimitDiffers, IsNotToldOfAProtectionThatTheUnitLeavesOpen) {
  EXPECT_TRUE(differing({{"low", {0}}}, {{"low", {4096}}}).empty());
}

TEST(LimitDiffers, IsNotToldOfAUnitThatDoesNotRun) {
  EXPECT_TRUE(differing({{"high", {4096}}}, {{"high", {8192}}}, "failed").empty());
}

TEST(Label, HasNoEscapesAndNoSuffix) {
  Derived derived;
  derived.add("llama\\x20b.service");
  EXPECT_EQ(derived.all()[0].unit, "llama b");
}

}  // namespace
}  // namespace apu
