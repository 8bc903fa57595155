#include "collectors/service_users/accounts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace apu {
namespace {

using testing::ElementsAre;

constexpr std::string_view kPasswd =
    "root:x:0:0:root:/root:/bin/bash\n"
    "llama:x:990:990:Model server,,,:/var/lib/llama:/usr/sbin/nologin\n"
    "\n"
    "+::::::\n"
    "broken:x:many:1::/:/bin/sh\n"
    "short:x:1:1:/\n";
constexpr std::string_view kGroup =
    "render:x:105:alice,llama\n"
    "llama:x:990:\n"
    "video:x:44\n"
    "models:x:1001:bob,alice\n";

TEST(Accounts, AreReadAndWhatIsNoneIsCounted) {
  Problems problems;
  Accounts accounts{parse_passwd(kPasswd, problems), parse_group(kGroup, problems)};
  ASSERT_EQ(accounts.users.size(), 2U);
  EXPECT_EQ(accounts.find_user("llama")->home, "/var/lib/llama");
  EXPECT_EQ(accounts.find_user("990")->name, "llama");
  EXPECT_EQ(accounts.find_user("broken"), nullptr);
  EXPECT_EQ(accounts.find_gid("models"), 1001U);
  EXPECT_EQ(accounts.find_gid("77"), 77U);
  EXPECT_FALSE(accounts.find_gid("video"));
  EXPECT_THAT(accounts.groups_of(*accounts.find_user("llama")), ElementsAre(105, 990));
  ASSERT_EQ(problems.size(), 3U);
  EXPECT_EQ(problems[0].line, 5);
  EXPECT_EQ(problems[0].what, "no account: 'broken'");
  EXPECT_EQ(problems[2].line, 3);
}

}  // namespace
}  // namespace apu
