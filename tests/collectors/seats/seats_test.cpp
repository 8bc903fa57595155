#include "collectors/seats/seats.h"

#include <gtest/gtest.h>

#include <cmath>

#include "collectors/registry.h"
#include "exporter/exposition.h"
#include "tests/support/collector_files.h"
#include "tests/support/collector_host.h"
#include "tests/support/temp_tree.h"

namespace apu {
namespace {

constexpr std::uint64_t kMiB = 1ULL << 20U;
const std::string kApu = "0000:c5:00.0";

/// A seat with processes of these ids, each of which started at ten times its id.
Seat seat(const std::string& name, const std::vector<std::int64_t>& pids) {
  Seat made;
  made.name = name;
  made.place = parse_seat_place("/system.slice/" + name + ".service");
  for (const std::int64_t pid : pids) {
    made.processes.push_back({{pid, static_cast<std::uint64_t>(pid * 10)},
                              "p" + std::to_string(pid),
                              made.place.cgroup,
                              true});
  }
  return made;
}

Gpu gpu(const std::string& address, std::uint64_t gtt_used, bool unified = true) {
  Gpu made;
  made.device.pci_address = address;
  made.unified_memory = unified;
  made.gtt = {std::nullopt, gtt_used};
  made.vram = {std::nullopt, 100 * kMiB};
  return made;
}

class SeatAccounts : public ::testing::Test {
 protected:
  SeatAccounts() {
    auto index = std::make_shared<SeatIndex>();
    index->seats = {seat("a", {1, 2}), seat("b", {3})};
    cgroup_.index = index;
    cgroup_.memory["a"].gpu_charged = 0;
    cgroup_.memory["b"].gpu_charged = 0;
    cgroup_.gpu_charged = 0;
    gpu_.gpus = {gpu(kApu, 1000 * kMiB)};
    clients_.by_process[{1, 10}][kApu] = {{"gtt", 600 * kMiB}, {"vram", kMiB}};
    clients_.by_process[{2, 20}][kApu] = {{"gtt", 100 * kMiB}, {"vram", 0}};
    clients_.by_process[{3, 30}][kApu] = {{"gtt", 200 * kMiB}, {"vram", kMiB}};
    clients_.unowned[kApu] = {{"gtt", 100 * kMiB}, {"vram", 0}};
  }

  [[nodiscard]] SeatInputs inputs() const { return {&cgroup_, &gpu_, &kfd_, &clients_}; }

