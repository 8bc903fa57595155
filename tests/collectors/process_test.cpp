#include "collectors/process.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <chrono>

#include "exporter/descriptor.h"
#include "tests/support/collector_host.h"
#include "tests/support/temp_tree.h"
#include "tests/support/wait.h"

namespace apu {
namespace {

Families collect() {
  const TempTree tree;  // the exporter's own process is read whatever the root
  const CollectorHost host(tree.path());
  auto snapshot = make_process_collector(host.context())->collect();
  EXPECT_TRUE(snapshot);
  return snapshot ? snapshot->families : Families();
}

TEST(ProcessFamilies, AreInBaseUnits) {
  ProcessFacts facts;
  facts.stat.user_ticks = 250;
  facts.stat.system_ticks = 50;
  facts.stat.threads = 9;
  facts.stat.start_ticks = 1234;
  facts.stat.virtual_bytes = 5000000;
  facts.stat.resident_pages = 3;
  facts.open_descriptors = 11;
  facts.max_descriptors = 1024;
  facts.boot_time = from_unix_seconds(1000);
  facts.page_bytes = 4096;
  facts.ticks_per_second = 100;
  const auto families = to_families(facts);
  EXPECT_EQ(value_of(families, "process_cpu_seconds_total"), 3);
  EXPECT_EQ(value_of(families, "process_open_fds"), 11);
  EXPECT_EQ(value_of(families, "process_max_fds"), 1024);
  EXPECT_EQ(value_of(families, "process_resident_memory_bytes"), 3 * 4096);
  EXPECT_EQ(value_of(families, "process_virtual_memory_bytes"), 5000000);
  EXPECT_EQ(value_of(families, "process_start_time_seconds"), 1012.34);
  EXPECT_EQ(value_of(families, "process_threads"), 9);
  EXPECT_EQ(value_of(families, "process_virtual_memory_max_bytes"), std::nullopt);
}

TEST(ProcessCollector, ReadsThisProcess) {
  const auto families = collect();
  EXPECT_GE(value_of(families, "process_threads"), 1);
  EXPECT_GT(value_of(families, "process_resident_memory_bytes"), 1 << 20);
  const double now = to_unix_seconds(std::chrono::system_clock::now());
  EXPECT_GT(value_of(families, "process_start_time_seconds"), now - 7 * 24 * 3600);
  EXPECT_LT(value_of(families, "process_start_time_seconds"), now + 5);
}

TEST(ProcessCollector, CountsOpenDescriptors) {
  EXPECT_TRUE(eventually([] {  // threads of other tests may open files too
    const auto before = value_of(collect(), "process_open_fds");
    const Descriptor first(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    const Descriptor second(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    return value_of(collect(), "process_open_fds") == *before + 2;
  }));
}

}  // namespace
}  // namespace apu
