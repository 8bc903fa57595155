#include "checks/seat_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace apu {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// A seat as it should be, and one thing after another that is wrong with it.
class SeatChecksTest : public testing::Test {
 protected:
  SeatChecksTest() {
    auto index = std::make_shared<SeatIndex>();
    Seat seat{"llama", parse_seat_place("/system.slice/llama.service"), {}};
    seat.processes.push_back({{10, 100}, "llama-server", seat.place.cgroup, true});
    index->seats = {seat};
    cgroup_.index = index;
    config_.processes[{10, 100}].mmap = Setting::kOff;
    SeatUnit unit;
    unit.seat = unit.unit = "llama";
    unit.facts.id = "llama.service";
    unit.facts.unit_file_state = "enabled";
    unit.facts.need_daemon_reload = false;
    unit.facts.stop_timeout = 180;
    unit.stop_timeout_short = false;
    unit.pulls_in_seat = false;
    unit.inactive_but_populated = false;
    unit.limit_differs = {{"low", false}, {"max", false}};
    units_.units = {unit};
    budgets_.seats["llama"] = {{{"high", false}, {"max", false}}, {{"low", false}}, false};
    users_.seats["llama"] = {"llama", "/var/lib/llama", true, "", std::nullopt};
  }

  SeatUnit& unit() { return units_.units[0]; }

  SeatBudget& budget() { return budgets_.seats["llama"]; }

  ServerConfig& config() { return config_.processes[{10, 100}]; }

  Checks checks() {
    const SeatCheckInputs inputs{&cgroup_,       &kfd_,           &units_, "",
                                 &budgets_,      &config_,        &users_, &ports_,
                                 {patterns_, 0}, {allow_mmap_, 0}};
    return check_seats(inputs);
  }

  Check check(const std::string& name) {
    for (const Check& each : checks()) {
      if (each.name == name) {
        return each;
      }
    }
    return {"none", "", CheckResult::kPass, ""};
  }

  /// The names of those that came out so.
  std::vector<std::string> names(CheckResult result) {
    std::vector<std::string> names;
    for (const Check& each : checks()) {
      if (each.result == result) {
        names.push_back(each.name);
      }
    }
    return names;
  }

  std::vector<std::string> failed() { return names(CheckResult::kFail); }

  CgroupFacts cgroup_;
  KfdFacts kfd_;
  UnitsFacts units_;
  BudgetsFacts budgets_;
  SeatConfigFacts config_;
  ServiceUsersFacts users_;
  SeatPortsFacts ports_;
  std::vector<std::string> patterns_{"llama*"};
  std::vector<std::string> allow_mmap_;
};

TEST_F(SeatChecksTest, SeatAsItShouldBePassesAll) {
  EXPECT_THAT(names(CheckResult::kPass),
              ElementsAre("enabled", "home_traversable", "unit_loaded", "stop_timeout",
                          "wants_no_seat", "no_leftovers", "budget_loaded", "budget_set",
                          "budget_effective", "budget_fits_need", "mmap_off"));
  EXPECT_EQ(checks().size(), 11U);
}

TEST_F(SeatChecksTest, UnitThatDoesNotStartAtBootFails) {
  for (const char* state : {"disabled", "masked", "linked", "bad", "enabled-runtime"}) {
    unit().facts.unit_file_state = state;
    EXPECT_THAT(failed(), ElementsAre("enabled")) << state;
  }
  EXPECT_THAT(check("enabled").why, HasSubstr("systemctl enable llama.service"));
  unit().facts.user = "1000";
  EXPECT_THAT(check("enabled").why, HasSubstr("systemctl --user -M 1000@ enable llama.service"));
}

TEST_F(SeatChecksTest, WhatOthersStartIsNotKnown) {
  unit().facts.unit_file_state = "static";
  EXPECT_EQ(check("enabled").result, CheckResult::kUnknown);
  unit().facts.unit_file_state = "disabled";
  unit().facts.wanted_by = {"fleet.target"};
  EXPECT_EQ(check("enabled").result, CheckResult::kUnknown);
  EXPECT_THAT(check("enabled").why, HasSubstr("it starts with fleet.target"));
  unit().facts.unit_file_state = "generated";  // by Podman, from a .container file
  EXPECT_EQ(check("enabled").result, CheckResult::kPass);
  unit().facts.wanted_by.reset();
  EXPECT_EQ(check("enabled").result, CheckResult::kUnknown) << "it has no [Install]";
  unit().facts.unit_file_state.reset();
  EXPECT_EQ(check("enabled").result, CheckResult::kUnknown);
}

TEST_F(SeatChecksTest, WhatTheServiceManagerSaysIsJudged) {
  unit().facts.need_daemon_reload = true;
  unit().stop_timeout_short = true;
  unit().facts.stop_timeout = 90;
  unit().pulls_in_seat = true;
  unit().inactive_but_populated = true;
  EXPECT_THAT(failed(),
              ElementsAre("unit_loaded", "stop_timeout", "wants_no_seat", "no_leftovers"));
  EXPECT_THAT(check("stop_timeout").why, HasSubstr("TimeoutStopSec= is 90 s"));
}

TEST_F(SeatChecksTest, UsersHomeAndManagerAreJudged) {
  users_.seats["llama"].home_traversable = false;
  users_.seats["llama"].home_why = "llama may not search /home/alice";
  EXPECT_THAT(failed(), ElementsAre("home_traversable"));
  EXPECT_EQ(check("home_traversable").why, "llama may not search /home/alice");
  EXPECT_EQ(check("user_lingers").name, "none") << "PID 1 needs no login";
  unit().facts.user = "1000";
  users_.seats["llama"].lingers = false;
  EXPECT_THAT(failed(), ElementsAre("home_traversable", "user_lingers"));
  users_.seats.clear();
  EXPECT_EQ(check("home_traversable").result, CheckResult::kUnknown);
}

