#include "exporter/selection.h"

#include <gtest/gtest.h>

namespace apu {
namespace {

const std::vector<std::string> kEnabled{"memory", "swap"};
const std::vector<std::string> kKnown{"memory", "probes", "swap"};

Result<Selection> select(const Selection::Query& query) {
  return Selection::from_query(query, kEnabled, kKnown);
}

/// The message that refuses `query`; empty if it is accepted.
std::string refusal_of(const Selection::Query& query) {
  const auto selection = select(query);
  return selection ? "" : selection.error().message;
}

TEST(Selection, IncludesAllWithoutParameters) {
  const auto selection = select({});
  ASSERT_TRUE(selection);
  EXPECT_TRUE(selection->includes("memory"));
  EXPECT_TRUE(selection->includes("swap"));
}

TEST(Selection, IncludesOnlyWhatIsCollected) {
  const auto selection = select({{"collect[]", "swap"}});
  ASSERT_TRUE(selection);
  EXPECT_FALSE(selection->includes("memory"));
  EXPECT_TRUE(selection->includes("swap"));
}

TEST(Selection, TakesSeveralCollectParameters) {
  const auto selection = select({{"collect[]", "swap"}, {"collect[]", "memory"}});
  ASSERT_TRUE(selection);
  EXPECT_TRUE(selection->includes("memory"));
  EXPECT_TRUE(selection->includes("swap"));
}

TEST(Selection, LeavesOutWhatIsExcluded) {
  const auto selection = select({{"exclude[]", "swap"}});
  ASSERT_TRUE(selection);
  EXPECT_TRUE(selection->includes("memory"));
  EXPECT_FALSE(selection->includes("swap"));
}

TEST(Selection, MayExcludeAll) {
  const auto selection = select({{"exclude[]", "swap"}, {"exclude[]", "memory"}});
  ASSERT_TRUE(selection);
  EXPECT_FALSE(selection->includes("memory"));
  EXPECT_FALSE(selection->includes("swap"));
}

TEST(Selection, ExcludesWhatIsNotThereWithoutComplaint) {
  EXPECT_EQ(refusal_of({{"exclude[]", "bogus"}}), "");
  EXPECT_EQ(refusal_of({{"exclude[]", "probes"}}), "");
}

TEST(Selection, RefusesCollectAndExcludeTogether) {
  EXPECT_EQ(refusal_of({{"collect[]", "swap"}, {"exclude[]", "memory"}}),
            "combined collect and exclude queries are not allowed");
}

TEST(Selection, RefusesToCollectWhatDoesNotExist) {
  EXPECT_EQ(refusal_of({{"collect[]", "swap"}, {"collect[]", "bogus"}}),
            "missing collector: bogus");
  EXPECT_EQ(refusal_of({{"collect[]", ""}}), "missing collector: ");
}

TEST(Selection, RefusesToCollectWhatIsNotEnabled) {
  EXPECT_EQ(refusal_of({{"collect[]", "probes"}}), "disabled collector: probes");
}

TEST(Selection, IgnoresOtherParameters) {
  const auto selection = select({{"collect", "swap"}, {"name[]", "bogus"}});
  ASSERT_TRUE(selection);
  EXPECT_TRUE(selection->includes("memory"));
}

}  // namespace
}  // namespace apu
