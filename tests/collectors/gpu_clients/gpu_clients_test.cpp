#include "collectors/gpu_clients/gpu_clients.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <string>

#include "collectors/gpu_clients/client_reader.h"
#include "tests/support/collector_files.h"
#include "tests/support/collector_host.h"
#include "tests/support/gpu_tree.h"
#include "tests/support/temp_tree.h"

namespace apu {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

constexpr std::uint64_t kKib = 1024;
constexpr const char* kNode = "/dev/dri/renderD128";
constexpr const char* kGpu = "0000:c5:00.0";

/// As kernels print it that keep sums: without a lock.
std::string new_layout(std::uint64_t id, std::uint64_t vram_kib, std::uint64_t gtt_kib,
                       const std::string& gpu = kGpu) {
  return fmt::format(
      "pos:\t0\nflags:\t02100002\nmnt_id:\t27\nino:\t614\ndrm-driver:\tamdgpu\ndrm-client-id:\t{}\n"
      "drm-pdev:\t{}\npasid:\t32790\ndrm-total-vram:\t{} KiB\ndrm-shared-vram:\t0\n"
      "drm-resident-vram:\t{} KiB\ndrm-total-gtt:\t{} KiB\ndrm-resident-gtt:\t{} KiB\n"
      "drm-memory-vram:\t{} KiB\ndrm-memory-gtt: \t{} KiB\n",
      id, gpu, vram_kib, vram_kib, gtt_kib, gtt_kib, vram_kib, gtt_kib);
}

/// As kernels print it that walk over the objects: those may hang, and skip.
std::string old_layout(std::uint64_t id, std::uint64_t vram_kib, std::uint64_t gtt_kib,
                       const std::string& gpu = kGpu) {
  return fmt::format(
      "pos:\t0\nflags:\t02100002\nmnt_id:\t27\nino:\t614\ndrm-driver:\tamdgpu\ndrm-client-id:\t{}\n"
      "drm-pdev:\t{}\npasid:\t32790\ndrm-memory-vram:\t{} KiB\ndrm-memory-gtt: \t{} KiB\n"
      "drm-memory-cpu: \t0 KiB\n",
      id, gpu, vram_kib, gtt_kib);
}

class GpuClientsTest : public testing::Test {
 protected:
  GpuClientsTest() {
    tree_.write("proc/2/stat",
                "2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 2 0 0 0\n");
    settings_.sweep_every = hours(1);
    settings_.reader.file_wait = milliseconds(150);
  }

  void process(int pid, const std::string& comm, bool kfd = false, int start = 1000,
               char state = 'S', int threads = 1) {
    tree_.write(
        fmt::format("proc/{}/stat", pid),
        fmt::format("{0} ({1}) {3} 1 {0} {0} 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 {4} 0 {2} 0 0 0\n",
                    pid, comm, start, state, threads));
    tree_.remove(fmt::format("proc/{}/fd/0", pid));
    tree_.link(fmt::format("proc/{}/fd/0", pid), "/dev/null");
    if (kfd) {
      tree_.write(fmt::format("sys/class/kfd/kfd/proc/{}/pasid", pid), "0\n");
    }
  }

  void descriptor(int pid, int number, const std::string& text, const std::string& node = kNode) {
    tree_.remove(fmt::format("proc/{}/fd/{}", pid, number));
    tree_.link(fmt::format("proc/{}/fd/{}", pid, number), node);
    fdinfo(pid, number, text);
  }

  void fdinfo(int pid, int number, const std::string& text) {
    tree_.remove(fmt::format("proc/{}/fdinfo/{}", pid, number));
    tree_.write(fmt::format("proc/{}/fdinfo/{}", pid, number), text);
  }

  void hang(int pid, int number) {
    tree_.remove(fmt::format("proc/{}/fdinfo/{}", pid, number));
    tree_.make_fifo(fmt::format("proc/{}/fdinfo/{}", pid, number));
  }

