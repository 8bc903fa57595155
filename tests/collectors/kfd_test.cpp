#include <gtest/gtest.h>

#include "collectors/kfd_history.h"
#include "tests/support/collector_files.h"
#include "tests/support/collector_host.h"
#include "tests/support/gpu_tree.h"

namespace apu {
namespace {

using std::chrono::seconds;
using std::string_view_literals::operator""sv;

const std::string kEntry = "sys/class/kfd/kfd/proc/3101";
constexpr const char* kKthreadd =
    "2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 12 0 0 20 0 1 0 3 0 0\n";

std::string stat_of(int pid, char state, int start = 4118, int threads = 1) {
  return fmt::format(
      "{} (llama-server) {} 1 1 1 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 {} 0 {} 4096 1 0\n", pid, state,
      threads, start);
}

// --- parse

TEST(KfdQueueKind, FollowsTheDriversNumbers) {
  EXPECT_EQ(kfd_queue_kind(0), KfdQueueKind::kCompute);
  for (const std::uint64_t type : {1U, 3U, 4U, 5U}) {
    EXPECT_EQ(kfd_queue_kind(type), KfdQueueKind::kSdma) << type;
  }
  for (const std::uint64_t type : {2U, 6U, 255U}) {
    EXPECT_EQ(kfd_queue_kind(type), KfdQueueKind::kOther) << type;
  }
}

// --- state

KfdProcess process_in(KfdProcessState state, std::int64_t pid = 7) {
  KfdProcess process;
  process.pid = pid;
  process.state = state;
  process.comm = "llama-server";
  process.start_ticks = 5;
  return process;
}

TEST(KfdOrphans, TellHowLongAtLeast) {
  KfdOrphans orphans;
  std::vector<KfdProcess> processes{process_in(KfdProcessState::kAlive),
                                    process_in(KfdProcessState::kOrphan, 8)};
  const TimePoint start = from_unix_seconds(1000);
  orphans.update(start, processes);
  EXPECT_FALSE(processes[0].orphan_for);
  EXPECT_EQ(processes[1].orphan_for, seconds(0));
  orphans.update(start + seconds(600), processes);
  EXPECT_EQ(processes[1].orphan_for, seconds(600));
  orphans.update(start - seconds(5), processes);  // the clock was set back
  EXPECT_EQ(processes[1].orphan_for, seconds(0));
}

TEST(KfdOrphans, AStrangerWithThePidChangesNothing) {
  KfdOrphans orphans;
  const TimePoint start = from_unix_seconds(1000);
  std::vector<KfdProcess> processes{process_in(KfdProcessState::kOrphan)};
  orphans.update(start, processes);
  processes = {process_in(KfdProcessState::kAlive)};
  orphans.update(start + seconds(60), processes);
  EXPECT_EQ(processes[0].state, KfdProcessState::kOrphan);
  EXPECT_EQ(processes[0].orphan_for, seconds(60));
  EXPECT_EQ(processes[0].comm, "");
  EXPECT_FALSE(processes[0].start_ticks);
}

TEST(KfdOrphans, AnotherStartIsAStrangers) {
  KfdOrphans orphans;
  std::vector<KfdProcess> processes{process_in(KfdProcessState::kAlive)};
  orphans.update(from_unix_seconds(1000), processes);
  processes = {process_in(KfdProcessState::kAlive)};
  processes[0].start_ticks = 6;
  orphans.update(from_unix_seconds(1015), processes);
  EXPECT_EQ(processes[0].state, KfdProcessState::kOrphan);
  EXPECT_FALSE(processes[0].start_ticks);
}

TEST(KfdOrphans, EntryThatGoesIsForgotten) {
  KfdOrphans orphans;
  const TimePoint start = from_unix_seconds(1000);
  std::vector<KfdProcess> processes{process_in(KfdProcessState::kOrphan)};
  orphans.update(start, processes);
  std::vector<KfdProcess> none;
  orphans.update(start + seconds(15), none);
  processes = {process_in(KfdProcessState::kAlive)};
  orphans.update(start + seconds(30), processes);
  EXPECT_EQ(processes[0].state, KfdProcessState::kAlive);
  EXPECT_FALSE(processes[0].orphan_for);
}

// --- map

TEST(KfdFamilies, WhatIsNotKnownIsAbsent) {
  KfdFacts facts;
  facts.processes = {process_in(KfdProcessState::kUnknown)};
  auto families = to_families(facts);
  EXPECT_EQ(value_of(families, "apu_kfd_processes"), 1);
  EXPECT_FALSE(has_family(families, "apu_kfd_orphan_processes"));
  facts.host_processes_visible = true;
  families = to_families(facts);
  EXPECT_EQ(value_of(families, "apu_kfd_orphan_processes"), 0);
  EXPECT_FALSE(has_family(families, "apu_kfd_oldest_orphan_seconds"));
}

TEST(KfdFamilies, TakeTheOldestOrphan) {
  KfdFacts facts;
  facts.host_processes_visible = true;
  for (const int age : {5, 700, 30}) {
    facts.processes.push_back(process_in(KfdProcessState::kOrphan, age));
    facts.processes.back().orphan_for = seconds(age);
  }
  const auto families = to_families(facts);
  EXPECT_EQ(value_of(families, "apu_kfd_orphan_processes"), 3);
  EXPECT_EQ(value_of(families, "apu_kfd_oldest_orphan_seconds"), 700);
}

// --- collect

class KfdCollectorTest : public testing::Test {
 protected:
  void SetUp() override {
    tree_.write("proc/2/stat", kKthreadd);
    tree_.write(kEntry + "/vram_29772", "1073741824\n");
  }

