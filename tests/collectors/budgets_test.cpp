#include "collectors/budgets.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/support/collector_series.h"

namespace apu {
namespace {

constexpr std::uint64_t kMiB = 1ULL << 20U;
constexpr MemoryLimit kNone{};  // "max"

MemoryLimit limit(std::uint64_t mib) {
  return {mib * kMiB};
}

/// Charged 1000 MiB, of which 300 MiB are page cache: 100 MiB mapped, 50 MiB shared memory.
CgroupMemory memory_of_seat() {
  CgroupMemory memory;
  memory.current = 1000 * kMiB;
  memory.swap_current = 200 * kMiB;
  memory.file = 300 * kMiB;
  memory.file_mapped = 100 * kMiB;
  memory.shmem = 50 * kMiB;
  memory.limits = {{"min", limit(0)}, {"low", limit(0)}, {"high", kNone}, {"max", kNone}};
  memory.protected_bytes = {{"min", 0}, {"low", 0}};
  return memory;
}

TEST(MemoryNeed, IsAllButPageCacheThatNothingMaps) {
  EXPECT_EQ(memory_need(memory_of_seat()), (1000 + 200 - 150) * kMiB);
}

TEST(MemoryNeed, IsNeverNegative) {
  CgroupMemory memory = memory_of_seat();
  memory.file_mapped = 400 * kMiB;  // the numbers are not of one instant
  EXPECT_EQ(memory_need(memory), 1200 * kMiB);
  memory.file_mapped = 0;
  memory.current = 10 * kMiB;
  EXPECT_EQ(memory_need(memory), 200 * kMiB);
}

TEST(MemoryNeed, IsAbsentIfAPartIsUnknown) {
  for (const auto part : {&CgroupMemory::current, &CgroupMemory::swap_current, &CgroupMemory::file,
                          &CgroupMemory::file_mapped, &CgroupMemory::shmem}) {
    CgroupMemory memory = memory_of_seat();
    memory.*part = std::nullopt;
    EXPECT_FALSE(memory_need(memory));
  }
}

TEST(Budget, LimitBelowTheNeedIsTold) {
  CgroupMemory memory = memory_of_seat();
  memory.limits["high"] = limit(1049);
  memory.limits["max"] = limit(1050);
  const SeatBudget budget = judge_budget(memory);
  EXPECT_TRUE(budget.below_need.at("high"));
  EXPECT_FALSE(budget.below_need.at("max"));
}

TEST(Budget, NoLimitIsNeverBelow) {
  CgroupMemory memory = memory_of_seat();
  memory.swap_current = std::nullopt;
  EXPECT_FALSE(judge_budget(memory).below_need.at("high"));
  memory.limits["high"] = limit(1);
  EXPECT_FALSE(judge_budget(memory).below_need.contains("high"));  // the need is not known
  memory.limits.erase("max");
  EXPECT_FALSE(judge_budget(memory).below_need.contains("max"));
}

TEST(Budget, ProtectionIsVoidedIfLessThanHalfIsLeft) {
  CgroupMemory memory = memory_of_seat();
  const auto is_voided = [&](std::uint64_t effective) {
    memory.protected_bytes["low"] = effective;
    return judge_budget(memory).protection_voided.at("low");
  };
  memory.limits["low"] = limit(600);
  EXPECT_TRUE(is_voided(0));
  EXPECT_TRUE(is_voided(300 * kMiB - 1));
  EXPECT_FALSE(is_voided(300 * kMiB));
  memory.limits["low"] = limit(5000);  // more than it uses: 1000 MiB are to be covered
  EXPECT_TRUE(is_voided(499 * kMiB));
  EXPECT_FALSE(is_voided(500 * kMiB));
  memory.limits["low"] = kNone;
  EXPECT_TRUE(is_voided(499 * kMiB));
  memory.current = 0;
  EXPECT_FALSE(is_voided(0));
}

TEST(Budget, ProtectionThatIsNotSetOrNotKnownIsNotVoided) {
  CgroupMemory memory = memory_of_seat();
  EXPECT_TRUE(judge_budget(memory).protection_voided.empty());
  memory.limits["low"] = limit(600);
  memory.protected_bytes.erase("low");
  EXPECT_TRUE(judge_budget(memory).protection_voided.empty());
  memory.protected_bytes["low"] = 0;
  memory.current = std::nullopt;
  EXPECT_TRUE(judge_budget(memory).protection_voided.empty());
}

TEST(Budget, IsMissingIfNeitherProtectionIsSet) {
  CgroupMemory memory = memory_of_seat();
  EXPECT_EQ(judge_budget(memory).missing, true);
  memory.limits["min"] = limit(1);
  EXPECT_EQ(judge_budget(memory).missing, false);
  memory.limits["min"] = kNone;
  EXPECT_EQ(judge_budget(memory).missing, false);
  memory.limits.erase("low");
  EXPECT_EQ(judge_budget(memory).missing, false);  // min alone tells it
  memory.limits["min"] = limit(0);
  EXPECT_EQ(judge_budget(memory).missing, std::nullopt);
}

TEST(AskedProtection, IsTheLargerOfBoth) {
  CgroupMemory memory = memory_of_seat();
  EXPECT_EQ(asked_protection(memory), 0U);
  memory.limits["min"] = limit(100);
  memory.limits["low"] = limit(600);
  EXPECT_EQ(asked_protection(memory), 600 * kMiB);
  memory.limits["low"] = kNone;
  EXPECT_EQ(asked_protection(memory), 1000 * kMiB);
  memory.current = std::nullopt;
  EXPECT_EQ(asked_protection(memory), std::nullopt);
  memory.limits.erase("low");
  EXPECT_EQ(asked_protection(memory), std::nullopt);
  EXPECT_EQ(asked_protection({}), 0U);  // no memory controller
}

class SumOfProtections : public ::testing::Test {
 protected:
  SumOfProtections() {
    auto index = std::make_shared<SeatIndex>();
    for (const char* path : {"/system.slice/a.service", "/system.slice/b.service",
                             "/user.slice/user-1000.slice/session-3.scope"}) {
      Seat seat;
      seat.place = parse_seat_place(path);
      seat.name = seat.place.name("llama-server");
      index->seats.push_back(seat);
    }
    facts_.index = index;
    facts_.memory["a"] = memory_of_seat();
    facts_.memory["b"] = memory_of_seat();
    facts_.memory["a"].limits["low"] = limit(600);
    facts_.memory["b"].limits["min"] = limit(100);
  }

