#include "collectors/seat_config/seat_config.h"

#include <gtest/gtest.h>

#include "collectors/cgroup/cgroup.h"
#include "tests/support/collector_host.h"
#include "tests/support/temp_tree.h"

namespace apu {
namespace {

using namespace std::string_literals;

constexpr ProcessKey kFirst{41, 410};
constexpr ProcessKey kSecond{42, 420};

class SeatConfigTest : public ::testing::Test {
 protected:
  SeatConfigTest() : host_(tree_.path()) {
    for (const ProcessKey& process : {kFirst, kSecond}) {
      write_stat(process, "llama-server");
      write(process, "cmdline", "llama-server\0--no-mmap\0"s);
      write(process, "environ", "HSA_XNACK=1\0"s);
    }
    auto index = std::make_shared<SeatIndex>();
    index->seats.resize(1);
    index->seats[0].name = "llama";
    index->seats[0].processes = {{kFirst, "llama-server", "/llama.service", true},
                                 {kSecond, "llama-server", "/llama.service", true}};
    CgroupFacts facts;
    facts.index = index;
    host_.store->put("cgroup", {std::make_shared<const Snapshot>(Snapshot{facts, {}}),
                                host_.clock->now(), std::chrono::steady_clock::now()});
  }

  void write(const ProcessKey& process, const std::string& file, const std::string& text) {
    tree_.write("proc/" + std::to_string(process.pid) + "/" + file, text);
  }

  void write_stat(const ProcessKey& process, const std::string& comm) {
    write(process, "stat",
          std::to_string(process.pid) + " (" + comm + ") S 1 1 1 0 -1 0 0 0 0 0 5 5 0 0 20 0 1 0 " +
              std::to_string(process.start_ticks) + " 0 0 1 0 0 0 0\n");
  }

  /// One pass.
  SeatConfigFacts collect() {
    snapshot_ = *collector_->collect();
    return std::any_cast<SeatConfigFacts>(snapshot_.facts);
  }

  [[nodiscard]] std::optional<double> unread(const std::string& file) const {
    return value_of(snapshot_.families, "apu_seat_config_unread_processes{file=\"" + file + "\"}");
  }

  TempTree tree_;
  CollectorHost host_;
  std::unique_ptr<Collector> collector_ = make_seat_config_collector(host_.context("seat_config"));
  Snapshot snapshot_;
};

TEST_F(SeatConfigTest, EveryProcessOfASeatIsAsked) {
  const SeatConfigFacts facts = collect();
  EXPECT_EQ(facts.processes.size(), 2U);
  EXPECT_EQ(facts.processes.at(kFirst).mmap, Setting::kOff);
  EXPECT_EQ(facts.processes.at(kSecond).xnack, Setting::kOn);
  EXPECT_EQ(unread("cmdline"), 0);
  EXPECT_EQ(unread("environ"), 0);
  EXPECT_EQ(host_.source("apu_source_available{source=\"process_config\"}"), 1);
}

TEST_F(SeatConfigTest, FilesAreReadOnceUntilTheProcessIsAnotherProgram) {
  collect();
  write(kFirst, "cmdline", "llama-server\0--mmap\0"s);
  EXPECT_EQ(collect().processes.at(kFirst).mmap, Setting::kOff);
  write_stat(kFirst, "llama-server-2");
  EXPECT_EQ(collect().processes.at(kFirst).mmap, Setting::kOn);
}

TEST_F(SeatConfigTest, AnotherProcessOfTheSameIdIsNotTakenForIt) {
  write_stat({kFirst.pid, 999}, "llama-server");
  EXPECT_FALSE(collect().processes.contains(kFirst));
}

TEST_F(SeatConfigTest, EnvironmentOfOthersIsDenied) {
  tree_.remove("proc/41/environ");
  tree_.make_unreadable("proc/41/environ");
  const SeatConfigFacts facts = collect();
  EXPECT_EQ(facts.processes.at(kFirst).mmap, Setting::kOff);
  EXPECT_EQ(facts.processes.at(kFirst).mlock, Setting::kUnknown);
  EXPECT_EQ(facts.processes.at(kFirst).xnack, Setting::kUnknown);
  EXPECT_EQ(facts.processes.at(kSecond).xnack, Setting::kOn);
  EXPECT_EQ(unread("environ"), 1);
  EXPECT_EQ(host_.source("apu_source_unavailable_info{source=\"process_config\",reason=\""
                         "permission_denied\"}"),
            1);
}

TEST_F(SeatConfigTest, OneThatHangsCostsItselfAlone) {
  tree_.remove("proc/41/cmdline");
  tree_.make_fifo("proc/41/cmdline");
  const SeatConfigFacts facts = collect();
  EXPECT_EQ(facts.processes.at(kFirst), ServerConfig());
  EXPECT_EQ(facts.processes.at(kSecond).mmap, Setting::kOff);
  EXPECT_EQ(unread("cmdline"), 1);
  EXPECT_EQ(unread("environ"), 1);  // it was not asked for: it would have hung as well
  EXPECT_EQ(host_.source("apu_guarded_read_timeouts_total{file=\"cmdline\"}"), 1);
  EXPECT_EQ(host_.source("apu_guarded_read_timeouts_total{file=\"environ\"}"), 0);
  EXPECT_EQ(
      host_.source("apu_source_unavailable_info{source=\"process_config\",reason=\"blocked\"}"), 1);
}

TEST_F(SeatConfigTest, EmptyFileIsReadAgain) {
  write(kFirst, "environ", "");
  EXPECT_EQ(collect().processes.at(kFirst).xnack, Setting::kUnknown);
  EXPECT_EQ(unread("environ"), 1);
  write(kFirst, "environ", "HSA_XNACK=0\0"s);
  EXPECT_EQ(collect().processes.at(kFirst).xnack, Setting::kOff);
  EXPECT_EQ(unread("environ"), 0);
}

TEST_F(SeatConfigTest, SeriesHasOneLabelForEachKey) {
  write(kFirst, "cmdline", "llama-server\0-m\0/SECRET/a.gguf\0--api-key\0SECRET\0-cmoe\0"s);
  const SeatConfigFacts facts = collect();
  MetricWriter metrics;
  add_config_info(metrics, "llama", facts, kFirst);
  add_config_info(metrics, "other", facts, {7, 7});  // was never asked
  const Families families = metrics.take();
  ASSERT_EQ(families.size(), 1U);
  EXPECT_EQ(families[0].metric.size(), 1U);
  EXPECT_EQ(value_of(families,
                     "apu_seat_config_info{seat=\"llama\",mmap=\"default\",mlock=\"false\","
                     "cpu_offload=\"true\",hsa_userptr_for_paged_mem=\"default\",hsa_xnack=\"true\""
                     ",model=\"a.gguf\"}"),
            1);
}

TEST_F(SeatConfigTest, WithoutSeatsNothingIsRead) {
  const CollectorHost bare(tree_.path());
  const auto snapshot = make_seat_config_collector(bare.context("seat_config"))->collect();
  EXPECT_TRUE(std::any_cast<SeatConfigFacts>(snapshot->facts).processes.empty());
  EXPECT_TRUE(snapshot->families.empty());
}

}  // namespace
}  // namespace apu
