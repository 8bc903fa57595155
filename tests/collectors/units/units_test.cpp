#include "collectors/units/units.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collectors/cgroup/cgroup.h"
#include "tests/support/collector_host.h"
#include "tests/support/temp_tree.h"

namespace apu {
namespace {

using testing::Contains;
using Texts = std::vector<std::string>;

/// What the managers of a host would say, and what they were asked.
struct FakeHost {
  struct Manager {
    std::vector<LoadedUnit> units;
    std::vector<UnitFile> files;
    std::map<std::string, Properties> properties;  // by id
    Status connect_error;
    Status list_error;
    Status property_error;
    bool alive = true;
    int connects = 0;
    int file_lists = 0;
    Texts patterns;
  };

  std::map<std::string, Manager> managers;  // by user
};

class FakeManager : public ServiceManager {
 public:
  explicit FakeManager(FakeHost::Manager& manager) : manager_(manager) {}

  bool alive() override { return manager_.alive; }

  Result<std::vector<LoadedUnit>> list_units(const Texts& patterns, Deadline /*end*/) override {
    manager_.patterns = patterns;
    if (manager_.list_error) {
      return *manager_.list_error;
    }
    return manager_.units;
  }

  Result<std::vector<UnitFile>> list_unit_files(const Texts& /*patterns*/,
                                                Deadline /*end*/) override {
    ++manager_.file_lists;
    return manager_.files;
  }

  Result<Properties> properties(const LoadedUnit& unit, Deadline /*end*/) override {
    if (manager_.property_error) {
      return *manager_.property_error;
    }
    return manager_.properties[unit.id];
  }

 private:
  FakeHost::Manager& manager_;
};

class FakeManagers : public ServiceManagers {
 public:
  explicit FakeManagers(FakeHost& host) : host_(host) {}

  [[nodiscard]] Texts users() const override {
    Texts users;
    for (const auto& [user, manager] : host_.managers) {
      if (!user.empty()) {
        users.push_back(user);
      }
    }
    return users;
  }

  Result<std::unique_ptr<ServiceManager>> connect(const std::string& user,
                                                  Deadline /*end*/) override {
    if (!host_.managers.contains(user)) {
      return Error{ErrorKind::kNotFound, "no manager"};
    }
    FakeHost::Manager& manager = host_.managers.at(user);
    ++manager.connects;
    manager.alive = true;
    if (manager.connect_error) {
      return *manager.connect_error;
    }
    return std::unique_ptr<ServiceManager>(std::make_unique<FakeManager>(manager));
  }

 private:
  FakeHost& host_;
};

const Error kBlockedError{ErrorKind::kBlocked, "no answer in time"};

class Units : public testing::Test {
 protected:
  Units() {
    system().units = {{"llama.service", "loaded", "active", "running", "/u"}};
    system().properties["llama.service"] = {{"NRestarts", std::uint64_t{3}},
                                            {"TimeoutStopUSec", std::uint64_t{90'000'000}},
                                            {"UnitFileState", std::string("enabled")},
                                            {"MemoryMax", ~std::uint64_t{0}},
                                            {"MemoryLow", std::uint64_t{4096}}};
  }

  FakeHost::Manager& system() { return managers.managers[""]; }

  FakeHost::Manager& user() { return managers.managers["1000"]; }

  /// A seat in a unit of user 1000.
  void put_user_seat() {
    auto index = std::make_shared<SeatIndex>();
    const std::string path =
        "/user.slice/user-1000.slice/user@1000.service/app.slice/engine.service";
    index->seats.push_back({"1000/engine", parse_seat_place(path), {}});
    CgroupFacts facts;
    facts.index = index;
    host.store->put("cgroup",
                    {std::make_shared<const Snapshot>(Snapshot{facts, {}}), host.clock->now(),
                     std::chrono::steady_clock::now(), std::chrono::seconds(15)});
  }

  Result<Snapshot> pass() { return collector->collect(); }

  Families families() {
    auto snapshot = pass();
    EXPECT_TRUE(snapshot.ok());
    return snapshot ? snapshot->families : Families();
  }