  /// What the driver says is in use, and the GPU in sysfs.
  void use(std::uint64_t gtt_kib, std::uint64_t vram_kib = 0) {
    if (gpu_.empty()) {
      gpu_ = add_card(tree_, 0, kGpu);
    }
    const auto write = [&](const std::string& pool, std::uint64_t kib) {
      tree_.write(gpu_ + "/mem_info_" + pool + "_used", fmt::format("{}\n", kib * kKib));
    };
    write("gtt", gtt_kib);
    write("vram", vram_kib);
  }

  void close(int pid, int number) {
    tree_.remove(fmt::format("proc/{}/fd/{}", pid, number));
    tree_.remove(fmt::format("proc/{}/fdinfo/{}", pid, number));
  }

  void end(int pid) {
    tree_.remove(fmt::format("proc/{}", pid));
    tree_.remove(fmt::format("sys/class/kfd/kfd/proc/{}", pid));
  }

  GpuClientsFacts pass() {
    if (!collector_) {
      collector_ = make_gpu_clients_collector(host_.context("gpu_clients"), settings_);
    }
    auto snapshot = collector_->collect();
    EXPECT_TRUE(snapshot);
    families_ = snapshot ? snapshot->families : Families();
    return snapshot ? std::any_cast<GpuClientsFacts>(snapshot->facts) : GpuClientsFacts();
  }

  GpuClientsFacts sweep() {
    settings_.sweep_every = milliseconds(0);
    collector_.reset();
    GpuClientsFacts facts = pass();
    return facts;
  }

  [[nodiscard]] std::optional<double> value(const std::string& series) const {
    return value_of(families_, series);
  }

  [[nodiscard]] std::optional<double> gtt(const std::string& gpu = kGpu) const {
    return value(fmt::format("apu_gpu_client_memory_bytes{{gpu=\"{}\",pool=\"gtt\"}}", gpu));
  }

  [[nodiscard]] std::optional<double> source(const std::string& series) const {
    return host_.source(series);
  }

