#include "collectors/host.h"

#include <gtest/gtest.h>

#include "tests/support/collector_host.h"
#include "tests/support/temp_tree.h"

namespace apu {
namespace {

TEST(HostFamilies, AreTheInfoAndTheBootTime) {
  const auto families =
      to_families({from_unix_seconds(1782716334), "6.14.0", "6.14.14", "7.0.2", "NucBox"});
  EXPECT_EQ(value_of(families, R"(apu_host_info{kernel="6.14.0",amdgpu="6.14.14",rocm="7.0.2",)"
                               R"(machine="NucBox"})"),
            1);
  EXPECT_EQ(value_of(families, "apu_boot_time_seconds"), 1782716334);
}

TEST(HostCollector, ReadsTheFirstLineOfEachFile) {
  const TempTree tree;
  tree.write("proc/stat", "cpu 1\nbtime 1782716334\n");
  tree.write("proc/sys/kernel/osrelease", "6.14.0-36-generic\n");
  tree.write("sys/module/amdgpu/version", " 6.14.14 \nsecond line\n");
  tree.write("opt/rocm/.info/version", "7.0.2-56");
  tree.write("sys/class/dmi/id/product_name", "NucBox EVO-X2\n");
  const CollectorHost host(tree.path());
  const auto snapshot = make_host_collector(host.context())->collect();
  ASSERT_TRUE(snapshot);
  const auto& facts = std::any_cast<const HostFacts&>(snapshot->facts);
  EXPECT_EQ(to_unix_seconds(facts.boot_time), 1782716334);
  EXPECT_EQ(facts.kernel, "6.14.0-36-generic");
  EXPECT_EQ(facts.amdgpu, "6.14.14");
  EXPECT_EQ(facts.rocm, "7.0.2-56");
  EXPECT_EQ(facts.machine, "NucBox EVO-X2");
}

TEST(HostCollector, VersionThatIsNotThereIsEmpty) {
  const TempTree tree;
  tree.write("proc/stat", "btime 1782716334\n");
  const CollectorHost host(tree.path());
  const auto snapshot = make_host_collector(host.context())->collect();
  ASSERT_TRUE(snapshot);
  EXPECT_EQ(
      value_of(snapshot->families, R"(apu_host_info{kernel="",amdgpu="",rocm="",machine=""})"), 1);
}

TEST(HostCollector, WithoutABootTimeFailsAndSaysWhy) {
  const TempTree tree;
  const CollectorHost host(tree.path());
  const auto collector = make_host_collector(host.context());
  ASSERT_FALSE(collector->collect());
  EXPECT_EQ(host.source(R"(apu_source_unavailable_info{source="procfs",reason="not_found"})"), 1);
  tree.write("proc/stat", "cpu 1 2 3\n");
  EXPECT_EQ(collector->collect().error().kind, ErrorKind::kMalformed);
  EXPECT_EQ(host.source(R"(apu_source_unavailable_info{source="procfs",reason="malformed"})"), 1);
  EXPECT_EQ(host.parse_errors("procfs"), 1);
}

}  // namespace
}  // namespace apu