  [[nodiscard]] std::optional<double> unavailable(const std::string& source,
                                                  const std::string& reason) const {
    return host.source("apu_source_unavailable_info{source=\"" + source + "\",reason=\"" + reason +
                       "\"}");
  }

  TempTree tree;
  CollectorHost host{tree.path()};
  FakeHost managers;
  std::unique_ptr<Collector> collector =
      make_units_collector(host.context("units"), std::make_unique<FakeManagers>(managers));
};

std::string series(const std::string& name, const std::string& more = "") {
  return "apu_seat_unit_" + name + "{seat=\"llama\",unit=\"llama\"" + more + "}";
}

TEST_F(Units, ArePrintedAsTheManagerHasThem) {
  const Families all = families();
  EXPECT_EQ(value_of(all, series("restarts_total")), 3);
  EXPECT_EQ(value_of(all, series("active_state", ",state=\"active\"")), 1);
  EXPECT_EQ(value_of(all, series("active_state", ",state=\"failed\"")), 0);
  EXPECT_EQ(value_of(all, series("active_state", ",state=\"other\"")), 0);
  EXPECT_EQ(value_of(all, series("enabled")), 1);
  EXPECT_EQ(value_of(all, series("stop_timeout_seconds")), 90);
  EXPECT_EQ(value_of(all, series("stop_timeout_short")), 1);
  EXPECT_EQ(value_of(all, series("memory_limit_bytes", ",limit=\"low\"")), 4096);
  EXPECT_EQ(value_of(all, series("memory_limit_bytes", ",limit=\"max\"")),
            std::numeric_limits<double>::infinity());
  EXPECT_EQ(value_of(all, "apu_seat_units_omitted"), 0);
  EXPECT_FALSE(has_family(all, "apu_seat_unit_need_daemon_reload"));  // it was not told
  EXPECT_EQ(host.source("apu_source_available{source=\"dbus\"}"), 1);
  EXPECT_FALSE(host.source("apu_source_available{source=\"dbus_user\"}"));
}

TEST(UnitsFamilies, EachMetricIsPrinted) {
  SeatUnit unit;
  unit.seat = unit.unit = "llama";
  unit.facts.active_state = "active";
  unit.facts.unit_file_state = "enabled";
  unit.facts.active_since = from_unix_seconds(1.8e9);
  unit.facts.restarts = 1;
  unit.facts.stop_timeout = 90;
  unit.facts.need_daemon_reload = true;
  unit.facts.limits["low"] = {4096};
  unit.stop_timeout_short = unit.pulls_in_seat = unit.inactive_but_populated = true;
  unit.limit_differs["low"] = true;
  const Families all = to_families(UnitsFacts{{unit}, 0});
  for (const MetricInfo& info : units_metrics()) {
    EXPECT_TRUE(has_family(all, info.name)) << info.name;
  }
  EXPECT_EQ(value_of(all, series("active_timestamp_seconds")), 1.8e9);
  EXPECT_EQ(value_of(all, series("memory_limit_differs", ",limit=\"low\"")), 1);
}

TEST_F(Units, StateThatIsNewIsOther) {
  system().units[0].active_state = "refreshing";
  const Families all = families();
  EXPECT_EQ(value_of(all, series("active_state", ",state=\"active\"")), 0);
  EXPECT_EQ(value_of(all, series("active_state", ",state=\"other\"")), 1);
}

TEST_F(Units, EnabledIsToldOnlyOfThoseThatCanBe) {
  const auto enabled = [&](const std::string& state) {
    system().properties["llama.service"]["UnitFileState"] = state;
    return value_of(families(), series("enabled"));
  };
  EXPECT_EQ(enabled("enabled-runtime"), 1);
  EXPECT_EQ(enabled("disabled"), 0);
  EXPECT_EQ(enabled("masked"), 0);
  for (const char* state : {"static", "generated", "transient", "indirect", ""}) {
    EXPECT_FALSE(enabled(state)) << state;
  }
}

TEST_F(Units, ThatAreNotLoadedAreInactive) {
  system().units.clear();
  system().files = {{"/etc/systemd/system/llama.service", "disabled"}};
  const Families all = families();
  EXPECT_EQ(value_of(all, series("active_state", ",state=\"inactive\"")), 1);
  EXPECT_EQ(value_of(all, series("enabled")), 0);
  EXPECT_FALSE(has_family(all, "apu_seat_unit_restarts_total"));
}

TEST_F(Units, FilesAreListedInOnePassOfTen) {
  for (int i = 0; i < 11; ++i) {
    ASSERT_TRUE(pass().ok());
  }
  EXPECT_EQ(system().file_lists, 2);
}

TEST_F(Units, AConnectionIsKeptAndReplacedOnceItIsDead) {
  ASSERT_TRUE(pass().ok());
  ASSERT_TRUE(pass().ok());
  EXPECT_EQ(system().connects, 1);
  system().alive = false;  // the bus was restarted
  ASSERT_TRUE(pass().ok());
  EXPECT_EQ(system().connects, 2);
}

TEST_F(Units, AConnectionIsDroppedAfterAnError) {
  system().list_error = kBlockedError;
  EXPECT_FALSE(pass().ok());
  EXPECT_EQ(unavailable("dbus", "blocked"), 1);
  system().list_error.reset();
  ASSERT_TRUE(pass().ok());
  EXPECT_EQ(system().connects, 2);
  EXPECT_EQ(host.source("apu_source_available{source=\"dbus\"}"), 1);
}

TEST_F(Units, FailWithTheReasonWhereThereIsNoManager) {
  managers.managers.erase("");
  EXPECT_FALSE(pass().ok());
  EXPECT_EQ(unavailable("dbus", "not_found"), 1);
}

TEST_F(Units, ValuesOfAnotherTypeAreParseErrorsAndAbsent) {
  system().properties["llama.service"]["NRestarts"] = std::string("many");
  const Families all = families();
  EXPECT_FALSE(has_family(all, "apu_seat_unit_restarts_total"));
  EXPECT_EQ(value_of(all, series("stop_timeout_seconds")), 90);
  EXPECT_EQ(host.parse_errors("dbus"), 1);
}

TEST_F(Units, OfUsersAreAskedOfTheirManager) {
  put_user_seat();
  user().units = {{"engine.service", "loaded", "active", "running", "/u"}};
  user().properties["engine.service"] = {{"NRestarts", std::uint64_t{1}}};
  EXPECT_EQ(
      value_of(families(), "apu_seat_unit_restarts_total{seat=\"1000/engine\",unit=\"engine\"}"),
      1);
  EXPECT_THAT(user().patterns, Contains("engine.service"));
  EXPECT_EQ(host.source("apu_source_available{source=\"dbus_user\"}"), 1);
}

TEST_F(Units, AUsersManagerThatFailsCostsItsOwnUnits) {
  put_user_seat();
  user().connect_error = Error{ErrorKind::kPermissionDenied, "connect"};
  EXPECT_EQ(value_of(families(), series("restarts_total")), 3);
  EXPECT_EQ(unavailable("dbus_user", "permission_denied"), 1);
  user().connect_error.reset();
  user().units = {{"engine.service", "loaded", "active", "running", "/u"}};
  user().property_error = kBlockedError;
  const Families all = families();
  EXPECT_EQ(value_of(all, series("restarts_total")), 3);
  EXPECT_FALSE(value_of(all,
                        "apu_seat_unit_active_state{seat=\"1000/engine\",unit=\"engine\","
                        "state=\"active\"}"));
  EXPECT_EQ(unavailable("dbus_user", "blocked"), 1);
}

TEST_F(Units, AManagerOfAUserWithoutSeatsIsNotMissed) {
  user().connect_error = Error{ErrorKind::kPermissionDenied, "connect"};
  ASSERT_TRUE(pass().ok());
  EXPECT_FALSE(host.source("apu_source_available{source=\"dbus_user\"}"));
}

TEST_F(Units, OnAHostThatIsADirectoryHaveNoBus) {
  collector = make_units_collector(host.context("units"));
  EXPECT_FALSE(pass().ok());
  EXPECT_EQ(unavailable("dbus", "unsupported"), 1);
}

}  // namespace
}  // namespace apu