TEST_F(SeatChecksTest, BudgetIsJudged) {
  unit().limit_differs["swap_max"] = true;
  budget().protection_voided["low"] = true;
  budget().below_need["high"] = true;
  EXPECT_THAT(failed(), ElementsAre("budget_loaded", "budget_effective", "budget_fits_need"));
  EXPECT_THAT(check("budget_loaded").why, HasSubstr("memory.swap.max of its cgroup"));
  budget() = {{}, {}, true};
  unit().limit_differs.clear();
  EXPECT_THAT(failed(), ElementsAre("budget_set"));
  EXPECT_EQ(check("budget_effective").name, "none");
  EXPECT_EQ(check("budget_fits_need").result, CheckResult::kUnknown);
}

TEST_F(SeatChecksTest, SeatThatDoesNotRunIsJudgedByItsUnit) {
  cgroup_.index = std::make_shared<SeatIndex>();
  budgets_.seats.clear();
  unit().limit_differs.clear();
  unit().facts.limits = {{"min", {0U}}, {"low", {0U}}};
  EXPECT_THAT(failed(), ElementsAre("budget_set"));
  unit().facts.limits["low"] = {std::nullopt};  // infinity
  EXPECT_EQ(check("budget_set").result, CheckResult::kPass);
}

TEST_F(SeatChecksTest, MappedModelFailsUnlessItIsAllowed) {
  for (const Setting setting : {Setting::kOn, Setting::kDefault}) {
    config().mmap = setting;
    EXPECT_THAT(failed(), ElementsAre("mmap_off"));
  }
  EXPECT_THAT(check("mmap_off").why, HasSubstr("by default"));
  allow_mmap_ = {"other", "LLAMA*"};
  EXPECT_THAT(failed(), ElementsAre());
  allow_mmap_.clear();
  config().mmap = Setting::kUnknown;
  EXPECT_EQ(check("mmap_off").result, CheckResult::kUnknown);
}

TEST_F(SeatChecksTest, TheWorstOfASeatsServersDecides) {
  auto index = std::make_shared<SeatIndex>(*cgroup_.index);
  Seat& seat = index->seats[0];
  seat.processes.push_back({{11, 110}, "llama-server", seat.place.cgroup, true});
  seat.processes.push_back({{12, 120}, "sh", seat.place.cgroup, false});
  cgroup_.index = index;
  config_.processes[{11, 110}].mmap = Setting::kOn;
  EXPECT_THAT(failed(), ElementsAre("mmap_off"));
  config_.processes[{11, 110}].mmap = Setting::kUnknown;
  EXPECT_EQ(check("mmap_off").result, CheckResult::kUnknown);
  config_.processes[{11, 110}].mmap = Setting::kOff;
  config_.processes[{12, 120}].mmap = Setting::kOn;
  EXPECT_EQ(check("mmap_off").result, CheckResult::kPass) << "a wrapper loads nothing";
}

TEST_F(SeatChecksTest, WithoutAServiceManagerUnitsAreNotKnownAndContainersNotAsked) {
  auto index = std::make_shared<SeatIndex>(*cgroup_.index);
  index->seats.push_back({"4f2b", parse_seat_place("/docker/4f2b"), {}});
  index->seats[1].place.kind = SeatKind::kContainer;
  index->seats[1].processes.push_back({{20, 200}, "python3", "/docker/4f2b", true});
  cgroup_.index = index;
  SeatCheckInputs inputs;
  inputs.cgroup = &cgroup_;
  inputs.units_missing = "dbus: not_found";
  kfd_.processes.push_back({20, KfdProcessState::kAlive, "python3", 200, std::nullopt, {}});
  inputs.kfd = &kfd_;
  inputs.servers.patterns = {"llama*"};
  size_t of_unit = 0;
  for (const Check& each : check_seats(inputs)) {
    EXPECT_EQ(each.result, CheckResult::kUnknown) << each.name;
    of_unit += each.why == "dbus: not_found" ? 1 : 0;
    EXPECT_TRUE(each.seat == "llama" || each.name == "mmap_off");
  }
  EXPECT_EQ(of_unit, 6U);
}

TEST_F(SeatChecksTest, PortThatAnotherHoldsFails) {
  ports_.seats["llama"] = {8080, true, 4711, "llama\x1b", "/user.slice"};
  EXPECT_THAT(failed(), ElementsAre("port_free"));
  EXPECT_THAT(check("port_free").why, HasSubstr("process 4711 (llama ) in /user.slice"));
  ports_.seats["llama"].held_by_other.reset();
  EXPECT_EQ(check("port_free").result, CheckResult::kUnknown);
  ports_.seats["llama"].held_by_other = false;
  EXPECT_EQ(check("port_free").result, CheckResult::kPass);
}

TEST_F(SeatChecksTest, DesktopIsAskedNothing) {
  patterns_ = {"vllm*"};
  EXPECT_EQ(checks().size(), 11U) << "its server is known";
  config() = ServerConfig();
  EXPECT_EQ(checks().size(), 0U);
  kfd_.processes.push_back({10, KfdProcessState::kAlive, "x", 99, std::nullopt, {}});
  EXPECT_EQ(checks().size(), 0U) << "another process had the id";
  kfd_.processes[0].start_ticks = 100;
  EXPECT_EQ(checks().size(), 11U);
}

}  // namespace
}  // namespace apu