  CgroupFacts facts_;
};

TEST_F(SumOfProtections, IsOverSeatsWithACgroupOfTheirOwn) {
  EXPECT_EQ(sum_of_protections(facts_), 700 * kMiB);
}

TEST_F(SumOfProtections, IsAbsentIfOneIsNotKnown) {
  facts_.memory.erase("b");
  EXPECT_EQ(sum_of_protections(facts_), std::nullopt);
}

TEST_F(SumOfProtections, DoesNotWrap) {
  facts_.memory["a"].limits["low"].bytes = std::numeric_limits<std::uint64_t>::max() - 1;
  EXPECT_EQ(sum_of_protections(facts_), std::numeric_limits<std::uint64_t>::max());
}

TEST(Overcommitted, IfProtectionsAndGttExceedRam) {
  BudgetsFacts facts;
  facts.protection = 600;
  facts.uncharged_gtt = 400;
  facts.memory_size = 1000;
  EXPECT_EQ(is_overcommitted(facts), false);
  facts.uncharged_gtt = 401;
  EXPECT_EQ(is_overcommitted(facts), true);
  for (const auto part :
       {&BudgetsFacts::protection, &BudgetsFacts::uncharged_gtt, &BudgetsFacts::memory_size}) {
    BudgetsFacts unknown = facts;
    unknown.*part = std::nullopt;
    EXPECT_EQ(is_overcommitted(unknown), std::nullopt);
  }
}

TEST(Budgets, WhatIsNotKnownHasNoSeries) {
  BudgetsFacts facts;
  EXPECT_TRUE(to_families(facts).empty());
  facts.seats["a"].missing = true;
  facts.seats["a"].below_need["high"] = false;
  const Families families = to_families(facts);
  EXPECT_EQ(families.size(), 2U);
  EXPECT_EQ(value_of(families, "apu_seat_budget_missing{seat=\"a\"}"), 1);
  EXPECT_EQ(value_of(families, "apu_seat_budget_below_need{seat=\"a\",limit=\"high\"}"), 0);
}

}  // namespace
}  // namespace apu