  TempTree tree_;
  CollectorHost host_{tree_.path()};
  GpuClientsSettings settings_;
  std::unique_ptr<Collector> collector_;
  Families families_;
  std::string gpu_;
};

constexpr std::uint64_t kGib = 1024 * 1024;  // in KiB
constexpr const char* kSilence = "pos:\t0\nflags:\t02\nmnt_id:\t27\nino:\t614\n";

const GpuProcess* find(const GpuClientsFacts& facts, std::int64_t pid) {
  const auto found = std::find_if(facts.processes.begin(), facts.processes.end(),
                                  [&](const GpuProcess& p) { return p.process.pid == pid; });
  return found == facts.processes.end() ? nullptr : &*found;
}

// --- what is found

TEST_F(GpuClientsTest, AHostWithoutGpuClientsHasNone) {
  process(100, "bash");
  const auto facts = pass();
  EXPECT_TRUE(facts.processes.empty() && facts.gpus.empty());
  EXPECT_TRUE(facts.all_known && facts.swept);
  EXPECT_FALSE(has_family(families_, "apu_gpu_clients"));
  EXPECT_EQ(value("apu_gpu_unread_clients"), 0);
  EXPECT_EQ(source("apu_source_available{source=\"fdinfo\"}"), 1);
  EXPECT_EQ(source("apu_guarded_read_timeouts_total{file=\"fdinfo\"}"), 0);
}

TEST_F(GpuClientsTest, WithoutProcfsFails) {
  tree_.remove("proc");
  EXPECT_FALSE(make_gpu_clients_collector(host_.context(), settings_)->collect());
  EXPECT_EQ(source("apu_source_available{source=\"procfs\"}"), 0);
}

TEST_F(GpuClientsTest, EachLayoutIsRead) {
  for (const auto& layout : {new_layout, old_layout}) {
    process(100, "llama-server-ro", true, 4242);
    descriptor(100, 7, layout(31, 5348, 25258000, kGpu));
    const auto facts = sweep();
    ASSERT_EQ(facts.processes.size(), 1U);
    const GpuProcess& found = facts.processes[0];
    EXPECT_EQ(found.process, (ProcessIdentity{100, 4242}));
    EXPECT_EQ(found.comm, "llama-server-ro");
    EXPECT_TRUE(found.kfd);
    EXPECT_EQ(found.unread, 0U);
    ASSERT_EQ(found.clients.size(), 1U);
    EXPECT_EQ(found.clients[0].key, (ClientKey{kGpu, 31}));
    EXPECT_EQ(found.clients[0].memory, (PoolBytes{5348 * kKib, 25258000 * kKib}));
    EXPECT_EQ(found.clients[0].exact, layout == new_layout);  // else objects may be left out
    EXPECT_EQ(gtt(), 25864192000.0);
    EXPECT_EQ(value("apu_gpu_client_memory_bytes{gpu=\"0000:c5:00.0\",pool=\"vram\"}"), 5476352.0);
    EXPECT_EQ(value("apu_gpu_clients{gpu=\"0000:c5:00.0\"}"), 1);
  }
}

TEST_F(GpuClientsTest, AClientCountsOnceHoweverManyHoldIt) {
  process(90, "parent");
  process(100, "llama-server", true);
  process(110, "child");
  descriptor(90, 3, new_layout(5, 0, 100));
  descriptor(100, 7, new_layout(5, 0, 100));
  descriptor(100, 8, new_layout(5, 0, 100));
  descriptor(100, 9, new_layout(6, 0, 20), "/dev/dri/card0");
  descriptor(110, 7, new_layout(5, 0, 100));
  descriptor(110, 8, new_layout(7, 0, 3));
  const auto facts = pass();
  EXPECT_EQ(facts.gpus.at(kGpu).clients, 3U);
  EXPECT_EQ(gtt(), 123.0 * kKib);
  EXPECT_TRUE(find(facts, 90)->clients.empty());
  EXPECT_EQ(find(facts, 100)->clients.size(), 2U);  // the one that KFD knows
  EXPECT_EQ(find(facts, 110)->clients.size(), 1U);
}

TEST_F(GpuClientsTest, WithoutKfdTheLowestIdHasIt) {
  process(110, "b");
  process(20, "a");
  descriptor(110, 7, new_layout(5, 0, 100));
  descriptor(20, 7, new_layout(5, 0, 100));
  const auto facts = pass();
  EXPECT_EQ(find(facts, 20)->clients.size(), 1U);
  EXPECT_TRUE(find(facts, 110)->clients.empty());
}

TEST_F(GpuClientsTest, TwoGpusWithTheSameClientIdAreTwo) {
  process(500, "llama-server", true);
  const auto fdinfo_of = [](int number) {
    return read_file(case_path("72-two-gpus-same-client-id/proc/500/fdinfo") /
                     std::to_string(number));
  };
  descriptor(500, 10, fdinfo_of(10));
  descriptor(500, 11, fdinfo_of(11), "/dev/dri/renderD129");
  const auto facts = pass();
  EXPECT_EQ(facts.gpus.size(), 2U);
  EXPECT_EQ(gtt("0000:03:00.0"), 67108864);
  EXPECT_EQ(gtt("0000:12:00.0"), 2147483648);
  EXPECT_EQ(find(facts, 500)->clients.size(), 2U);
}

TEST_F(GpuClientsTest, OtherDriversAreNoClients) {
  process(100, "desktop");
  descriptor(100, 7, read_file(case_path("69-fdinfo-other-drivers/npu/fdinfo")));
  descriptor(100, 8, read_file(case_path("69-fdinfo-other-drivers/xe/fdinfo")), "/dev/dri/card1");
  descriptor(100, 9, "pos:\t0\nflags:\t02\nmnt_id:\t27\nino:\t614\n", "/dev/dri/card2");
  for (int i = 0; i < 2; ++i) {
    const auto facts = pass();
    EXPECT_TRUE(facts.gpus.empty());
    EXPECT_TRUE(facts.all_known);
    EXPECT_EQ(facts.unread, 0U);
  }
}

TEST_F(GpuClientsTest, TheOldestLayoutHasNoClientId) {
  process(100, "llama-server");
  descriptor(100, 7, read_file(case_path("66-fdinfo-older-layouts/d/fdinfo")));
  descriptor(100, 8, read_file(case_path("66-fdinfo-older-layouts/d/fdinfo")));
  (void)pass();
  EXPECT_EQ(gtt("0000:08:00.0"), 8388608);
}

TEST_F(GpuClientsTest, TheDeadHoldNothing) {
  process(100, "llama-server", true, 1000, 'Z');
  tree_.write("sys/class/kfd/kfd/proc/101/pasid", "0\n");  // and no such process
  EXPECT_TRUE(pass().processes.empty());
  EXPECT_TRUE(pass().processes.empty());
}

// --- between sweeps

TEST_F(GpuClientsTest, ProcessesOfKfdAreFoundAtOnceAndOthersInASweep) {
  (void)pass();
  process(100, "llama-server", true);
  process(200, "vulkan");
  descriptor(100, 7, new_layout(5, 0, 100));
  descriptor(200, 7, new_layout(6, 0, 10));
  auto facts = pass();
  EXPECT_FALSE(facts.swept);
  EXPECT_EQ(gtt(), 100.0 * kKib);
  facts = sweep();
  EXPECT_TRUE(facts.swept);
  EXPECT_EQ(gtt(), 110.0 * kKib);
}

TEST_F(GpuClientsTest, ValuesAreFreshAndListsAreKept) {
  process(100, "llama-server", true);
  descriptor(100, 7, new_layout(5, 0, 100));
  (void)pass();
  fdinfo(100, 7, new_layout(5, 0, 333));
  descriptor(100, 8, new_layout(6, 0, 1));  // seen in the next sweep
  (void)pass();
  EXPECT_EQ(gtt(), 333.0 * kKib);
}

TEST_F(GpuClientsTest, AProcessThatHasJustOpenedKfdIsLookedAtUntilItHasAGpu) {
  process(100, "llama-server", true);
  tree_.link("proc/100/fd/5", "/dev/kfd");
  const auto facts = pass();
  EXPECT_EQ(facts.processes.size(), 1U);
  descriptor(100, 7, new_layout(5, 0, 100));
  (void)pass();
  EXPECT_EQ(gtt(), 100.0 * kKib);
}

TEST_F(GpuClientsTest, AClientOutlivesTheDescriptorThatItWasReadThrough) {
  process(100, "llama-server", true);
  process(110, "child");
  descriptor(100, 7, new_layout(5, 0, 100));
  descriptor(110, 7, new_layout(5, 0, 100));
  (void)pass();
  close(100, 7);
  const auto facts = pass();
  EXPECT_EQ(gtt(), 100.0 * kKib);
  EXPECT_TRUE(find(facts, 100)->clients.empty());
  EXPECT_EQ(find(facts, 110)->clients.size(), 1U);
  close(110, 7);
  (void)pass();
  EXPECT_FALSE(gtt());
}

TEST_F(GpuClientsTest, ANumberThatIsUsedAgainIsAnotherClient) {
  process(100, "llama-server", true);
  descriptor(100, 7, new_layout(5, 0, 100));
  (void)pass();
  fdinfo(100, 7, new_layout(6, 0, 30));
  const auto facts = pass();
  EXPECT_EQ(gtt(), 30.0 * kKib);
  EXPECT_EQ(find(facts, 100)->clients[0].key.id, 6U);
  tree_.remove("proc/100/fd/7");
  tree_.link("proc/100/fd/7", "anon_inode:[eventfd]");
  fdinfo(100, 7, "pos:\t0\neventfd-count: 0\n");
  EXPECT_TRUE(pass().gpus.empty());
  EXPECT_EQ(value("apu_gpu_unread_clients"), 0);
}

TEST_F(GpuClientsTest, AProcessThatEndsTakesItsClientsAlong) {
  process(100, "a", true);
  process(200, "b", true);
  descriptor(100, 7, new_layout(5, 0, 100));
  descriptor(200, 7, new_layout(6, 0, 10));
  (void)pass();
  end(100);
  (void)pass();
  EXPECT_EQ(gtt(), 10.0 * kKib);
}

TEST_F(GpuClientsTest, AProcessIdThatIsUsedAgainIsANewProcess) {
  process(100, "a", true, 1000);
  descriptor(100, 7, new_layout(5, 0, 100));
  (void)pass();
  close(100, 7);
  process(100, "b", true, 2000);
  descriptor(100, 9, new_layout(8, 0, 4));
  const auto facts = pass();
  EXPECT_EQ(facts.processes[0].process.start_ticks, 2000U);
  EXPECT_EQ(gtt(), 4.0 * kKib);
}

// --- what cannot be read

TEST_F(GpuClientsTest, MemoryThatIsNotPrintedIsAbsentAndSoIsTheSum) {
  process(300, "a", true);
  process(301, "b", true);
  descriptor(300, 7, old_layout(5, 0, 100));
  descriptor(301, 7, read_file(case_path("70-fdinfo-block-missing/proc/301/fdinfo/7")));
  const auto facts = pass();
  EXPECT_FALSE(find(facts, 301)->clients[0].memory.known());
  EXPECT_EQ(find(facts, 300)->clients[0].memory.gtt, 100 * kKib);
  EXPECT_FALSE(gtt());
  EXPECT_FALSE(facts.gpus.at(kGpu).exact);
  EXPECT_EQ(value("apu_gpu_clients{gpu=\"0000:c5:00.0\"}"), 2);
  EXPECT_EQ(value("apu_gpu_unread_clients"), 1);
}

TEST_F(GpuClientsTest, ABlockThatGoesMissingIsNotADropToZero) {
  process(300, "a", true);
  descriptor(300, 7, old_layout(5, 0, 100));
  (void)pass();
  fdinfo(300, 7, read_file(case_path("70-fdinfo-block-missing/proc/300/fdinfo/7")));
  const auto facts = pass();
  EXPECT_FALSE(gtt());
  EXPECT_EQ(facts.unread, 1U);
  EXPECT_EQ(facts.gpus.at(kGpu).clients, 1U);
  fdinfo(300, 7, old_layout(5, 0, 100));
  (void)pass();
  EXPECT_EQ(gtt(), 100.0 * kKib);
}

TEST_F(GpuClientsTest, AnUnknownClientMakesAllSumsUnknown) {
  use(100);
  process(300, "a", true);
  process(301, "b", true);
  descriptor(300, 7, read_file(case_path("70-fdinfo-block-missing/proc/300/fdinfo/7")));
  descriptor(301, 7, old_layout(5, 0, 100));
  const auto facts = pass();
  EXPECT_FALSE(facts.all_known);
  EXPECT_TRUE(facts.gpus.empty());
  EXPECT_EQ(find(facts, 300)->unread, 1U);
  EXPECT_EQ(find(facts, 301)->clients[0].memory.gtt, 100 * kKib);
}

TEST_F(GpuClientsTest, WhereObjectsAreSkippedWhatIsStillInUseIsStillHeld) {
  process(300, "a", true);
  descriptor(300, 7, old_layout(5, 8, 40 * kGib));
  use(40 * kGib, 8);
  EXPECT_FALSE(pass().gpus.at(kGpu).exact);
  fdinfo(300, 7, old_layout(5, 8, 8));
  for (int i = 0; i < 3; ++i) {
    const auto facts = pass();
    EXPECT_EQ(facts.gpus.at(kGpu).memory.gtt, 40 * kGib * kKib);
    EXPECT_EQ(facts.unowned.at(kGpu).gtt, 0U);
  }
  fdinfo(300, 7, old_layout(5, 8, 40 * kGib));
  EXPECT_EQ(pass().gpus.at(kGpu).memory.gtt, 40 * kGib * kKib);
}

TEST_F(GpuClientsTest, WhereObjectsAreSkippedAFallIsAsLargeAsThatOfMemoryInUse) {
  process(300, "a", true);
  process(301, "b", true);
  descriptor(300, 7, old_layout(5, 0, 40 * kGib));
  descriptor(301, 7, old_layout(6, 0, 20 * kGib));
  use(65 * kGib);
  EXPECT_EQ(pass().unowned.at(kGpu).gtt, 5 * kGib * kKib);
  fdinfo(300, 7, old_layout(5, 0, 30 * kGib));
  use(55 * kGib);
  auto facts = pass();
  EXPECT_EQ(facts.gpus.at(kGpu).memory.gtt, 50 * kGib * kKib);
  EXPECT_EQ(facts.unowned.at(kGpu).gtt, 5 * kGib * kKib);
  // One ends, which is no sign that the other let go of anything.
  end(301);
  fdinfo(300, 7, old_layout(5, 0, 0));
  use(35 * kGib);
  facts = pass();
  EXPECT_EQ(facts.gpus.at(kGpu).memory.gtt, 30 * kGib * kKib);
  EXPECT_EQ(facts.unowned.at(kGpu).gtt, 5 * kGib * kKib);
}

TEST_F(GpuClientsTest, WhereNoneAreSkippedAFallIsOne) {
  process(300, "a", true);
  descriptor(300, 7, new_layout(5, 8, 100));
  (void)pass();
  fdinfo(300, 7, new_layout(5, 8, 60));
  EXPECT_TRUE(pass().gpus.at(kGpu).exact);
  EXPECT_EQ(gtt(), 60.0 * kKib);
}

TEST_F(GpuClientsTest, DamagedNumbersAreCountedAndAbsent) {
  process(300, "a", true);
  descriptor(300, 7, old_layout(5, 8, 18014398509481980));
  const auto facts = pass();
  EXPECT_FALSE(gtt());
  EXPECT_EQ(facts.gpus.at(kGpu).memory.vram, 8 * kKib);
  EXPECT_EQ(host_.parse_errors("fdinfo"), 1);
}

TEST_F(GpuClientsTest, AHangingProcessCostsItselfAlone) {
  process(100, "a", true);
  process(200, "b", true);
  process(300, "c", true);
  descriptor(100, 7, old_layout(5, 0, 100));
  descriptor(200, 7, old_layout(6, 0, 10));
  descriptor(200, 8, old_layout(6, 0, 10));
  descriptor(300, 7, old_layout(7, 0, 1, "0000:03:00.0"), "/dev/dri/renderD129");
  (void)pass();
  EXPECT_EQ(gtt(), 110.0 * kKib);
  hang(200, 7);
  for (const std::uint64_t gtt_kib : {400U, 500U}) {
    fdinfo(100, 7, old_layout(5, 0, gtt_kib));
    fdinfo(300, 7, old_layout(7, 0, gtt_kib, "0000:03:00.0"));
    const auto facts = pass();
    EXPECT_EQ(find(facts, 100)->clients[0].memory.gtt, gtt_kib * kKib);
    EXPECT_EQ(gtt("0000:03:00.0"), static_cast<double>(gtt_kib * kKib));
    EXPECT_FALSE(gtt());
    EXPECT_EQ(find(facts, 200)->clients.size(), 1U);
    EXPECT_FALSE(find(facts, 200)->clients[0].memory.known());
    EXPECT_EQ(facts.unread, 1U);
    EXPECT_EQ(source("apu_source_unavailable_info{source=\"fdinfo\",reason=\"blocked\"}"), 1);
    EXPECT_EQ(source("apu_guarded_read_timeouts_total{file=\"fdinfo\"}"), 1);
  }
}

TEST_F(GpuClientsTest, AHangingProcessThatWasNeverReadMakesAllSumsUnknown) {
  process(100, "a", true);
  process(200, "b", true);
  descriptor(100, 7, old_layout(5, 0, 100));
  descriptor(200, 7, "");
  hang(200, 7);
  const auto facts = pass();
  EXPECT_FALSE(facts.all_known);
  EXPECT_EQ(find(facts, 200)->unread, 1U);
  EXPECT_EQ(find(facts, 100)->clients[0].memory.gtt, 100 * kKib);
  EXPECT_FALSE(gtt());
}

TEST_F(GpuClientsTest, OneThatHangsIsAskedAgainInTime) {
  settings_.reader.retry_after = milliseconds(0);
  process(200, "b", true);
  descriptor(200, 7, "");
  hang(200, 7);
  (void)pass();
  fdinfo(200, 7, old_layout(6, 0, 10));
  (void)pass();
  EXPECT_EQ(gtt(), 10.0 * kKib);
  EXPECT_EQ(source("apu_source_available{source=\"fdinfo\"}"), 1);
}

TEST_F(GpuClientsTest, OneThatHangsOnAKernelWithoutLocksLeavesTheOthersFresh) {
  process(100, "a", true);
  process(200, "b", true);
  descriptor(100, 7, new_layout(5, 0, 100));
  descriptor(200, 7, "");
  hang(200, 7);
  for (const std::uint64_t gtt_kib : {100U, 200U, 300U}) {
    fdinfo(100, 7, new_layout(5, 0, gtt_kib));
    const auto facts = pass();
    EXPECT_EQ(find(facts, 100)->clients.at(0).memory.gtt, gtt_kib * kKib);
    EXPECT_EQ(find(facts, 200)->unread, 1U);
  }
}

TEST_F(GpuClientsTest, HoweverManyHangTheOthersAreReadInTheSamePass) {
  // Eight at full length would take longer than the call; a new helper for each takes its time too.
  settings_.reader.file_wait = milliseconds(800);
  settings_.reader.call_wait = milliseconds(6000);
  for (int pid = 200; pid < 208; ++pid) {
    process(pid, "b", true);
    descriptor(pid, 7, "");
    hang(pid, 7);
  }
  process(300, "a", true);
  descriptor(300, 7, old_layout(5, 0, 100));
  const auto facts = pass();
  EXPECT_EQ(find(facts, 300)->clients.at(0).memory.gtt, 100 * kKib);
  EXPECT_EQ(facts.unread, 8U);
}

TEST_F(GpuClientsTest, AKernelThatPrintsNoClientsMakesThemUnread) {
  use(100);
  process(100, "vulkan");
  descriptor(100, 7, kSilence);
  for (int i = 0; i < 2; ++i) {
    const auto facts = pass();
    EXPECT_EQ(find(facts, 100)->unread, 1U);
    EXPECT_TRUE(facts.unowned.empty());
  }
}

TEST_F(GpuClientsTest, ADeviceOfAnotherDriverIsNoSilence) {
  use(100);
  add_card(tree_, 1, "0000:01:00.0", "nvidia", "0x10de");
  process(100, "a", true);
  descriptor(100, 7, new_layout(5, 0, 100));
  descriptor(100, 8, kSilence, "/dev/dri/renderD129");
  descriptor(100, 9, kSilence, "/dev/dri/card1");
  const auto facts = pass();
  EXPECT_EQ(facts.unread, 0U);
  EXPECT_EQ(facts.unowned.at(kGpu).gtt, 0U);
}

TEST_F(GpuClientsTest, WhereProcessesAreHiddenNothingIsUnowned) {
  use(100);
  tree_.write("sys/class/kfd/kfd/proc/3001/pasid", "0\n");
  process(3001, "stranger");
  tree_.remove("proc/2");
  process(100, "a");
  descriptor(100, 7, new_layout(5, 0, 100));
  const auto facts = pass();
  EXPECT_TRUE(facts.unowned.empty() && facts.gpus.empty());
  EXPECT_EQ(find(facts, 100)->clients.size(), 1U);
  EXPECT_EQ(find(facts, 3001), nullptr);
}

TEST_F(GpuClientsTest, WhatGrewIsNobodysOnlyAfterAllWereLookedAt) {
  use(1000);
  EXPECT_EQ(pass().unowned.at(kGpu).gtt, 1000 * kKib);
  process(200, "vulkan");
  descriptor(200, 7, new_layout(6, 0, 40 * kGib));
  use(40 * kGib + 1000);
  const auto facts = pass();
  EXPECT_TRUE(facts.swept);
  EXPECT_EQ(facts.unowned.at(kGpu).gtt, 1000 * kKib);
  EXPECT_FALSE(pass().swept);
  use(30 * kGib);
  EXPECT_FALSE(pass().swept);
  use(35 * kGib);  // more than it was meanwhile
  EXPECT_TRUE(pass().swept);
}

TEST_F(GpuClientsTest, AStrangerWithTheIdOfAnOrphanIsNotKnownToKfd) {
  process(100, "llama-server", true);
  descriptor(100, 7, new_layout(5, 0, 100));
  EXPECT_TRUE(find(pass(), 100)->kfd);
  tree_.remove("proc/100");
  process(100, "cron", false, 77);
  EXPECT_EQ(find(pass(), 100), nullptr);
  EXPECT_EQ(find(sweep(), 100)->kfd, true);  // a new exporter cannot know
}

TEST_F(GpuClientsTest, ALeaderThatEndedShowsNoDescriptors) {
  use(100);
  process(100, "llama-server", true, 1000, 'Z', 9);
  const auto facts = pass();
  EXPECT_EQ(find(facts, 100)->unread, 1U);
  EXPECT_TRUE(facts.unowned.empty());
}

// --- how it is read

class ClientReaderTest : public GpuClientsTest {
 protected:
  void begin(bool sweep = true) {
    EXPECT_FALSE(holders_.update({}, DrmMinors::read(FileRoot(tree_.path() / "sys")), sweep));
  }

