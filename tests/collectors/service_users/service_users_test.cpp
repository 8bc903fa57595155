#include "collectors/service_users/service_users.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "collectors/units/units.h"
#include "tests/support/collector_host.h"
#include "tests/support/temp_tree.h"

namespace apu {
namespace {

using testing::HasSubstr;

class ServiceUsersTest : public testing::Test {
 protected:
  ServiceUsersTest() {
    tree_.write("etc/passwd",
                "root:x:0:0::/root:/bin/sh\n"
                "llama:x:990:990::/srv/llama:/usr/sbin/nologin\n"
                "alice:x:1000:1000::/home/alice:/bin/sh\n"
                "daemon:x:2:2::/nonexistent:/bin/false\n");
    tree_.write("etc/group", "llama:x:990:\nalice:x:1000:\nmodels:x:77:\n");
    tree_.write("home/alice/.keep", "");
    tree_.write("srv/llama/.keep", "");
    tree_.write("var/lib/systemd/linger/alice", "");
    ::chmod(tree_.path().c_str(), 0755);
  }

  void set_mode(const char* directory, mode_t mode, gid_t gid) {
    const std::string path = tree_.path() / directory;
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    if (::chown(path.c_str(), static_cast<uid_t>(-1), gid) != 0) {
      GTEST_SKIP() << "needs root";
    }
  }

  UnitFacts& add(const std::string& seat, const std::string& run_as) {
    SeatUnit unit;
    unit.seat = seat;
    unit.facts.run_as = run_as;
    units_.units.push_back(unit);
    return units_.units.back().facts;
  }

  ServiceUsersFacts facts() {
    const auto now = std::chrono::steady_clock::now();
    host_.store->put("units", {std::make_shared<Snapshot>(Snapshot{units_, {}}), TimePoint{}, now,
                               std::chrono::hours(1)});
    const auto snapshot = make_service_users_collector(host_.context())->collect();
    families_ = snapshot->families;
    return std::any_cast<ServiceUsersFacts>(snapshot->facts);
  }

  TempTree tree_;
  CollectorHost host_{tree_.path()};
  UnitsFacts units_;
  Families families_;
};

TEST_F(ServiceUsersTest, HomeBehindAClosedDirectoryIsTold) {
  set_mode("srv/llama", 0750, 0);
  add("a", "llama");
  add("b", "");
  add("c", "daemon");
  const auto seats = facts().seats;
  EXPECT_EQ(seats.at("a").home_traversable, false);
  EXPECT_THAT(seats.at("a").home_why, HasSubstr("llama may not search"));
  EXPECT_EQ(seats.at("b").name, "root");
  EXPECT_EQ(seats.at("c").home_traversable, true);
  EXPECT_FALSE(seats.at("a").lingers);
  EXPECT_EQ(value_of(families_, "apu_seat_home_traversable{seat=\"a\"}"), 0);
  EXPECT_EQ(value_of(families_, "apu_seat_home_traversable{seat=\"c\"}"), 1);
}

TEST_F(ServiceUsersTest, GroupsOfTheUnitOpenIt) {
  set_mode("srv/llama", 0750, 77);
  EXPECT_EQ((add("a", "llama"), facts().seats.at("a").home_traversable), false);
  units_.units.clear();
  add("a", "990").supplementary_groups = {"models"};
  EXPECT_EQ(facts().seats.at("a").home_traversable, true);
  units_.units.clear();
  add("a", "llama").group = "77";
  EXPECT_EQ(facts().seats.at("a").home_traversable, true);
}

TEST_F(ServiceUsersTest, HomeThatIsMissingFailsAndOneWithoutAccountIsNotKnown) {
  tree_.remove("srv/llama");
  add("a", "llama");
  add("b", "dynamic");
  units_.units.back().facts.group = "models";
  const auto seats = facts().seats;
  EXPECT_EQ(seats.at("a").home_traversable, false);
  EXPECT_THAT(seats.at("a").home_why, HasSubstr("No such file"));
  EXPECT_FALSE(seats.at("b").home_traversable);
  EXPECT_EQ(seats.at("b").home_why, "dynamic is not in /etc/passwd");
}

TEST_F(ServiceUsersTest, UsersOfUsersUnitsLingerOrNot) {
  add("1000/llama", "").user = "1000";
  EXPECT_EQ(facts().seats.at("1000/llama").lingers, true);
  tree_.remove("var/lib/systemd/linger/alice");
  EXPECT_EQ(facts().seats.at("1000/llama").lingers, false);
  EXPECT_EQ(value_of(families_, "apu_seat_user_lingers{seat=\"1000/llama\"}"), 0);
  tree_.remove("var/lib/systemd");
  EXPECT_FALSE(facts().seats.at("1000/llama").lingers);
}

TEST_F(ServiceUsersTest, AccountsThatCannotBeReadFailThePass) {
  add("a", "llama");
  facts();
  EXPECT_EQ(host_.source("apu_source_available{source=\"accounts\"}"), 1);
  tree_.remove("etc/group");
  EXPECT_FALSE(make_service_users_collector(host_.context())->collect());
  EXPECT_EQ(host_.source("apu_source_available{source=\"accounts\"}"), 0);
}

TEST_F(ServiceUsersTest, WithoutUnitsNothingIsRead) {
  tree_.remove("etc/passwd");
  EXPECT_TRUE(make_service_users_collector(host_.context())->collect());
}

}  // namespace
}  // namespace apu
