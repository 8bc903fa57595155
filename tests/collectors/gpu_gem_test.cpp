#include "collectors/gpu_gem.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exporter/file_root.h"
#include "tests/support/collector_files.h"
#include "tests/support/collector_host.h"
#include "tests/support/gpu_tree.h"

namespace apu {
namespace {

using std::string_literals::operator""s;
using std::string_view_literals::operator""sv;
using enum GemPlacement;
using testing::HasSubstr;

const std::string kHead = "pid     2217 command kwin_wayland:\n";
const std::string kObject = "\t\t0x00000001:         4096 byte GTT\n";
const std::string kDebug = "sys/kernel/debug/";
constexpr auto kGpu = "0000:c5:00.0";

/// The sum over all placements.
GemUse sum_of(const GemUses& uses) {
  GemUse sum;
  for (std::size_t i = 0; i < kGemPlacements; ++i) {
    sum.objects += uses[static_cast<GemPlacement>(i)].objects;
    sum.bytes += uses[static_cast<GemPlacement>(i)].bytes;
  }
  return sum;
}

// --- parse

TEST(ParseGemInfo, ReadsTheRecordedCase) {
  const auto info = parse_gem_info(
      read_file(case_path("63-gem-info") / "sys/kernel/debug/dri/0/amdgpu_gem_info"));
  EXPECT_TRUE(info.problems.empty());
  ASSERT_EQ(info.clients.size(), 1U);
  const GemClient& client = info.clients[0];
  EXPECT_EQ(client.pid, 2088269);
  EXPECT_EQ(client.comm, "allocator@2.0-s");
  EXPECT_EQ(client.uses[kGtt].bytes, 6295552U);
  EXPECT_EQ(client.uses[kVram].bytes, 4194304U);
  EXPECT_EQ(client.uses[kGtt].objects, 4U);
  EXPECT_EQ(client.uses[kVram].objects, 2U);
  EXPECT_EQ(sum_of(client.uses).objects, 6U);
  EXPECT_EQ(sum_of(info.total).bytes, 6295552U + 4194304U);
}

TEST(ParseGemInfo, ReadsEachPlacement) {
  const std::vector<std::pair<std::string_view, GemPlacement>> cases{
      {"VRAM VISIBLE", kVisibleVram},
      {"VRAM VISIBLE pin count 1 CPU_ACCESS_REQUIRED VRAM_CONTIGUOUS", kVisibleVram},
      {"VRAM", kVram},
      {"VRAM NO_CPU_ACCESS VRAM_CLEARED", kVram},
      {"VRAM pin count 2", kVram},
      {"GTT exported as ino:123 CPU_ACCESS_REQUIRED CPU_GTT_USWC EXPLICIT_SYNC", kGtt},
      {"GTT VRAM_CLEARED", kGtt},
      {" GTT", kGtt},
      {"  GTT", kGtt},
      {" CPU imported from 00000000c0ffee00", kCpu},
      {"CPU", kCpu},
      {"GDS", kGds},
      {"GWS", kGws},
      {"OA", kOa},
      {"PREEMPTIBLE", kPreemptible},
      {"DOORBELL CPU_ACCESS_REQUIRED", kDoorbell},
      {"MMIO REMAP", kMmioRemap},
      {"NONE", kNone},
      {"UNKNOWN VM_ALWAYS_VALID", kUnknown},
      {"GTT\tkernel fence:amdgpu sdma0 seq 7 signalled", kGtt},
      {"GTT LATER_FLAG imported from ino:18446744073709551615", kGtt}};
  for (const auto& [text, placement] : cases) {
    for (const auto* tabs : {"\t", "\t\t"}) {
      const auto info =
          parse_gem_info(fmt::format("{}{}0x0000002a: {:12} byte {}\n", kHead, tabs, 65536, text));
      EXPECT_TRUE(info.problems.empty()) << text;
      EXPECT_EQ(info.total[placement].objects, 1U) << text;
      EXPECT_EQ(info.total[placement].bytes, 65536U) << text;
      EXPECT_EQ(sum_of(info.total).objects, 1U) << text;
    }
  }
}

TEST(ParseGemInfo, FencesAndBlankLinesAreNoObjects) {
  const auto info = parse_gem_info(kHead +
                                   "\t\t0x00000001:         4096 byte GTT VM_ALWAYS_VALID"
                                   "\tkernel fence:amdgpu sdma0 seq 7 signalled\n"
                                   "\twrite fence:drm_sched gfx_0.0.0 seq 9 unsignalled\n"
                                   "\n" +
                                   kObject);
  EXPECT_TRUE(info.problems.empty());
  EXPECT_EQ(info.total[kGtt].objects, 2U);
}

TEST(ParseGemInfo, ClientsKeepTheirObjectsApart) {
  const auto info = parse_gem_info(kHead + kObject + "pid     2218 command idle:\n" + kHead +
                                   kObject + "\t\t0x00000002:            1 byte UNKNOWN\n");
  ASSERT_EQ(info.clients.size(), 3U);
  EXPECT_EQ(sum_of(info.clients[0].uses).objects, 1U);
  EXPECT_EQ(sum_of(info.clients[1].uses).objects, 0U);
  EXPECT_EQ(info.clients[2].uses[kUnknown].objects, 1U);
  EXPECT_EQ(info.total[kGtt].bytes, 8192U);
}

TEST(ParseGemInfo, ANameMayHoldAnything) {
  for (const auto name :
       {"kwin_wayland"sv, ""sv, ":"sv, "a: b:"sv, "x command y"sv, "12 command 34:"sv, " "sv,
        "<unknown>"sv, "\xff\xfe\x01"sv, "0x1: 4 byte GTT"sv}) {
    const auto info = parse_gem_info(fmt::format("pid {:8} command {}:\n{}", 77, name, kObject));
    EXPECT_TRUE(info.problems.empty()) << name;
    ASSERT_EQ(info.clients.size(), 1U) << name;
    EXPECT_EQ(info.clients[0].pid, 77) << name;
    EXPECT_EQ(info.clients[0].comm, name);
    EXPECT_EQ(info.total[kGtt].bytes, 4096U) << name;
  }
}

TEST(ParseGemInfo, ANameMayHoldALineEnd) {
  for (const auto name : {"a\nb"sv, "\npid 1 command "sv, "\n\t0x1: 9 byte OA"sv, "\n"sv}) {
    const auto info = parse_gem_info(fmt::format("pid {:8} command {}:\n{}", 77, name, kObject));
    EXPECT_TRUE(info.problems.empty()) << name;
    ASSERT_EQ(info.clients.size(), 1U) << name;
    EXPECT_EQ(info.clients[0].comm, name);
    EXPECT_EQ(sum_of(info.total).bytes, 4096U) << name;
  }
}

TEST(ParseGemInfo, ANameCannotAddBytes) {
  for (const auto name : {":\npid 1 command"sv, ":\n\t0x1:9 byte OA"sv, "a:\n 0x00000001"sv}) {
    const auto info = parse_gem_info(fmt::format("pid {:8} command {}:\n{}", 77, name, kObject));
    EXPECT_EQ(sum_of(info.total).bytes, 4096U) << name;
    EXPECT_EQ(info.clients[0].pid, 77) << name;
  }
}

TEST(ParseGemInfo, ANameWithoutItsEndIsAProblem) {
  for (const auto& rest : {""s, kObject, kHead}) {
    const auto info = parse_gem_info("pid     2217 command kwin_way\n" + rest);
    ASSERT_EQ(info.problems.size(), 1U) << rest;
    EXPECT_EQ(info.problems[0].line, 1);
    EXPECT_EQ(info.clients[0].pid, 2217);
    EXPECT_EQ(info.clients.size(), rest == kHead ? 2U : 1U);
  }
}

TEST(ParseGemInfo, DamagedClientKeepsItsObjects) {
  for (const auto line :
       {"pid "sv, "pid     22"sv, "pid     2217 comm"sv, "pid    2217x command foo:"sv,
        "pid          command foo:"sv, "pid       -1 command foo:"sv, "pid 1 command foo:"sv,
        "pid 99999999999999999999 command foo:"sv, "pid \xff\0 command foo:"sv}) {
    const auto info = parse_gem_info(kHead + kObject + std::string(line) + "\n" + kObject);
    ASSERT_EQ(info.problems.size(), 1U) << line;
    EXPECT_EQ(info.problems[0].line, 3) << line;
    EXPECT_THAT(info.problems[0].what, HasSubstr("no client in 'pid ")) << line;
    ASSERT_EQ(info.clients.size(), 2U) << line;
    EXPECT_FALSE(info.clients[1].pid) << line;
    EXPECT_EQ(info.clients[1].uses[kGtt].objects, 1U) << line;
    EXPECT_EQ(info.total[kGtt].objects, 2U) << line;
  }
}

TEST(ParseGemInfo, DamagedObjectIsAProblemAndTheOthersCount) {
  for (const auto line : {"\t\t0x"sv,
                          "\t\t0x00000001"sv,
                          "\t\t0x00000001:"sv,
                          "\t\t0x00000001:         40"sv,
                          "\t\t0x00000001:         4096 byte"sv,
                          "\t\t0x00000001:         4096 byte GT"sv,
                          "\t\t0x00000001:         4096 byte VRAMX"sv,
                          "\t\t0x00000001:         4096 byte MMIO"sv,
                          "\t\t0x00000001:         4096 byte SOMETHING"sv,
                          "\t\t0x00000001:         4096 byteGTT"sv,
                          "\t\t0x00000001:         4096 KiB GTT"sv,
                          "\t\t0x00000001:        -4096 byte GTT"sv,
                          "\t\t0x00000001: 18446744073709547520 byte GTT"sv,
                          "\t\t0x00000001: 99999999999999999999 byte GTT"sv,
                          "\t\t0x00000001: 281474976710657 byte GTT"sv,
                          "\t\t0x0000000g:         4096 byte GTT"sv,
                          "\t\t0x1:         4096 byte GTT"sv,
                          "\t\t0x00000001:4096 byte GTT"sv,
                          "\t\t0x00000001: 0x1000 byte GTT"sv,
                          " 0x\xff\0"sv}) {
    const auto info = parse_gem_info(kHead + kObject + std::string(line) + "\n" + kObject);
    ASSERT_EQ(info.problems.size(), 1U) << line;
    EXPECT_EQ(info.problems[0].line, 3) << line;
    EXPECT_EQ(sum_of(info.total).objects, 2U) << line;
    EXPECT_EQ(sum_of(info.total).bytes, 8192U) << line;
  }
}

TEST(ParseGemInfo, AnObjectWithoutAClientIsAProblem) {
  const auto info = parse_gem_info(kObject);
  EXPECT_EQ(info.problems.size(), 1U);
  EXPECT_EQ(sum_of(info.total).objects, 0U);
  EXPECT_TRUE(info.clients.empty());
}

TEST(ParseGemInfo, ASumThatWouldWrapIsRefused) {
  constexpr std::uint64_t kFit = std::uint64_t{1} << (63U - 48U);
  std::string text = kHead;
  for (std::uint64_t i = 0; i < kFit + 3; ++i) {
    text += "\t\t0x00000001: 281474976710656 byte GTT\n";
  }
  const auto info = parse_gem_info(text + kHead + kObject);
  EXPECT_EQ(info.problems.size(), 4U);
  EXPECT_EQ(info.total[kGtt].objects, kFit);
  EXPECT_EQ(info.total[kGtt].bytes, std::uint64_t{1} << 63U);
}

TEST(ParseGemInfo, OtherTextSaysNothing) {
  for (const auto text : {""sv, "\n\n"sv, "\0\xff"sv, "Total 5\n"sv, "pids 5\n"sv, "0x1: 4\n"sv}) {
    const auto info = parse_gem_info(text);
    EXPECT_TRUE(info.clients.empty() && info.problems.empty()) << text;
  }
}

// --- map

TEST(GpuGemFamilies, APlacementWithoutAnObjectIsAbsent) {
  EXPECT_TRUE(to_families(GpuGemFacts{}).empty());
  const auto families = to_families({{{kGpu, parse_gem_info("")}}});
  EXPECT_EQ(value_of(families, R"(apu_gpu_gem_clients{gpu="0000:c5:00.0"})"), 0);
  EXPECT_FALSE(has_family(families, "apu_gpu_gem_bytes"));
  EXPECT_FALSE(has_family(families, "apu_gpu_gem_objects"));
}

TEST(GpuGemFamilies, AnObjectOfNoSizeIsThere) {
  const auto families =
      to_families({{{kGpu, parse_gem_info(kHead + "\t\t0x00000001:            0 byte OA\n")}}});
  EXPECT_EQ(value_of(families, R"(apu_gpu_gem_bytes{gpu="0000:c5:00.0",placement="oa"})"), 0);
  EXPECT_EQ(value_of(families, R"(apu_gpu_gem_objects{gpu="0000:c5:00.0",placement="oa"})"), 1);
}

// --- collect

class GpuGemCollectorTest : public testing::Test {
 protected:
  [[nodiscard]] GpuGemFacts collect() const {
    const auto snapshot = collector_->collect();
    EXPECT_TRUE(snapshot);
    return snapshot ? std::any_cast<GpuGemFacts>(snapshot->facts) : GpuGemFacts{};
  }

