#include "exporter/store.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "tests/support/fake_collectors.h"
#include "tests/support/wait.h"

namespace apu {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

StoredSnapshot stored(int value) {
  return {std::make_shared<const Snapshot>(fake_snapshot(value)), from_unix_seconds(value), {}};
}

TEST(Store, HasNothingBeforeThePut) {
  Store store;
  store.put("memory", stored(1));
  EXPECT_EQ(store.newest("swap").snapshot, nullptr);
}

TEST(Store, KeepsTheNewestOfEachCollector) {
  Store store;
  store.put("memory", stored(1));
  store.put("swap", stored(2));
  store.put("memory", stored(3));
  EXPECT_EQ(value_of(store.newest("memory").snapshot), 3);
  EXPECT_EQ(store.newest("memory").time, from_unix_seconds(3));
  EXPECT_EQ(value_of(store.newest("swap").snapshot), 2);
}

TEST(Store, LeavesAReplacedSnapshotToThoseWhoReadIt) {
  Store store;
  store.put("memory", stored(1));
  const StoredSnapshot read = store.newest("memory");
  store.put("memory", stored(2));
  EXPECT_EQ(value_of(read.snapshot), 1);
}

TEST(Store, MayBeReadWhileItIsWritten) {
  Store store;
  constexpr int kLast = 1000;
  std::thread writer([&] {
    for (int i = 1; i <= kLast; ++i) {
      store.put("memory", stored(i));
    }
  });
  int newest = -1;
  EXPECT_TRUE(eventually([&] {
    const int value = value_of(store.newest("memory").snapshot);
    EXPECT_GE(value, newest);
    newest = value;
    return newest == kLast;
  }));
  writer.join();
}

class FreshFactsTest : public testing::Test {
 protected:
  void put(std::chrono::steady_clock::duration age, milliseconds period) {
    store_.put("memory", {std::make_shared<const Snapshot>(Snapshot{std::string("facts"), {}}),
                          {},
                          std::chrono::steady_clock::now() - age,
                          period});
  }

  Store store_;
};

TEST_F(FreshFactsTest, AreThoseOfTheNewestSnapshotAndOutliveIt) {
  EXPECT_EQ(fresh_facts<std::string>(store_, "memory"), nullptr);
  put(seconds(0), seconds(15));
  const auto facts = fresh_facts<std::string>(store_, "memory");
  store_.put("memory", stored(1));
  ASSERT_NE(facts, nullptr);
  EXPECT_EQ(*facts, "facts");
}

TEST_F(FreshFactsTest, OfAnotherTypeAreNone) {
  put(seconds(0), seconds(15));
  EXPECT_EQ(fresh_facts<std::vector<int>>(store_, "memory"), nullptr);
}

TEST_F(FreshFactsTest, AreNoneOnceTheyAreStaleByTheirOwnPeriod) {
  put(minutes(4), seconds(15));
  EXPECT_NE(fresh_facts<std::string>(store_, "memory"), nullptr);
  put(minutes(6), seconds(15));
  EXPECT_EQ(fresh_facts<std::string>(store_, "memory"), nullptr);
  put(minutes(6), minutes(1));
  EXPECT_NE(fresh_facts<std::string>(store_, "memory"), nullptr);
}

TEST_F(FreshFactsTest, AreNoneOnceTheyAreOlderThanTheReaderTakes) {
  put(minutes(2), seconds(15));
  EXPECT_NE(fresh_facts<std::string>(store_, "memory", minutes(3)), nullptr);
  EXPECT_EQ(fresh_facts<std::string>(store_, "memory", minutes(1)), nullptr);
}

TEST(MaxSnapshotAge, IsFiveMinutesForShortPeriods) {
  EXPECT_EQ(max_snapshot_age(milliseconds(100)), minutes(5));
  EXPECT_EQ(max_snapshot_age(seconds(15)), minutes(5));
  EXPECT_EQ(max_snapshot_age(seconds(30)), minutes(5));
}

TEST(MaxSnapshotAge, IsTenPeriodsForLongOnes) {
  EXPECT_EQ(max_snapshot_age(seconds(31)), seconds(310));
  EXPECT_EQ(max_snapshot_age(minutes(1)), minutes(10));
}

TEST(Store, KnowsWhichPassRunsPastItsDeadline) {
  Store store;
  const auto now = std::chrono::steady_clock::now();
  EXPECT_FALSE(store.is_overdue("kfd"));
  store.note_pass("kfd", now + std::chrono::hours(1));
  EXPECT_FALSE(store.is_overdue("kfd"));
  store.note_pass("kfd", now - std::chrono::seconds(1));
  EXPECT_TRUE(store.is_overdue("kfd"));
  store.note_pass("kfd", std::nullopt);
  EXPECT_FALSE(store.is_overdue("kfd"));
}

}  // namespace
}  // namespace apu
