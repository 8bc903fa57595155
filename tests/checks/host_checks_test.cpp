#include "checks/host_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace apu {
namespace {

using testing::HasSubstr;

class HostChecksTest : public testing::Test {
 protected:
  HostChecksTest() {
    auto index = std::make_shared<SeatIndex>();
    index->seats.resize(1);
    cgroup_.index = index;
    swap_.swappiness = 60;
    swap_.devices.push_back({"/dev/zram0", SwapKind::kZram, 1000, 0});
    budgets_.protection = 10;
    budgets_.uncharged_gtt = 20;
    budgets_.memory_size = 30;
    driver_.is_on_disk = true;
    driver_.kfd_debug_messages = 0;
    log_.hog_warning_threshold = 4;
  }

  Check check(const std::string& name) {
    const HostCheckInputs inputs{&swap_, &budgets_, &driver_, &log_, &cgroup_, ""};
    for (Check& each : check_host(inputs)) {
      if (each.name == name) {
        return each;
      }
    }
    return {};
  }

  CheckResult result(const std::string& name) { return check(name).result; }

  SwapFacts swap_;
  BudgetsFacts budgets_;
  DriverFacts driver_;
  KernelLogFacts log_;
  CgroupFacts cgroup_;
};

TEST_F(HostChecksTest, HostAsItShouldBePassesAll) {
  const Checks checks = check_host({&swap_, &budgets_, &driver_, &log_, &cgroup_, ""});
  EXPECT_EQ(count(checks).pass, 6U);
  EXPECT_EQ(checks.size(), 6U);
}

TEST_F(HostChecksTest, WhatIsMissingIsNotKnown) {
  const Checks checks = check_host({nullptr, nullptr, nullptr, nullptr, nullptr, "cgroup2: x"});
  EXPECT_EQ(count(checks).unknown, 6U);
  EXPECT_EQ(checks[0].why, "cgroup2: x");
}

TEST_F(HostChecksTest, SwappinessCountsWhereThereIsSwap) {
  swap_.swappiness = 100;
  EXPECT_EQ(result("swappiness"), CheckResult::kPass);
  swap_.swappiness = 101;
  EXPECT_EQ(result("swappiness"), CheckResult::kFail);
  EXPECT_THAT(check("swappiness").why, HasSubstr("vm.swappiness is 101"));
  swap_.devices.clear();
  EXPECT_EQ(result("swappiness"), CheckResult::kPass);
  swap_.swappiness.reset();
  EXPECT_EQ(result("swappiness"), CheckResult::kUnknown);
}

TEST_F(HostChecksTest, BudgetsThatNobodyCanKeepFail) {
  budgets_.protection = 11;
  EXPECT_EQ(result("budgets_fit"), CheckResult::kFail);
  budgets_.memory_size.reset();
  EXPECT_EQ(result("budgets_fit"), CheckResult::kUnknown);
}

TEST_F(HostChecksTest, KernelThatReportsNoHogsFails) {
  log_.hog_warning_threshold = 0;
  EXPECT_EQ(result("hog_reports"), CheckResult::kFail);
  log_.hog_warning_threshold.reset();
  EXPECT_EQ(result("hog_reports"), CheckResult::kUnknown) << "nothing tells";
  log_.built_with_reports = false;
  EXPECT_EQ(result("hog_reports"), CheckResult::kFail);
  log_.built_with_reports = true;
  EXPECT_EQ(result("hog_reports"), CheckResult::kPass);
  log_.hog_threshold_us = 0;  // switched off
  EXPECT_EQ(result("hog_reports"), CheckResult::kFail);
}

TEST_F(HostChecksTest, DriverIsJudged) {
  driver_.is_on_disk = false;
  driver_.kfd_debug_messages = 12;
  EXPECT_EQ(result("driver_on_disk"), CheckResult::kFail);
  EXPECT_THAT(check("kfd_debug_off").why, HasSubstr("12 debug messages"));
  driver_.is_on_disk.reset();
  driver_.is_on_disk_unknown = "built in";
  EXPECT_EQ(check("driver_on_disk").why, "built in");
}

}  // namespace
}  // namespace apu