  TempTree tree_;
  CollectorHost host_{tree_.path()};
  std::unique_ptr<Collector> collector_ = make_gpu_gem_collector(host_.context());
};

TEST_F(GpuGemCollectorTest, WithoutACardFailsAndSaysSo) {
  tree_.write("sys/module/ttm/parameters/pages_limit", "1\n");
  ASSERT_FALSE(collector_->collect());
  EXPECT_EQ(host_.source(R"(apu_source_unavailable_info{source="gem_info",reason="not_found"})"),
            1);
}

TEST_F(GpuGemCollectorTest, WithoutDebugfsFailsAndSaysSo) {
  add_card(tree_, 0, kGpu);
  ASSERT_FALSE(collector_->collect());
  EXPECT_EQ(host_.source(R"(apu_source_unavailable_info{source="gem_info",reason="not_found"})"),
            1);
}

TEST_F(GpuGemCollectorTest, WithoutThePrivilegeFailsAndAsksNoOtherName) {
  add_card(tree_, 0, kGpu);
  tree_.make_unreadable(kDebug + "dri/0000:c5:00.0/amdgpu_gem_info");
  tree_.make_fifo(kDebug + "dri/0/amdgpu_gem_info");  // whose open would not return
  ASSERT_FALSE(collector_->collect());
  EXPECT_EQ(
      host_.source(R"(apu_source_unavailable_info{source="gem_info",reason="permission_denied"})"),
      1);
}

TEST_F(GpuGemCollectorTest, FindsTheFileByAddressOrByNumber) {
  add_card(tree_, 0, "0000:03:00.0");
  add_card(tree_, 1, kGpu);
  tree_.write(kDebug + "dri/0000:c5:00.0/amdgpu_gem_info", kHead + kObject);
  tree_.write(kDebug + "dri/0/amdgpu_gem_info", kHead + kObject + kObject);
  tree_.make_fifo(kDebug + "dri/1/amdgpu_gem_info");
  const auto facts = collect();
  ASSERT_EQ(facts.gpus.size(), 2U);
  EXPECT_EQ(facts.gpus[0].gpu, "0000:03:00.0");
  EXPECT_EQ(facts.gpus[0].info.total[kGtt].objects, 2U);
  EXPECT_EQ(facts.gpus[1].gpu, kGpu);
  EXPECT_EQ(facts.gpus[1].info.total[kGtt].objects, 1U);
  EXPECT_EQ(host_.source(R"(apu_source_available{source="gem_info"})"), 1);
}

TEST_F(GpuGemCollectorTest, AGpuThatIsRefusedCostsNoOther) {
  add_card(tree_, 0, "0000:03:00.0");
  add_card(tree_, 1, kGpu);
  tree_.make_unreadable(kDebug + "dri/0000:03:00.0/amdgpu_gem_info");
  tree_.write(kDebug + "dri/0000:c5:00.0/amdgpu_gem_info", kHead + kObject);
  const auto facts = collect();
  ASSERT_EQ(facts.gpus.size(), 1U);
  EXPECT_EQ(facts.gpus[0].gpu, kGpu);
  EXPECT_EQ(host_.source(R"(apu_source_available{source="gem_info"})"), 0);
}

TEST_F(GpuGemCollectorTest, DamagedLinesCountAsParseErrors) {
  add_card(tree_, 0, kGpu);
  tree_.write(kDebug + "dri/0/amdgpu_gem_info", kHead + "\t\t0x00000001:  4096 by\n" + kObject);
  EXPECT_EQ(collect().gpus[0].info.total[kGtt].objects, 1U);
  EXPECT_EQ(host_.parse_errors("gem_info"), 1);
}

TEST_F(GpuGemCollectorTest, AFileThatIsTooLargeToHoldIsReadWhole) {
  constexpr std::uint64_t kMany = 50'000;
  std::string text = kHead;
  for (std::uint64_t i = 1; i <= kMany; ++i) {
    text += fmt::format("\t\t0x{:08x}: {:12} byte GTT CPU_ACCESS_REQUIRED\n", i, 4096);
  }
  ASSERT_GT(text.size(), FileRoot::kMaxFileBytes);
  add_card(tree_, 0, kGpu);
  tree_.write(kDebug + "dri/0/amdgpu_gem_info", text);
  EXPECT_EQ(collect().gpus[0].info.total[kGtt].objects, kMany);
  EXPECT_EQ(host_.parse_errors("gem_info"), 0);
}

TEST_F(GpuGemCollectorTest, AFileWithoutEndIsReportedAndCountsForNothing) {
  add_card(tree_, 0, kGpu);
  const std::string file = kDebug + "dri/0/amdgpu_gem_info";
  tree_.write(file, kHead + kObject);
  std::filesystem::resize_file(tree_.path() / file, FileRoot::kMaxLineFileBytes + 1);
  ASSERT_FALSE(collector_->collect());
  EXPECT_EQ(host_.source(R"(apu_source_unavailable_info{source="gem_info",reason="malformed"})"),
            1);
  EXPECT_EQ(host_.parse_errors("gem_info"), 1);
}

}  // namespace
}  // namespace apu
