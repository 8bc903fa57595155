#include "exporter/result.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>

namespace apu {
namespace {

TEST(Result, HoldsAValue) {
  const Result<int> result = 7;
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(static_cast<bool>(result));
  EXPECT_EQ(*result, 7);
}

TEST(Result, HoldsAnError) {
  const Result<int> result = Error{ErrorKind::kMalformed, "line 3"};
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().kind, ErrorKind::kMalformed);
  EXPECT_EQ(result.error().message, "line 3");
}

TEST(Result, GivesAwayAValueThatCanOnlyBeMoved) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(5);
  const std::unique_ptr<int> value = *std::move(result);
  ASSERT_NE(value, nullptr);
  EXPECT_EQ(*value, 5);
}

TEST(Result, CanHoldAnErrorAsItsValue) {
  struct Wrapped {
    Error error;
  };

  const Result<Wrapped> result = Wrapped{{ErrorKind::kBlocked, "inside"}};
  EXPECT_TRUE(result.ok());
  EXPECT_EQ(result->error.message, "inside");
}

TEST(ErrorKind, LabelsAreThoseOfTheMetricsContract) {
  EXPECT_EQ(to_label(ErrorKind::kNotFound), "not_found");
  EXPECT_EQ(to_label(ErrorKind::kPermissionDenied), "permission_denied");
  EXPECT_EQ(to_label(ErrorKind::kUnsupported), "unsupported");
  EXPECT_EQ(to_label(ErrorKind::kBlocked), "blocked");
  EXPECT_EQ(to_label(ErrorKind::kMalformed), "malformed");
  EXPECT_EQ(to_label(ErrorKind::kUnknown), "unknown");
}

TEST(ErrorFromErrno, SaysWhatWasDoneAndWhy) {
  EXPECT_EQ(error_from_errno(ENOENT, "read /proc/none").message,
            "read /proc/none: No such file or directory");
}

TEST(ErrorFromErrno, SortsErrnoIntoKinds) {
  for (const int gone : {ENOENT, ENOTDIR, ENODEV, ENXIO}) {
    EXPECT_EQ(error_from_errno(gone, "read").kind, ErrorKind::kNotFound) << gone;
  }
  for (const int denied : {EACCES, EPERM}) {
    EXPECT_EQ(error_from_errno(denied, "read").kind, ErrorKind::kPermissionDenied) << denied;
  }
  for (const int unsupported : {EOPNOTSUPP, ENOSYS}) {
    EXPECT_EQ(error_from_errno(unsupported, "read").kind, ErrorKind::kUnsupported) << unsupported;
  }
  EXPECT_EQ(error_from_errno(EIO, "read").kind, ErrorKind::kUnknown);
}

}  // namespace
}  // namespace apu
