#include "exporter/store.h"

#include <gtest/gtest.h>

#include <thread>

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

TEST(MaxSnapshotAge, IsFiveMinutesForShortPeriods) {
  EXPECT_EQ(max_snapshot_age(milliseconds(100)), minutes(5));
  EXPECT_EQ(max_snapshot_age(seconds(15)), minutes(5));
  EXPECT_EQ(max_snapshot_age(seconds(30)), minutes(5));
}

TEST(MaxSnapshotAge, IsTenPeriodsForLongOnes) {
  EXPECT_EQ(max_snapshot_age(seconds(31)), seconds(310));
  EXPECT_EQ(max_snapshot_age(minutes(1)), minutes(10));
}

}  // namespace
}  // namespace apu
