#include "collectors/units/unit_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace apu {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::uint64_t kInfinity = std::numeric_limits<std::uint64_t>::max();

const LoadedUnit kUnit{"llama.service", "loaded", "active", "running", "/u/llama"};

using Texts = std::vector<std::string>;

Properties typical() {
  return {{"LoadState", std::string("loaded")},
          {"ActiveState", std::string("active")},
          {"SubState", std::string("running")},
          {"UnitFileState", std::string("enabled")},
          {"FragmentPath", std::string("/etc/systemd/system/llama.service")},
          {"DropInPaths", Texts{"/etc/systemd/system/llama.service.d/50-MemoryLow.conf"}},
          {"Wants", Texts{"network-online.target"}},
          {"Requires", Texts{"system.slice", "sysinit.target"}},
          {"BindsTo", Texts{}},
          {"WantedBy", Texts{"multi-user.target"}},
          {"RequiredBy", Texts{}},
          {"NeedDaemonReload", true},
          {"ActiveEnterTimestamp", std::uint64_t{1'800'000'000'500'000}},
          {"InactiveEnterTimestampMonotonic", std::uint64_t{0}},
          {"NRestarts", std::uint64_t{7}},
          {"TimeoutStopUSec", std::uint64_t{90'000'000}},
          {"MainPID", std::uint64_t{4242}},
          {"ControlGroup", std::string("/system.slice/llama.service")},
          {"User", std::string("llm")},
          {"Group", std::string()},
          {"SupplementaryGroups", Texts{"render", "video"}},
          {"Restart", std::string("on-failure")},
          {"Result", std::string("success")},
          {"MemoryMin", std::uint64_t{0}},
          {"MemoryLow", std::uint64_t{1 << 30}},
          {"MemoryHigh", kInfinity},
          {"MemoryMax", kInfinity},
          {"MemorySwapMax", std::uint64_t{0}},
          {"LimitMEMLOCK", kInfinity},
          {"ExecStart", Texts{"/usr/bin/llama-server", "--api-key", "secret", "--port", "8081"}}};
}

TEST(ParseUnit, ReadsWhatAServiceHas) {
  const auto [facts, problems] = parse_unit("1000", kUnit, typical());
  EXPECT_THAT(problems, ElementsAre());
  EXPECT_EQ(facts.id, "llama.service");
  EXPECT_EQ(facts.user, "1000");
  EXPECT_EQ(facts.load_state, "loaded");
  EXPECT_EQ(facts.active_state, "active");
  EXPECT_EQ(facts.sub_state, "running");
  EXPECT_EQ(facts.unit_file_state, "enabled");
  EXPECT_EQ(facts.fragment_path, "/etc/systemd/system/llama.service");
  EXPECT_EQ(facts.drop_in_paths->size(), 1U);
  EXPECT_EQ(facts.wants, Texts{"network-online.target"});
  EXPECT_EQ(facts.needs->size(), 2U);
  EXPECT_EQ(facts.binds_to, Texts{});
  EXPECT_EQ(facts.need_daemon_reload, true);
  EXPECT_EQ(facts.active_since, from_unix_seconds(1.8e9 + 0.5));
  EXPECT_EQ(facts.inactive_since, std::chrono::microseconds(0));
  EXPECT_EQ(facts.restarts, 7U);
  EXPECT_EQ(facts.stop_timeout, 90);
  EXPECT_EQ(facts.main_pid, 4242U);
  EXPECT_EQ(facts.control_group, "/system.slice/llama.service");
  EXPECT_EQ(facts.run_as, "llm");
  EXPECT_EQ(facts.group, "");
  EXPECT_EQ(facts.supplementary_groups, (Texts{"render", "video"}));
  EXPECT_EQ(facts.server->told.port, 8081);
  EXPECT_EQ(facts.wanted_by, Texts{"multi-user.target"});
  EXPECT_EQ(facts.required_by, Texts{});
  EXPECT_EQ(facts.restart, "on-failure");
  EXPECT_EQ(facts.result, "success");
  EXPECT_EQ(facts.limits.at("min").bytes, 0U);
  EXPECT_EQ(facts.limits.at("low").bytes, 1U << 30);
  EXPECT_FALSE(facts.limits.at("high").bytes);
  EXPECT_FALSE(facts.limits.at("max").bytes);
  EXPECT_EQ(facts.limits.at("swap_max").bytes, 0U);
  EXPECT_TRUE(facts.memlock && !facts.memlock->bytes);
}

TEST(ParseUnit, AsksForEachPropertyThatItReads) {
  const Properties properties = typical();
  EXPECT_EQ(unit_properties().size() + service_properties().size(), properties.size());
  for (const auto asked : {unit_properties(), service_properties()}) {
    for (const std::string_view name : asked) {
      EXPECT_TRUE(properties.contains(std::string(name))) << name;
    }
  }
}

TEST(ParseUnit, OfWhichNothingIsToldHasWhatTheListSaid) {
  const auto [facts, problems] = parse_unit("", kUnit, {});
  EXPECT_THAT(problems, ElementsAre());
  EXPECT_EQ(facts.load_state, "loaded");
  EXPECT_EQ(facts.active_state, "active");
  EXPECT_FALSE(facts.unit_file_state || facts.restarts || facts.stop_timeout || facts.wants ||
               facts.need_daemon_reload || facts.active_since || facts.memlock);
  EXPECT_TRUE(facts.limits.empty());
}

TEST(ParseUnit, HasNoValueWhereTheManagerSaysThatThereIsNone) {
  Properties properties = typical();
  properties["UnitFileState"] = std::string();
  properties["ControlGroup"] = std::string();
  properties["MainPID"] = std::uint64_t{0};
  properties["ActiveEnterTimestamp"] = std::uint64_t{0};
  properties["TimeoutStopUSec"] = kInfinity;
  const auto [facts, problems] = parse_unit("", kUnit, properties);
  EXPECT_FALSE(facts.unit_file_state || facts.control_group || facts.main_pid ||
               facts.active_since);
  EXPECT_TRUE(std::isinf(facts.stop_timeout.value_or(0)));
}

TEST(ParseUnit, NamesValuesOfAnotherType) {
  Properties properties = typical();
  properties["NRestarts"] = std::string("7");
  properties["Wants"] = PropertyValue();
  properties["NeedDaemonReload"] = std::uint64_t{1};
  const auto [facts, problems] = parse_unit("", kUnit, properties);
  EXPECT_FALSE(facts.restarts || facts.wants || facts.need_daemon_reload);
  EXPECT_EQ(facts.stop_timeout, 90);
  EXPECT_EQ(problems.size(), 3U);
  EXPECT_THAT(problems, testing::Contains(HasSubstr("llama.service: NRestarts")));
}

TEST(ParseUnit, TakesNoTimeThatNoClockShows) {
  Properties properties = typical();
  properties["ActiveEnterTimestamp"] = kInfinity;
  properties["InactiveEnterTimestampMonotonic"] = kInfinity - 1;
  const auto [facts, problems] = parse_unit("", kUnit, properties);
  EXPECT_FALSE(facts.active_since || facts.inactive_since);
}

}  // namespace
}  // namespace apu