  CgroupFacts cgroup_;
  GpuFacts gpu_;
  KfdFacts kfd_;
  ClientMemory clients_;
};

TEST_F(SeatAccounts, AddUpToTheHost) {
  const auto accounts = account_seats(inputs());
  EXPECT_EQ(accounts.at("a").gpus.at(kApu).gtt, 700 * kMiB);
  EXPECT_EQ(accounts.at("a").divergence, 700 * kMiB);
  EXPECT_EQ(accounts.at("b").divergence, 200 * kMiB);
  EXPECT_EQ(host_divergence(inputs()), 1000 * kMiB);
  EXPECT_EQ(unowned_memory(inputs()).at({kApu, "gtt"}), 100 * kMiB);
}

TEST_F(SeatAccounts, WhatIsChargedIsTakenOffOnce) {
  cgroup_.memory["a"].gpu_charged = 650 * kMiB;
  cgroup_.memory["b"].gpu_charged = 300 * kMiB;
  cgroup_.gpu_charged = 950 * kMiB;
  EXPECT_EQ(account_seats(inputs()).at("a").divergence, 50 * kMiB);
  EXPECT_EQ(account_seats(inputs()).at("b").divergence, 0U);  // never negative
  EXPECT_EQ(host_divergence(inputs()), 50 * kMiB);
}

TEST_F(SeatAccounts, WhatCannotBeReadIsAbsentAndNoSmallerSum) {
  cgroup_.memory["a"].gpu_charged = std::nullopt;  // memory.stat was not readable
  EXPECT_FALSE(account_seats(inputs()).at("a").divergence);
  cgroup_.gpu_charged = std::nullopt;
  EXPECT_FALSE(host_divergence(inputs()));
  cgroup_.gpu_charged = 0;
  gpu_.gpus.push_back(gpu("0000:03:00.0", 7));
  gpu_.gpus.back().gtt.used_bytes = std::nullopt;
  EXPECT_FALSE(host_divergence(inputs()));
  KfdProcess process;
  process.pid = 1;
  process.start_ticks = 10;
  process.gpus = {{7, kApu, 150 * kMiB, 1000, KfdQueueCounts{2, 1, 0}}};
  kfd_.processes = {process};
  process.pid = 2;
  process.start_ticks = 20;
  process.gpus = {{7, kApu, std::nullopt, 1000, std::nullopt}};
  kfd_.processes.push_back(process);
  EXPECT_FALSE(account_seats(inputs()).at("a").gpus.at(kApu).kfd_allocated);
  EXPECT_FALSE(account_seats(inputs()).at("a").gpus.at(kApu).queues);
}

TEST_F(SeatAccounts, CarveOutLargerThanGttHoldsTheModels) {
  gpu_.gpus[0].vram.size_bytes = 2000 * kMiB;
  gpu_.gpus[0].gtt.size_bytes = 1000 * kMiB;
  KfdProcess process;
  process.pid = 3;
  process.start_ticks = 30;
  process.gpus = {{7, kApu, 150 * kMiB, 1000, std::nullopt}};
  kfd_.processes = {process};
  EXPECT_FALSE(account_seats({&cgroup_, &gpu_, &kfd_, nullptr}).at("b").divergence);
}

TEST_F(SeatAccounts, ClientThatCannotBeReadMakesItsSeatUnknownAndNotSmaller) {
  clients_.by_process.erase({2, 20});
  clients_.unread[{2, 20}] = 1;
  clients_.unowned.clear();
  const auto accounts = account_seats(inputs());
  EXPECT_FALSE(accounts.at("a").gpus.at(kApu).gtt);
  EXPECT_FALSE(accounts.at("a").divergence);
  EXPECT_EQ(accounts.at("a").unread, 1U);
  EXPECT_EQ(accounts.at("b").unread, 0U);
  EXPECT_EQ(accounts.at("b").divergence, 200 * kMiB);
  EXPECT_TRUE(unowned_memory(inputs()).empty());
}

TEST_F(SeatAccounts, WithoutFdinfoKfdsTotalStandsInOnAnApuAlone) {
  const auto with_kfd = [&](bool unified) {
    gpu_.gpus = {gpu(kApu, 1000 * kMiB, unified)};
    gpu_.gpus.front().vram.size_bytes = 512 * kMiB;
    gpu_.gpus.front().gtt.size_bytes = 65536 * kMiB;
    KfdProcess process;
    process.pid = 3;
    process.start_ticks = 30;
    process.gpus = {{7, kApu, 150 * kMiB, 1000, KfdQueueCounts{2, 1, 0}}};
    kfd_.processes = {process};
    const SeatInputs without_clients{&cgroup_, &gpu_, &kfd_, nullptr};
    return account_seats(without_clients).at("b");
  };
  EXPECT_EQ(with_kfd(true).divergence, 150 * kMiB);
  EXPECT_FALSE(with_kfd(false).divergence);
  EXPECT_EQ(with_kfd(true).gpus.at(kApu).queues->compute, 2U);
  gpu_.gpus.front().vram.size_bytes = std::nullopt;
  EXPECT_FALSE(account_seats({&cgroup_, &gpu_, &kfd_, nullptr}).at("b").divergence);
}

/// A process of KFD that started at ten times its id.
KfdProcess kfd_process(std::int64_t pid, std::uint64_t bytes, const std::string& gpu = kApu) {
  KfdProcess process;
  process.pid = pid;
  process.start_ticks = static_cast<std::uint64_t>(pid * 10);
  process.gpus = {{7, gpu, bytes, std::nullopt, std::nullopt}};
  return process;
}

TEST_F(SeatAccounts, WhereObjectsMayBeLeftOutKfdTellsWhetherTheyAre) {
  clients_.may_lack = {{{1, 10}, kApu}, {{2, 20}, kApu}, {{3, 30}, kApu}};
  EXPECT_TRUE(unowned_memory(inputs()).empty());
  kfd_.processes = {kfd_process(1, 600 * kMiB), kfd_process(2, 100 * kMiB),
                    kfd_process(3, 200 * kMiB)};
  EXPECT_EQ(unowned_memory(inputs()).at({kApu, "gtt"}), 100 * kMiB);
  gpu_.gpus.front().vram.size_bytes = 512 * kMiB;
  gpu_.gpus.front().gtt.size_bytes = 65536 * kMiB;
  kfd_.processes[0].gpus[0].vram_bytes = 5000 * kMiB;
  EXPECT_TRUE(unowned_memory(inputs()).empty());
  EXPECT_FALSE(account_seats(inputs()).at("a").gpus.at(kApu).gtt);
  EXPECT_EQ(account_seats(inputs()).at("a").divergence, 5100 * kMiB);
}

TEST_F(SeatAccounts, KfdStandsInForItsOwnProcessesAlone) {
  gpu_.gpus.front().vram.size_bytes = 512 * kMiB;
  gpu_.gpus.front().gtt.size_bytes = 65536 * kMiB;
  kfd_.processes = {kfd_process(1, 600 * kMiB)};
  clients_.by_process.erase({1, 10});
  EXPECT_EQ(account_seats(inputs()).at("a").divergence, 700 * kMiB);
  clients_.by_process.erase({2, 20});  // and KFD does not know it
  EXPECT_FALSE(account_seats(inputs()).at("a").divergence);
}

TEST_F(SeatAccounts, EqualPoolsDoNotTellWhereKfdAllocates) {
  gpu_.gpus.front().vram.size_bytes = gpu_.gpus.front().gtt.size_bytes = 65536 * kMiB;
  kfd_.processes = {kfd_process(3, 200 * kMiB)};
  clients_.by_process.erase({3, 30});
  EXPECT_FALSE(account_seats(inputs()).at("b").divergence);
}

TEST_F(SeatAccounts, GpuWithoutAClientHoldsNothingThere) {
  const std::string card = "0000:03:00.0";
  gpu_.gpus.push_back(gpu(card, 0, false));
  kfd_.processes = {kfd_process(3, 200 * kMiB)};
  kfd_.processes[0].gpus.push_back({8, card, 0, std::nullopt, std::nullopt});
  EXPECT_EQ(account_seats(inputs()).at("b").divergence, 200 * kMiB);
  kfd_.processes[0].gpus[1].vram_bytes = 10 * kMiB;  // by a file that it has closed
  EXPECT_FALSE(account_seats(inputs()).at("b").divergence);
}

TEST_F(SeatAccounts, SessionsHaveADivergenceWhereTheKernelChargesNone) {
  cgroup_.memory.clear();
  EXPECT_FALSE(account_seats(inputs()).at("a").divergence);
  cgroup_.charges_gpu = true;
  EXPECT_FALSE(account_seats(inputs()).at("a").divergence);
  cgroup_.charges_gpu = false;
  EXPECT_EQ(account_seats(inputs()).at("a").divergence, 700 * kMiB);
}

TEST_F(SeatAccounts, OrphansMemoryIsUnownedAndNoSeats) {
  // Case 76: 45 GB in use, and no process.
  clients_.by_process.clear();
  clients_.unowned[kApu] = {{"gtt", 45'216'694'272}};
  kfd_.processes = {kfd_process(3, 45'216'694'272)};
  kfd_.processes[0].state = KfdProcessState::kOrphan;
  EXPECT_EQ(unowned_memory(inputs()).at({kApu, "gtt"}), 45'216'694'272U);
  EXPECT_TRUE(account_seats(inputs()).at("b").gpus.empty());
  clients_.unowned.clear();
  EXPECT_TRUE(unowned_memory(inputs()).empty());
}

TEST_F(SeatAccounts, TwoGpusAreToldApart) {
  const std::string card = "0000:03:00.0";
  gpu_.gpus.push_back(gpu(card, 64 * kMiB, false));
  clients_.by_process[{3, 30}][card] = {{"gtt", 64 * kMiB}, {"vram", 8192 * kMiB}};
  const auto account = account_seats(inputs()).at("b");
  EXPECT_EQ(account.gpus.at(kApu).gtt, 200 * kMiB);
  EXPECT_EQ(account.gpus.at(card).vram, 8192 * kMiB);
  EXPECT_EQ(account.divergence, 264 * kMiB);  // GTT of any GPU is system RAM
  EXPECT_EQ(host_divergence(inputs()), 1064 * kMiB);
}

// --- who stands for a seat, and its counters

TEST(SeatRepresentative, IsTheOneWithMostGpuMemoryUntilItEnds) {
  SeatRepresentatives representatives;
  ClientMemory clients;
  clients.by_process[{1, 10}][kApu] = {{"gtt", 10}};
  clients.by_process[{2, 20}][kApu] = {{"gtt", 90}};
  EXPECT_EQ(representatives.choose(seat("a", {1, 2}), &clients)->command, "p2");
  clients.by_process[{1, 10}][kApu] = {{"gtt", 1000}};
  EXPECT_EQ(representatives.choose(seat("a", {1, 2}), &clients)->command, "p2");
  EXPECT_EQ(representatives.choose(seat("a", {1, 3}), &clients)->command, "p1");
  EXPECT_EQ(representatives.choose(seat("a", {}), &clients), nullptr);
}

TEST(SeatRepresentative, IsTheOldestOnATie) {
  SeatRepresentatives representatives;
  EXPECT_EQ(representatives.choose(seat("a", {1, 2}), nullptr)->command, "p1");
}

TEST(SeatCounters, NeverFallWhileTheSeatLives) {
  SeatCounters counters;
  EXPECT_EQ(counters.total(seat("a", {1, 2}), kApu, {{{1, 10}, 100}, {{2, 20}, 50}}), 150U);
  EXPECT_EQ(counters.total(seat("a", {1, 2}), kApu, {{{1, 10}, 130}}), 180U);  // one not read
  EXPECT_EQ(counters.total(seat("a", {1}), kApu, {{{1, 10}, 130}}), 180U);     // and it ended
  EXPECT_EQ(counters.total(seat("a", {1, 5}), kApu, {{{1, 10}, 130}, {{5, 50}, 7}}), 187U);
  EXPECT_EQ(counters.total(seat("a", {}), kApu, {}), 187U);
  EXPECT_EQ(counters.total(seat("a", {1}), kApu, {{{1, 10}, 131}}), 188U);  // it was away
}

// --- recorded hosts

/// The page of all collectors over a host, each stage after the one before.
Families page_of(const CollectorHost& host) {
  std::vector<Families> parts;
  for (const unsigned stage : {0U, 1U, 2U, 3U, 4U}) {
    for (const CollectorSpec& spec : all_collectors()) {
      if (spec.stage != stage) {
        continue;
      }
      if (auto snapshot = spec.make(host.context(std::string(spec.name)))->collect()) {
        parts.push_back(snapshot->families);
        host.store->put(spec.name,
                        {std::make_shared<const Snapshot>(*std::move(snapshot)), host.clock->now(),
                         std::chrono::steady_clock::now(), spec.period});
      }
    }
  }
  std::vector<const Families*> pointers;
  for (const Families& part : parts) {
    pointers.push_back(&part);
  }
  return merge_families(pointers).families;
}

double sum_of(const Families& families, std::string_view name) {
  double sum = 0;
  for (const auto& family : families) {
    for (const auto& metric : family.metric) {
      sum += family.name == name ? metric.gauge.value : 0;
    }
  }
  return sum;
}

TEST(RecordedSeats, OfAStrixHaloAddUpToItsGtt) {
  const Families page = page_of(CollectorHost(fixture_path("strix_halo_healthy")));
  const double host = *value_of(page, "apu_memcg_gtt_divergence_bytes");
  const double unowned =
      *value_of(page, "apu_gpu_memory_unowned_bytes{gpu=\"" + kApu + "\",pool=\"gtt\"}");
  EXPECT_NEAR(sum_of(page, "apu_seat_memcg_gtt_divergence_bytes") + unowned, host, 8.0 * kMiB);
  EXPECT_GT(host, 60e9);
}

TEST(RecordedSeats, DivergenceOfAPodIsAllOfItsGtt) {
  // Case 79, to which the entry of KFD is added that every ROCm process has.
  TempTree tree;
  std::filesystem::copy(
      case_path("79-gtt-vs-memcg-divergence"), tree.path(),
      std::filesystem::copy_options::recursive | std::filesystem::copy_options::overwrite_existing);
  tree.write("sys/fs/cgroup/cgroup.controllers", "memory\n");
  tree.write("sys/fs/cgroup/kubepods.slice/pod-a/cgroup.procs", "700\n");
  tree.write("proc/700/stat",
             "700 (llama-server) S 1 1 1 0 -1 0 0 0 0 0 5 5 0 0 20 0 1 0 77 0 0 1 0 0 0 0\n");
  tree.link("proc/700/fd/9", "/dev/dri/renderD128");
  tree.write("sys/class/kfd/kfd/proc/700/pasid", "0\n");
  const Families page = page_of(CollectorHost(tree.path()));
  const std::string labels = R"({seat="pod-a",gpu="0000:c5:00.0",pool="gtt"})";
  EXPECT_EQ(value_of(page, "apu_seat_gpu_memory_bytes" + labels), 25'769'803'776);
  EXPECT_EQ(value_of(page, R"(apu_seat_memcg_gtt_divergence_bytes{seat="pod-a"})"), 25'769'803'776);
  EXPECT_EQ(value_of(page, R"(apu_seat_memcg_current_bytes{seat="pod-a"})"), 1'610'612'736);
}

}  // namespace
}  // namespace apu
