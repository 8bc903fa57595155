#include "collectors/cgroup/protection.h"

#include <gtest/gtest.h>

namespace apu {
namespace {

constexpr std::uint64_t kGiB = 1ULL << 30U;

TEST(EffectiveProtection, OfATopLevelCgroupIsItsSetting) {
  EXPECT_EQ(effective_protection({{8 * kGiB, 4 * kGiB, 4 * kGiB}}, false), 4 * kGiB);
  EXPECT_EQ(effective_protection({{2 * kGiB, 4 * kGiB, 2 * kGiB}}, false), 2 * kGiB);
}

TEST(EffectiveProtection, IsVoidWithoutTheAncestors) {
  // The unit asks for 10 GiB, its slice for nothing.
  EXPECT_EQ(effective_protection({{20 * kGiB, 0, 0}, {12 * kGiB, 10 * kGiB, 10 * kGiB}}, false),
            0U);
}

TEST(EffectiveProtection, IsSharedWhenSiblingsAskForMoreThanTheParentHas) {
  // The parent has 6 GiB; this one wants 8 of the siblings' 12.
  EXPECT_EQ(effective_protection({{20 * kGiB, 6 * kGiB, 6 * kGiB}, {9 * kGiB, 8 * kGiB, 12 * kGiB}},
                                 false),
            4 * kGiB);
}

TEST(EffectiveProtection, UnusedSettingIsNotProtected) {
  EXPECT_EQ(effective_protection(
                {{20 * kGiB, 16 * kGiB, 16 * kGiB}, {3 * kGiB, 8 * kGiB, 3 * kGiB}}, false),
            3 * kGiB);
}

TEST(EffectiveProtection, WhatAParentLeavesOverIsSharedIfTheMountSaysSo) {
  // 10 GiB of the parent, of which children claim none: by use, 6 of the parent's 12 GiB get 5.
  const std::vector<ProtectionLevel> path{{12 * kGiB, 10 * kGiB, 10 * kGiB}, {6 * kGiB, 0, 0}};
  EXPECT_EQ(effective_protection(path, true), 5 * kGiB);
  EXPECT_EQ(effective_protection(path, false), 0U);
}

TEST(EffectiveProtection, GoesThroughEachLevel) {
  const std::vector<ProtectionLevel> path{{40 * kGiB, 20 * kGiB, 20 * kGiB},
                                          {30 * kGiB, 30 * kGiB, 30 * kGiB},
                                          {8 * kGiB, 8 * kGiB, 16 * kGiB}};
  // 20 at the top; 30 asked of 20 gives 20; 8 of 16 within 20 is kept.
  EXPECT_EQ(effective_protection(path, false), 8 * kGiB);
}

TEST(EffectiveProtection, OfUnlimitedSettingsDoesNotOverflow) {
  constexpr std::uint64_t kAll = ~0ULL;
  EXPECT_EQ(effective_protection({{40 * kGiB, kAll, 40 * kGiB}, {8 * kGiB, kAll, 40 * kGiB}}, true),
            8 * kGiB);
}

}  // namespace
}  // namespace apu