  KfdFacts collect() {
    auto snapshot = collector_->collect();
    EXPECT_TRUE(snapshot);
    return snapshot ? std::any_cast<KfdFacts>(snapshot->facts) : KfdFacts{};
  }

  /// The only process of a pass.
  KfdProcess process() {
    KfdFacts facts = collect();
    EXPECT_EQ(facts.processes.size(), 1U);
    return facts.processes.empty() ? KfdProcess{} : facts.processes[0];
  }

  void write_queue(const std::string& below, int id, std::string_view gpu, std::string_view type) {
    const std::string queue = below + "/queues/" + std::to_string(id);
    tree_.write(queue + "/gpuid", gpu);
    tree_.write(queue + "/type", type);
    tree_.write(queue + "/size", "1048576");
  }

  TempTree tree_;
  CollectorHost host_{tree_.path()};
  std::unique_ptr<Collector> collector_ = make_kfd_collector(host_.context());
};

TEST_F(KfdCollectorTest, HostWithoutKfdFailsAndSaysSo) {
  tree_.remove("sys");
  const auto snapshot = collector_->collect();
  ASSERT_FALSE(snapshot);
  EXPECT_EQ(host_.source(R"(apu_source_unavailable_info{source="kfd",reason="not_found"})"), 1);
}

TEST_F(KfdCollectorTest, NoProcessIsZeroAndNoFailure) {
  tree_.remove(kEntry);
  EXPECT_TRUE(collect().processes.empty());
  EXPECT_EQ(host_.source(R"(apu_source_available{source="kfd"})"), 1);
}

TEST_F(KfdCollectorTest, KeepsWhatEachProcessHasOnEachGpu) {
  add_kfd_node(tree_, 1, 29772, "domain 0\nlocation_id 50432\n");
  tree_.write("proc/3101/stat", stat_of(3101, 'S'));
  tree_.write(kEntry + "/stats_29772/evicted_ms", "40000\n");
  tree_.write(kEntry + "/vram_51443", "0\n");
  tree_.write(kEntry + "/pasid", "32771\n");
  write_queue(kEntry, 0, "29772", "0");
  write_queue(kEntry, 1, "29772", "0");
  write_queue(kEntry, 2, "29772", "1");
  write_queue(kEntry, 3, "29772", "2");
  const KfdProcess process = this->process();
  EXPECT_EQ(process.pid, 3101);
  EXPECT_EQ(process.state, KfdProcessState::kAlive);
  EXPECT_EQ(process.comm, "llama-server");
  EXPECT_EQ(process.start_ticks, 4118U);
  ASSERT_EQ(process.gpus.size(), 2U);
  EXPECT_EQ(process.gpus[0].gpu_id, 29772U);
  EXPECT_EQ(process.gpus[0].gpu, "0000:c5:00.0");
  EXPECT_EQ(process.gpus[0].vram_bytes, 1073741824U);
  EXPECT_EQ(process.gpus[0].evicted_ms, 40000U);
  ASSERT_TRUE(process.gpus[0].queues);
  EXPECT_EQ(process.gpus[0].queues->compute, 2U);
  EXPECT_EQ(process.gpus[0].queues->sdma, 1U);
  EXPECT_EQ(process.gpus[0].queues->other, 1U);
  EXPECT_EQ(process.gpus[1].gpu, "");  // not in the topology
  EXPECT_EQ(process.gpus[1].vram_bytes, 0U);
  EXPECT_FALSE(process.gpus[1].evicted_ms);
  EXPECT_EQ(process.gpus[1].queues->compute, 0U);
}

TEST_F(KfdCollectorTest, KernelWithoutQueueFilesTellsNoCount) {
  EXPECT_FALSE(process().gpus.at(0).queues);
}

TEST_F(KfdCollectorTest, ContextsOfAProcessAddUp) {
  tree_.write(kEntry + "/context_1/vram_29772", "24\n");
  tree_.write(kEntry + "/context_1/stats_29772/evicted_ms", "9\n");
  write_queue(kEntry + "/context_1", 0, "29772", "1");
  const KfdProcess process = this->process();
  EXPECT_EQ(process.gpus.at(0).vram_bytes, 1073741848U);
  EXPECT_EQ(process.gpus.at(0).evicted_ms, 9U);
  EXPECT_EQ(process.gpus.at(0).queues->sdma, 1U);
}

TEST_F(KfdCollectorTest, EvictedTimeOfAContextOutlivesIt) {
  tree_.write(kEntry + "/stats_29772/evicted_ms", "1000\n");
  tree_.write(kEntry + "/context_1/stats_29772/evicted_ms", "500000\n");
  EXPECT_EQ(process().gpus.at(0).evicted_ms, 501000U);
  tree_.remove(kEntry + "/context_1");
  tree_.write(kEntry + "/stats_29772/evicted_ms", "1500\n");
  EXPECT_EQ(process().gpus.at(0).evicted_ms, 501500U);
  tree_.remove(kEntry);
  EXPECT_TRUE(collect().processes.empty());
  tree_.write(kEntry + "/stats_29772/evicted_ms", "3\n");
  EXPECT_EQ(process().gpus.at(0).evicted_ms, 3U);
}

TEST_F(KfdCollectorTest, SumWithoutADamagedContextIsAbsent) {
  tree_.write(kEntry + "/context_1/vram_29772", "18446744073709551000\n");
  EXPECT_FALSE(process().gpus.at(0).vram_bytes);
}

TEST_F(KfdCollectorTest, PartitionsHaveTheAddressOfTheirDevice) {
  add_card(tree_, 0, "0000:c5:00.0");
  add_kfd_node(tree_, 1, 29772, "domain 0\nlocation_id 50433\n");  // partition 1
  EXPECT_EQ(process().gpus.at(0).gpu, "0000:c5:00.0");
}

TEST_F(KfdCollectorTest, FilesThatCanHangAreNotOpened) {
  for (const char* file : {"/sdma_29772", "/context_1/sdma_29772", "/stats_29772/cu_occupancy",
                           "/unknown", "/queues/x/type"}) {
    tree_.make_fifo(kEntry + file);  // whose open would not return
  }
  EXPECT_EQ(process().gpus.size(), 1U);
}

TEST_F(KfdCollectorTest, DamagedValueIsAbsentAndCounts) {
  int errors = 0;
  for (const auto text : {""sv, "107374"sv, "\0\xff\n"sv, "18446744073709551000\n"sv, "x\n"sv}) {
    tree_.write(kEntry + "/vram_29772", text);
    EXPECT_FALSE(process().gpus.at(0).vram_bytes) << text;
    EXPECT_EQ(host_.parse_errors("kfd"), ++errors);
  }
}

TEST_F(KfdCollectorTest, QueueThatCannotBeReadMakesTheCountUnknown) {
  write_queue(kEntry, 0, "29772", "0");
  for (const auto type : {""sv, "zero"sv, "0\n"sv}) {
    write_queue(kEntry, 1, "29772", type);
    EXPECT_FALSE(process().gpus.at(0).queues) << type;
  }
  write_queue(kEntry, 1, "4294967296", "0");
  EXPECT_FALSE(process().gpus.at(0).queues);
  tree_.remove(kEntry + "/queues/1");
  EXPECT_EQ(process().gpus.at(0).queues->compute, 1U);
}

TEST_F(KfdCollectorTest, FileThatIsDeniedMakesTheSourceUnavailable) {
  tree_.remove(kEntry + "/vram_29772");
  tree_.make_unreadable(kEntry + "/vram_29772");
  EXPECT_FALSE(process().gpus.at(0).vram_bytes);
  EXPECT_EQ(host_.source(R"(apu_source_unavailable_info{source="kfd",reason="permission_denied"})"),
            1);
}

TEST_F(KfdCollectorTest, ZombieOrGoneIsAnOrphan) {
  tree_.write("proc/3101/stat", stat_of(3101, 'D'));
  EXPECT_EQ(process().state, KfdProcessState::kAlive);
  tree_.write("proc/3101/stat", stat_of(3101, 'Z', 4118, 5));
  EXPECT_EQ(process().state, KfdProcessState::kAlive);  // its threads have its memory
  tree_.write("proc/3101/stat", stat_of(3101, 'Z'));
  EXPECT_EQ(process().state, KfdProcessState::kOrphan);
  tree_.remove("proc/3101");
  host_.clock->set(host_.clock->now() + seconds(90));
  EXPECT_EQ(process().orphan_for, seconds(90));
}

TEST_F(KfdCollectorTest, StatThatCannotBeReadMakesNoOrphan) {
  tree_.write("proc/3101/stat", "3101 (llama");
  EXPECT_EQ(process().state, KfdProcessState::kUnknown);
  EXPECT_EQ(host_.parse_errors("procfs"), 1);
  tree_.remove("proc/3101/stat");
  tree_.make_unreadable("proc/3101/stat");
  EXPECT_EQ(process().state, KfdProcessState::kUnknown);
}

TEST_F(KfdCollectorTest, NamespaceOfOnesOwnTellsNoOrphan) {
  tree_.remove("proc/2");
  EXPECT_EQ(process().state, KfdProcessState::kUnknown);
  EXPECT_EQ(
      host_.source(R"(apu_source_unavailable_info{source="host_processes",reason="not_found"})"),
      1);
  tree_.write("proc/2/stat", stat_of(2, 'S'));  // some process of the container
  EXPECT_FALSE(collect().host_processes_visible);
  EXPECT_EQ(
      host_.source(R"(apu_source_unavailable_info{source="host_processes",reason="unsupported"})"),
      1);
}

// --- recorded

TEST(KfdCollector, EvictedTimeIsKeptPerGpu) {
  const auto facts_of = [](const char* part) {
    const CollectorHost host(case_path("90-kfd-evicted-ms") / part);
    return std::any_cast<KfdFacts>(make_kfd_collector(host.context())->collect()->facts);
  };
  const KfdFacts bad = facts_of("bad");
  EXPECT_EQ(bad.processes.at(0).gpus.at(0).evicted_ms, 120345U);
  EXPECT_EQ(bad.processes.at(0).gpus.at(0).vram_bytes, 1073741824U);
  EXPECT_EQ(facts_of("good").processes.at(0).gpus.at(0).evicted_ms, 25U);
  const auto two = facts_of("twogpu").processes.at(0).gpus;
  ASSERT_EQ(two.size(), 2U);
  EXPECT_EQ(two[0].gpu_id, 5510U);
  EXPECT_EQ(two[0].evicted_ms, 40000U);
  EXPECT_EQ(two[1].evicted_ms, 9U);
}

TEST(KfdCollector, NamesTheGpusOfAHostWithTwo) {
  const CollectorHost host(fixture_path("apu_and_dedicated"));
  const auto snapshot = make_kfd_collector(host.context())->collect();
  const auto facts = std::any_cast<KfdFacts>(snapshot->facts);
  ASSERT_EQ(facts.processes.size(), 3U);
  const KfdProcess& both = facts.processes[2];
  EXPECT_EQ(both.comm, "whisper-server");
  EXPECT_EQ(both.gpus.at(0).gpu, "0000:c6:00.0");
  EXPECT_EQ(both.gpus.at(0).queues->compute, 1U);
  EXPECT_EQ(both.gpus.at(1).gpu, "0000:03:00.0");
  EXPECT_EQ(both.gpus.at(1).queues->sdma, 1U);
}

TEST(KfdCollector, CountsEachDamagedFile) {
  const CollectorHost host(fixture_path("damaged_files"));
  ASSERT_TRUE(make_kfd_collector(host.context())->collect());
  EXPECT_EQ(host.parse_errors("kfd"), 4);  // a property of the node, vram, evicted_ms, a queue
}

}  // namespace
}  // namespace apu
