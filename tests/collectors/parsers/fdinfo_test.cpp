#include "collectors/parsers/fdinfo.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/collector_files.h"

namespace apu {
namespace {

constexpr std::uint64_t kKib = 1024;
constexpr std::uint64_t kMib = 1024 * 1024;

Fdinfo of_case(const std::string& file) {
  return parse_fdinfo(read_file(case_path(file)));
}

/// A client of this driver, with `lines` of its own.
std::string client(const std::string& lines, const std::string& driver = "amdgpu") {
  return "pos:\t0\nflags:\t02100002\nmnt_id:\t27\nino:\t614\ndrm-driver:\t" + driver +
         "\ndrm-client-id:\t90\ndrm-pdev:\t0000:c5:00.0\npasid:\t32790\n" + lines;
}

TEST(ParseFdinfo, LayoutOf519) {
  const auto info = of_case("66-fdinfo-older-layouts/a/fdinfo");
  EXPECT_EQ(info.kind, FdinfoKind::kAmdgpu);
  EXPECT_EQ(info.gpu, "0000:08:00.0");
  EXPECT_EQ(info.client_id, 217U);
  EXPECT_EQ(memory_of(info.gtt), 8388608U);
  EXPECT_EQ(memory_of(info.vram), 2117632U);
  EXPECT_EQ(memory_of(info.cpu), 0U);
  EXPECT_FALSE(info.lock_free);
  EXPECT_TRUE(info.problems.empty());
}

TEST(ParseFdinfo, BlankBeforeTheTab) {
  EXPECT_EQ(memory_of(of_case("66-fdinfo-older-layouts/b/fdinfo").gtt), 25864192000U);
  EXPECT_EQ(memory_of(of_case("66-fdinfo-older-layouts/b/fdinfo").vram), 5476352U);
  EXPECT_EQ(memory_of(of_case("66-fdinfo-older-layouts/c/fdinfo").gtt), 35109449728U);
  EXPECT_EQ(memory_of(of_case("66-fdinfo-older-layouts/c/fdinfo").vram), 2260992U);
}

TEST(ParseFdinfo, LayoutWithoutDrmKeys) {
  const auto info = of_case("66-fdinfo-older-layouts/d/fdinfo");
  EXPECT_EQ(info.kind, FdinfoKind::kAmdgpu);
  EXPECT_EQ(memory_of(info.gtt), 8388608U);
  EXPECT_FALSE(info.client_id);
  EXPECT_EQ(info.pasid, 32771U);
  EXPECT_FALSE(info.lock_free);
  EXPECT_TRUE(info.problems.empty());
}

TEST(ParseFdinfo, UnitsAreMixedAndABareNumberIsBytes) {
  const auto info = of_case("67-fdinfo-6.12-units/client30/fdinfo");
  EXPECT_EQ(memory_of(info.gtt), 23068672U);
  EXPECT_EQ(info.gtt.total, 23068672U);
  EXPECT_EQ(info.gtt.active, 10 * kMib);
  EXPECT_EQ(memory_of(info.vram), 557494272U);
  EXPECT_EQ(memory_of(info.cpu), 0U);
  EXPECT_TRUE(info.problems.empty());
  const auto shared = of_case("67-fdinfo-6.12-units/client4/fdinfo");
  EXPECT_EQ(shared.vram.shared, 32718848U);
  EXPECT_EQ(memory_of(shared.gtt), 2449408U);
  EXPECT_EQ(shared.gtt.purgeable, 0U);
  EXPECT_EQ(memory_of(parse_fdinfo(client("drm-resident-gtt:\t4100\n")).gtt), 4100U);
}

TEST(ParseFdinfo, MemoryIsWhatLiesThereAndNotWhatWasAskedFor) {
  const auto info = of_case("67-fdinfo-6.12-units/spill/fdinfo");
  EXPECT_EQ(info.vram.total, 10737418240U);
  EXPECT_EQ(memory_of(info.vram), 8589934592U);
  EXPECT_EQ(memory_of(info.gtt), 3221225472U);
  const auto asked = parse_fdinfo(client("drm-total-gtt:\t5 MiB\namd-requested-gtt:\t5120 KiB\n"));
  EXPECT_EQ(memory_of(asked.gtt), std::nullopt);
  EXPECT_TRUE(asked.problems.empty());
}

TEST(ParseFdinfo, ResidentIsTheTruthWhereMemoryCountsEvictedObjectsToo) {
  const auto info = parse_fdinfo(client("drm-memory-vram:\t4096 KiB\ndrm-resident-vram:\t1 MiB\n"));
  EXPECT_EQ(memory_of(info.vram), kMib);
}

TEST(ParseFdinfo, KeysOfAmdgpuAlone) {
  const auto info = parse_fdinfo(
      client("drm-memory-vram:\t8 KiB\namd-memory-visible-vram:\t7 KiB\namd-evicted-vram:\t3 KiB\n"
             "amd-evicted-visible-vram:\t2 KiB\namd-requested-vram:\t11 KiB\n"
             "amd-requested-visible-vram:\t9 KiB\namd-requested-gtt:\t5 KiB\n"));
  EXPECT_EQ(memory_of(info.vram), 8 * kKib);
  EXPECT_EQ(info.vram.evicted, 3 * kKib);
  EXPECT_EQ(info.vram.total, 11 * kKib);
  EXPECT_EQ(info.gtt.total, 5 * kKib);
  EXPECT_FALSE(memory_of(info.gtt));
  EXPECT_TRUE(info.problems.empty());
}

TEST(ParseFdinfo, KnowsWhichKernelsTakeNoLock) {
  const std::string resident = "drm-resident-gtt:\t1 MiB\ndrm-resident-vram:\t0\n";
  EXPECT_TRUE(parse_fdinfo(client(resident)).lock_free);
  EXPECT_TRUE(parse_fdinfo(client(resident + "drm-memory-gtt: \t1024 KiB\n")).lock_free);
  // 6.13: the same keys, by a walk over locked objects.
  EXPECT_FALSE(parse_fdinfo(client(resident + "drm-active-gtt:\t0\n")).lock_free);
  EXPECT_FALSE(parse_fdinfo(client(resident + "amd-memory-visible-vram:\t0 KiB\n")).lock_free);
  EXPECT_FALSE(of_case("67-fdinfo-6.12-units/client30/fdinfo").lock_free);
  EXPECT_FALSE(parse_fdinfo(client("drm-memory-gtt: \t1024 KiB\n")).lock_free);
  EXPECT_FALSE(parse_fdinfo(client("")).lock_free);
}

TEST(ParseFdinfo, OtherDriversAreForeign) {
  for (const char* file :
       {"69-fdinfo-other-drivers/npu/fdinfo", "69-fdinfo-other-drivers/xe/fdinfo"}) {
    const auto info = of_case(file);
    EXPECT_EQ(info.kind, FdinfoKind::kForeign) << file;
    EXPECT_TRUE(info.gpu.empty()) << file;
    EXPECT_FALSE(memory_of(info.gtt) || memory_of(info.vram)) << file;
  }
  EXPECT_EQ(parse_fdinfo(client("drm-memory-gtt:\tnone\n", "amd")).kind, FdinfoKind::kForeign);
  EXPECT_TRUE(parse_fdinfo(client("drm-memory-gtt:\tnone\n", "amd")).problems.empty());
}

TEST(ParseFdinfo, ABlockThatIsMissingIsAbsentAndNotZero) {
  const auto interrupted = of_case("70-fdinfo-block-missing/proc/300/fdinfo/7");
  EXPECT_EQ(interrupted.kind, FdinfoKind::kNoClient);
  const auto common_lines = of_case("70-fdinfo-block-missing/proc/301/fdinfo/7");
  EXPECT_EQ(common_lines.kind, FdinfoKind::kAmdgpu);
  EXPECT_EQ(common_lines.client_id, 90U);
  EXPECT_FALSE(memory_of(common_lines.gtt) || memory_of(common_lines.vram));
  EXPECT_EQ(of_case("70-fdinfo-block-missing/proc/302/fdinfo/7").kind, FdinfoKind::kNoClient);
}

TEST(ParseFdinfo, TheSameIdOnTwoGpus) {
  const auto card = of_case("72-two-gpus-same-client-id/proc/500/fdinfo/10");
  const auto apu = of_case("72-two-gpus-same-client-id/proc/500/fdinfo/11");
  EXPECT_EQ(card.client_id, apu.client_id);
  EXPECT_EQ(card.gpu, "0000:03:00.0");
  EXPECT_EQ(apu.gpu, "0000:12:00.0");
  EXPECT_EQ(memory_of(card.vram), 8589934592U);
  EXPECT_EQ(memory_of(apu.gtt), 2147483648U);
}

TEST(ParseFdinfo, WhatCannotBeRightIsLeftOutAndNamed) {
  for (const char* value :
       {"-1 KiB", "x", "", "18446744073709551615 KiB", "18014398509481980 KiB", "1 TiB",
        "1 KiB KiB", "1.5 MiB", "281474976710657", "99999999999999999999"}) {
    const auto info = parse_fdinfo(
        client("drm-memory-gtt:\t" + std::string(value) + "\ndrm-memory-vram:\t4 KiB\n"));
    EXPECT_FALSE(memory_of(info.gtt)) << value;
    EXPECT_EQ(memory_of(info.vram), 4 * kKib) << value;
    ASSERT_EQ(info.problems.size(), 1U) << value;
    EXPECT_EQ(info.problems[0].line, 9) << value;
  }
}

TEST(ParseFdinfo, AKeyThatIsThereTwiceIsNamed) {
  const auto info = parse_fdinfo(client("drm-memory-gtt:\t4 KiB\ndrm-memory-gtt:\t8 KiB\n"));
  EXPECT_EQ(memory_of(info.gtt), 4 * kKib);
  EXPECT_EQ(info.problems.size(), 1U);
  // Engines of two kinds share a name.
  EXPECT_TRUE(
      parse_fdinfo(client("drm-engine-dec:\t5 ns\ndrm-engine-dec:\t6 ns\n")).problems.empty());
}

TEST(ParseFdinfo, AClientWithoutItsAddressOrIdIsNamed) {
  EXPECT_EQ(parse_fdinfo("drm-driver:\tamdgpu\ndrm-client-id:\t4\n").problems.size(), 1U);
  EXPECT_EQ(
      parse_fdinfo("drm-driver:\tamdgpu\ndrm-pdev:\t0000:c5:00.0\npasid:\t5\n").problems.size(),
      1U);
  EXPECT_EQ(parse_fdinfo("vram mem:\t5 kB\n").problems.size(), 1U);
}

TEST(ParseFdinfo, OtherFilesHoldNoClient) {
  for (const char* text : {"", "pos:\t0\nflags:\t02\nmnt_id:\t15\nino:\t1\neventfd-count: 0\n",
                           "no colon\n", "pos:\t0\nPid:\t5\n", "arc mem:\t5 kB\n"}) {
    const auto info = parse_fdinfo(text);
    EXPECT_EQ(info.kind, FdinfoKind::kNoClient) << text;
    EXPECT_TRUE(info.problems.empty()) << text;
  }
}

TEST(ParseFdinfo, LineThatWasCutIsNoNumber) {
  const auto info = parse_fdinfo(
      "drm-driver:\tamdgpu\ndrm-client-id:\t20\ndrm-pdev:\t0000:c5:00.0\ndrm-resident-gtt:\t20971");
  EXPECT_EQ(info.client_id, 20U);
  EXPECT_FALSE(info.gtt.resident);
  EXPECT_EQ(info.problems.size(), 1U);
}

TEST(ParseFdinfo, AddressIsOneOfPci) {
  for (const char* address : {"bad\"", "0000:c5:00", "0000:C5:00.0"}) {
    const auto info = parse_fdinfo(
        std::string("drm-driver:\tamdgpu\ndrm-client-id:\t20\ndrm-pdev:\t") + address + "\n");
    EXPECT_EQ(info.gpu, "") << address;
    EXPECT_EQ(info.problems.size(), 1U) << address;
  }
}

}  // namespace
}  // namespace apu
