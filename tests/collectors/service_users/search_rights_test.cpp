#include "collectors/service_users/search_rights.h"

#include <acl/libacl.h>
#include <gtest/gtest.h>
#include <sys/acl.h>
#include <sys/stat.h>

#include <cerrno>

#include "tests/support/temp_tree.h"

namespace apu {
namespace {

const Identity kOwner{1000, {1000}};
const Identity kMember{2000, {2000, 50}};
const Identity kStranger{3000, {3000}};

DirectoryRights rights(std::uint32_t mode) {
  DirectoryRights rights;
  rights.uid = 1000;
  rights.gid = 50;
  rights.mode = mode;
  return rights;
}

TEST(MaySearch, GoesByTheModesClass) {
  EXPECT_TRUE(may_search(rights(0700), kOwner));
  EXPECT_FALSE(may_search(rights(0700), kMember));
  EXPECT_TRUE(may_search(rights(0710), kMember));
  EXPECT_FALSE(may_search(rights(0710), kStranger));
  EXPECT_TRUE(may_search(rights(0701), kStranger));
  EXPECT_FALSE(may_search(rights(0701), kMember)) << "the group's bits hold for its members";
  EXPECT_FALSE(may_search(rights(0077), kOwner)) << "the owner's for the owner";
  EXPECT_FALSE(may_search(rights(0644), kStranger)) << "reading is not searching";
  EXPECT_TRUE(may_search(rights(0), {0, {}})) << "root";
}

TEST(MaySearch, AclNamesUsersAndGroupsBelowItsMask) {
  DirectoryRights acl = rights(0750);  // the group's bits are the mask
  acl.has_mask = true;
  acl.group_class_search = true;
  acl.owning_group_search = false;
  acl.users[3000] = true;
  acl.groups[2000] = true;
  EXPECT_TRUE(may_search(acl, kStranger));
  EXPECT_TRUE(may_search(acl, kMember)) << "by one of its groups";
  acl.groups[2000] = false;
  EXPECT_FALSE(may_search(acl, kMember));
  acl.group_class_search = false;
  EXPECT_FALSE(may_search(acl, kStranger)) << "masked";
  EXPECT_TRUE(may_search(acl, kOwner)) << "the mask is not for the owner";
  acl.users[3000] = false;
  acl.mode = 0751;
  EXPECT_FALSE(may_search(acl, kStranger)) << "others' bits are not for those who are named";
}

class FirstClosedTest : public testing::Test {
 protected:
  FirstClosedTest() { tree_.write("home/alice/models/.keep", ""); }

  void set_mode(const char* directory, mode_t mode) {
    ASSERT_EQ(::chmod((tree_.path() / directory).c_str(), mode), 0);
  }

  Result<std::optional<std::filesystem::path>> closed(const std::string& home) {
    return first_closed(tree_.path(), home, kStranger);
  }

  TempTree tree_;
};

TEST_F(FirstClosedTest, NamesTheDirectoryThatStopsAUser) {
  set_mode("", 0755);
  EXPECT_FALSE(closed("/home/alice/models")->has_value());
  set_mode("home/alice", 0750);
  EXPECT_EQ(**closed("/home/alice/models"), tree_.path() / "home/alice");
  EXPECT_EQ(**closed("/home/alice/"), tree_.path() / "home/alice");
  EXPECT_FALSE(closed("/home")->has_value());
  set_mode("home/alice", 0755);
  set_mode("home/alice/models", 0700);
  EXPECT_EQ(**closed("/home/alice/models"), tree_.path() / "home/alice/models") << "the home, too";
}

TEST_F(FirstClosedTest, SaysWhatIsMissingAndWhatIsNoDirectory) {
  set_mode("", 0755);
  EXPECT_EQ(closed("/home/bob").error().kind, ErrorKind::kNotFound);
  tree_.write("home/file", "");
  EXPECT_EQ(closed("/home/file").error().kind, ErrorKind::kUnsupported);
  tree_.link("home/link", "/");
  EXPECT_EQ(closed("/home/link").error().kind, ErrorKind::kUnsupported);
}

TEST_F(FirstClosedTest, ReadsTheAcl) {
  set_mode("", 0755);
  set_mode("home/alice", 0700);
  const std::string path = tree_.path() / "home/alice";
  const std::unique_ptr<void, int (*)(void*)> acl(
      ::acl_from_text("u::rwx,u:3000:--x,g::r--,g:77:r-x,m::r-x,o::---"), ::acl_free);
  if (::acl_set_file(path.c_str(), ACL_TYPE_ACCESS, static_cast<acl_t>(acl.get())) != 0) {
    ASSERT_EQ(errno, EOPNOTSUPP);
    GTEST_SKIP() << "this file system has no ACLs";
  }
  const auto rights = read_rights(path);
  ASSERT_TRUE(rights);
  EXPECT_TRUE(rights->has_mask);
  EXPECT_TRUE(rights->group_class_search);
  EXPECT_FALSE(rights->owning_group_search);
  EXPECT_TRUE(rights->users.at(3000));
  EXPECT_TRUE(rights->groups.at(77));
  EXPECT_FALSE(closed("/home/alice")->has_value());
  EXPECT_TRUE(first_closed(tree_.path(), "/home/alice", kMember)->has_value());
}

}  // namespace
}  // namespace apu