  FileRoot procfs_{tree_.path() / "proc"};
  GpuHolders holders_{procfs_};
  ClientReader reader_{procfs_, SourceReporter(host_.board, "test"), settings_.reader};
};

TEST_F(ClientReaderTest, NoFileIsReadDirectly) {
  process(100, "a");
  for (const auto& layout : {new_layout, old_layout}) {
    descriptor(100, 7, layout(5, 0, 100, kGpu));
    begin();
    EXPECT_TRUE(reader_.read(holders_).at({kGpu, 5}).memory.known());
    ::kill(reader_.helper(), SIGKILL);
    begin();
    EXPECT_FALSE(reader_.read(holders_).at({kGpu, 5}).memory.known());
  }
}

TEST_F(ClientReaderTest, BetweenSweepsEachClientIsReadOnceAndForeignOnesNotAtAll) {
  process(100, "a");
  descriptor(100, 7, old_layout(5, 0, 100));
  descriptor(100, 8, old_layout(5, 0, 100));
  descriptor(100, 9, "drm-driver:\txe\n", "/dev/dri/renderD130");
  begin();
  (void)reader_.read(holders_);
  hang(100, 8);
  hang(100, 9);
  begin(false);
  EXPECT_TRUE(reader_.read(holders_).at({kGpu, 5}).memory.known());
  EXPECT_FALSE(reader_.blocked());
}

TEST_F(ClientReaderTest, ANameThatIsAnothersElsewhereHidesNoClient) {
  // A container may have another GPU under the name of this one.
  process(90, "a");
  process(100, "b");
  descriptor(90, 7, "drm-driver:\ti915\ndrm-client-id:\t5\ndrm-pdev:\t0000:00:02.0\n");
  descriptor(100, 7, new_layout(5, 0, 100));
  for (const bool sweep : {true, false, false}) {
    begin(sweep);
    EXPECT_TRUE(reader_.read(holders_).at({kGpu, 5}).memory.known());
  }
}

}  // namespace
}  // namespace apu
