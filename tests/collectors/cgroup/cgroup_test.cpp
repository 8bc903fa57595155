#include "collectors/cgroup/cgroup.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>

#include "tests/support/collector_files.h"
#include "tests/support/collector_host.h"
#include "tests/support/temp_tree.h"

namespace apu {
namespace {

constexpr const char* kUnit = "/system.slice/llama.service";

class CgroupTest : public ::testing::Test {
 protected:
  CgroupTest() : host_(tree_.path()) {
    tree_.write("sys/fs/cgroup/cgroup.controllers", "cpu io memory pids\n");
    tree_.write("proc/1/cgroup", "0::/init.scope\n");
    tree_.write("proc/2/stat",
                "2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 2 0 0 0\n");
    add_cgroup("/system.slice", 9'000, 4'000, "max");
    add_cgroup(kUnit, 6'000, 5'000, "8000");
    add_cgroup("/system.slice/other.service", 3'000, 0, "max");
    add_process(41, kUnit);
    tree_.write("sys/class/kfd/kfd/proc/41/pasid", "0\n");
  }

  void add_cgroup(const std::string& path, int current, int low, const std::string& max) {
    const std::string directory = "sys/fs/cgroup" + path + "/";
    tree_.write(directory + "cgroup.procs", "");
    tree_.write(directory + "memory.current", std::to_string(current) + "\n");
    tree_.write(directory + "memory.swap.current", "77\n");
    tree_.write(directory + "memory.min", "0\n");
    tree_.write(directory + "memory.low", std::to_string(low) + "\n");
    tree_.write(directory + "memory.high", "max\n");
    tree_.write(directory + "memory.max", max + "\n");
    tree_.write(directory + "memory.swap.max", "max\n");
    tree_.write(directory + "memory.stat", "anon 1000\nfile 2500\nkernel 3\n");
    tree_.write(directory + "memory.events", "low 1\nhigh 2\nmax 3\noom 0\noom_kill 4\n");
    tree_.write(directory + "memory.pressure",
                "some avg10=0.00 avg60=0.00 avg300=0.00 total=1500000\n"
                "full avg10=0.00 avg60=0.00 avg300=0.00 total=500000\n");
  }

  void add_process(int pid, const std::string& cgroup, const std::string& comm = "llama-server") {
    const std::string directory = "proc/" + std::to_string(pid) + "/";
    tree_.write(directory + "cgroup", "0::" + cgroup + "\n");
    tree_.write(directory + "stat", std::to_string(pid) + " (" + comm +
                                        ") S 1 1 1 0 -1 4194560 0 0 0 0 5 5 0 0 20 0 1 0 " +
                                        std::to_string(pid * 10) +
                                        " 0 0 18446744073709551615 0 0 0 0\n");
  }

  Families collect() {
    auto snapshot = make_cgroup_collector(host_.context("cgroup"))->collect();
    EXPECT_TRUE(snapshot) << snapshot.error().message;
    return snapshot ? snapshot->families : Families();
  }

  TempTree tree_;
  CollectorHost host_;
};

TEST_F(CgroupTest, SaysWhatTheSeatIsChargedForAndAllowed) {
  const Families families = collect();
  EXPECT_EQ(value_of(families, R"(apu_seat_memcg_current_bytes{seat="llama"})"), 6000);
  EXPECT_EQ(value_of(families, R"(apu_seat_memcg_swap_bytes{seat="llama"})"), 77);
  EXPECT_EQ(value_of(families, R"(apu_seat_memcg_file_bytes{seat="llama"})"), 2500);
  EXPECT_EQ(value_of(families, R"(apu_seat_memcg_limit_bytes{seat="llama",limit="max"})"), 8000);
  EXPECT_TRUE(
      std::isinf(*value_of(families, R"(apu_seat_memcg_limit_bytes{seat="llama",limit="high"})")));
  EXPECT_EQ(value_of(families, R"(apu_seat_memcg_limit_bytes{seat="llama",limit="min"})"), 0);
  EXPECT_EQ(value_of(families, R"(apu_seat_memcg_events_total{seat="llama",event="oom_kill"})"), 4);
  EXPECT_EQ(value_of(families, R"(apu_seat_pressure_stalled_seconds_total{)"
                               R"(seat="llama",resource="memory",kind="full"})"),
            0.5);
  EXPECT_EQ(value_of(families, "apu_memcg_charged_bytes"), 9000);
  EXPECT_EQ(value_of(families, "apu_seats"), 1);
}

TEST_F(CgroupTest, ProtectionReachesNoFurtherThanThatOfTheSlice) {
  // 5000 are asked for, 4000 reach the slice, and nobody else asks.
  EXPECT_EQ(value_of(collect(), R"(apu_seat_memcg_protection_bytes{seat="llama",limit="low"})"),
            4000);
}

TEST_F(CgroupTest, ProtectionWithoutTheSlicesIsVoid) {
  tree_.write("sys/fs/cgroup/system.slice/memory.low", "0\n");
  EXPECT_EQ(value_of(collect(), R"(apu_seat_memcg_protection_bytes{seat="llama",limit="low"})"), 0);
}

TEST_F(CgroupTest, ProtectionIsAbsentWhereWhatDecidesItIsDamaged) {
  for (const char* file :
       {"/system.slice/memory.low", "/system.slice/memory.current",
        "/system.slice/other.service/memory.low", "/system.slice/other.service/memory.current"}) {
    const std::string path = std::string("sys/fs/cgroup") + file;
    const std::string before = read_file(tree_.path() / path);
    tree_.write(path, "garbage\n");
    EXPECT_FALSE(
        value_of(collect(), R"(apu_seat_memcg_protection_bytes{seat="llama",limit="low"})"))
        << file;
    tree_.write(path, before);
  }
}

TEST_F(CgroupTest, SiblingWithoutTheControllerAsksForNothing) {
  tree_.write("sys/fs/cgroup/system.slice/threads/cgroup.procs", "");
  EXPECT_EQ(value_of(collect(), R"(apu_seat_memcg_protection_bytes{seat="llama",limit="low"})"),
            4000);
}

TEST_F(CgroupTest, WhatTheKernelHasNoFileForIsAbsent) {
  const std::string unit = std::string("sys/fs/cgroup") + kUnit;
  tree_.remove(unit + "/memory.swap.current");
  tree_.remove(unit + "/memory.swap.max");
  tree_.remove(unit + "/memory.pressure");
  const Families families = collect();
  EXPECT_FALSE(value_of(families, R"(apu_seat_memcg_swap_bytes{seat="llama"})"));
  EXPECT_FALSE(value_of(families, R"(apu_seat_memcg_limit_bytes{seat="llama",limit="swap_max"})"));
  EXPECT_FALSE(has_family(families, "apu_seat_pressure_stalled_seconds_total"));
}

TEST_F(CgroupTest, DamagedValuesAreCountedAndAbsent) {
  tree_.write(std::string("sys/fs/cgroup") + kUnit + "/memory.current", "many\n");
  EXPECT_FALSE(value_of(collect(), R"(apu_seat_memcg_current_bytes{seat="llama"})"));
  EXPECT_EQ(host_.parse_errors("cgroup2"), 1);
}

TEST_F(CgroupTest, NumbersThatFellBelowZeroAreCountedAndAbsent) {
  const std::string unit = std::string("sys/fs/cgroup") + kUnit;
  tree_.write(unit + "/memory.current", "18446744073709547520\n");
  tree_.write(unit + "/memory.swap.current", "18446744073709551615\n");
  tree_.write(unit + "/memory.stat", "anon 1\nfile 18446744073709547520\n");
  const Families families = collect();
  for (const char* name : {"current", "swap", "file"}) {
    EXPECT_FALSE(has_family(families, "apu_seat_memcg_" + std::string(name) + "_bytes")) << name;
  }
  EXPECT_EQ(host_.parse_errors("cgroup2"), 3);
}

TEST_F(CgroupTest, NumbersThatWereCutAreCountedAndAbsent) {
  const std::string unit = std::string("sys/fs/cgroup") + kUnit;
  tree_.write(unit + "/memory.current", "60");
  tree_.write(unit + "/memory.stat", "anon 1\nfile 25");
  const Families families = collect();
  EXPECT_FALSE(has_family(families, "apu_seat_memcg_current_bytes"));
  EXPECT_FALSE(has_family(families, "apu_seat_memcg_file_bytes"));
  EXPECT_EQ(host_.parse_errors("cgroup2"), 2);
}

TEST_F(CgroupTest, ChargesForGpuPagesAreToldByTheKeys) {
  const auto facts = [&] {
    const auto snapshot = make_cgroup_collector(host_.context("cgroup"))->collect();
    return std::any_cast<CgroupFacts>(snapshot->facts);
  };
  EXPECT_FALSE(facts().charges_gpu);  // the root has no memory.stat
  tree_.write("sys/fs/cgroup/memory.stat", "anon 1\n");
  EXPECT_EQ(facts().charges_gpu, false);
  tree_.write("sys/fs/cgroup/memory.stat", "anon 1\ngpu_active 5\n");
  EXPECT_EQ(facts().charges_gpu, true);
  EXPECT_EQ(facts().gpu_charged, 5U);
  tree_.write("sys/fs/cgroup/memory.stat", "");
  EXPECT_FALSE(facts().charges_gpu);
}

TEST_F(CgroupTest, FileThatIsDeniedMakesTheSourceUnavailable) {
  tree_.remove(std::string("sys/fs/cgroup") + kUnit + "/memory.stat");
  tree_.make_unreadable(std::string("sys/fs/cgroup") + kUnit + "/memory.stat");
  EXPECT_TRUE(value_of(collect(), R"(apu_seat_memcg_current_bytes{seat="llama"})"));
  EXPECT_EQ(
      host_.source(R"(apu_source_unavailable_info{source="cgroup2",reason="permission_denied"})"),
      1);
}

TEST_F(CgroupTest, WhereProcessesAreHiddenIdsOfKfdAreOthers) {
  add_process(42, "/system.slice/other.service");
  tree_.write("sys/class/kfd/kfd/proc/42/pasid", "0\n");
  EXPECT_EQ(value_of(collect(), "apu_seats"), 2);
  tree_.remove("proc/2");
  EXPECT_EQ(value_of(collect(), "apu_seats"), 1);  // the unit, by its name
}

TEST_F(CgroupTest, TheDeadAreNoSeats) {
  tree_.write("proc/42/cgroup", "0::/system.slice/other.service\n");
  tree_.write("proc/42/stat", "42 (x) Z 1 1 1 0 -1 0 0 0 0 0 5 5 0 0 20 0 1 0 7 0 0 1 0 0 0 0\n");
  tree_.write("sys/class/kfd/kfd/proc/42/pasid", "0\n");
  EXPECT_EQ(value_of(collect(), "apu_seats"), 1);
}

TEST_F(CgroupTest, OthersInOurCgroupMayBeASeatButWeAreNone) {
  host_.roots.rootfs = "/";
  host_.roots.procfs = tree_.path() / "proc";
  host_.roots.sysfs = tree_.path() / "sys";
  host_.roots.cgroupfs = tree_.path() / "sys/fs/cgroup";
  const std::string scope = "/user.slice/user-1000.slice/session-3.scope";
  const int own = ::getpid();
  add_process(own, scope, "apu_exporter");
  add_process(42, scope);
  add_process(43, scope, "apu-reader");
  tree_.write("proc/43/stat", "43 (apu-reader) S " + std::to_string(own) +
                                  " 1 1 0 -1 0 0 0 0 0 5 5 0 0 20 0 1 0 430 0 0 1 0 0 0 0\n");
  for (const int pid : {own, 42, 43}) {
    tree_.write("sys/class/kfd/kfd/proc/" + std::to_string(pid) + "/pasid", "0\n");
  }
  tree_.write("proc/self/cgroup", "0::" + scope + "\n");
  const auto snapshot = make_cgroup_collector(host_.context("cgroup"))->collect();
  const auto& index = *std::any_cast<CgroupFacts>(snapshot->facts).index;
  ASSERT_EQ(index.seats.size(), 2U);
  EXPECT_EQ(index.seats[0].name, "1000/llama-server");
  EXPECT_EQ(index.seats[0].processes.size(), 1U);
  EXPECT_EQ(index.seats[1].name, "llama");
}

TEST_F(CgroupTest, HybridHierarchyIsUnsupportedAndNotZero) {
  tree_.write("sys/fs/cgroup/cgroup.controllers", "hugetlb\n");
  EXPECT_FALSE(make_cgroup_collector(host_.context("cgroup"))->collect());
  EXPECT_EQ(host_.source(R"(apu_source_unavailable_info{source="cgroup2",reason="unsupported"})"),
            1);
}

TEST_F(CgroupTest, HierarchyIsFoundWhereItIsMounted) {
  tree_.write("proc/self/mountinfo",
              "31 24 0:27 / /mnt/cg rw shared:9 - cgroup2 cgroup2 rw,memory_recursiveprot\n");
  std::filesystem::create_directories(tree_.path() / "mnt");
  std::filesystem::rename(tree_.path() / "sys/fs/cgroup", tree_.path() / "mnt/cg");
  EXPECT_EQ(value_of(collect(), R"(apu_seat_memcg_current_bytes{seat="llama"})"), 6000);
}

TEST_F(CgroupTest, PathsOfAPrivateNamespaceAreResolved) {
  // Our own root is /system.slice/exporter.service: two levels up is the root.
  tree_.write("proc/1/cgroup", "0::/../../init.scope\n");
  for (const char* path : {"0::/../llama.service\n", "0::/../../system.slice/llama.service\n"}) {
    tree_.write("proc/41/cgroup", path);
    EXPECT_EQ(value_of(collect(), R"(apu_seat_memcg_current_bytes{seat="llama"})"), 6000) << path;
  }
}

TEST_F(CgroupTest, OfCgroupsThatAPathMayMeanItIsTheOneWithTheProcess) {
  tree_.write("proc/1/cgroup", "0::/../../init.scope\n");
  add_cgroup("/user.slice/llama.service", 1, 0, "max");
  tree_.write("sys/fs/cgroup/user.slice/llama.service/cgroup.procs", "41\n");
  tree_.write("proc/41/cgroup", "0::/../llama.service\n");
  const auto snapshot = make_cgroup_collector(host_.context("cgroup"))->collect();
  const auto& index = *std::any_cast<CgroupFacts>(snapshot->facts).index;
  const Seat* const seat = index.find({41, 410});
  ASSERT_NE(seat, nullptr);
  EXPECT_EQ(seat->place.cgroup, "/user.slice/llama.service");
}

TEST_F(CgroupTest, PathOfPidOneIsReadAgainUntilItIsKnown) {
  tree_.write("proc/41/cgroup", "0::/../../system.slice/llama.service\n");
  tree_.remove("proc/1/cgroup");
  const auto collector = make_cgroup_collector(host_.context("cgroup"));
  const auto processes_of_the_seat = [&] {
    const auto snapshot = collector->collect();
    return std::any_cast<CgroupFacts>(snapshot->facts).index->seats[0].processes.size();
  };
  EXPECT_EQ(processes_of_the_seat(), 0U);
  tree_.write("proc/1/cgroup", "0::/../../init.scope\n");
  EXPECT_EQ(processes_of_the_seat(), 1U);
}

TEST_F(CgroupTest, UnitsBeyondTheLimitAreReported) {
  for (size_t i = 0; i <= CgroupTree::kMaxUnits; ++i) {
    std::filesystem::create_directories(tree_.path() / "sys/fs/cgroup/a.slice" /
                                        ("u" + std::to_string(i) + ".service"));
  }
  collect();
  EXPECT_EQ(host_.parse_errors("cgroup2"), 1);
}

TEST_F(CgroupTest, PathOutsideOfTheHierarchyIsNoSeat) {
  for (const char* path : {"0::/../../../user.slice/x.scope\n", "0::/../x.service\n",
                           "0::/system.slice/../../evil/x.service\n"}) {
    tree_.write("proc/1/cgroup", std::string_view(path).find("/../../..") == 3
                                     ? "0::/../../init.scope\n"
                                     : "0::/init.scope\n");
    tree_.write("proc/41/cgroup", path);
    EXPECT_EQ(value_of(collect(), "apu_seats"), 1) << path;  // the unit, by its name
  }
}

TEST_F(CgroupTest, SumOverAnUnreadableCgroupIsAbsent) {
  tree_.write("sys/fs/cgroup/system.slice/memory.current", "garbage\n");
  EXPECT_FALSE(value_of(collect(), "apu_memcg_charged_bytes"));
}

TEST_F(CgroupTest, ProcessThatEndsMeanwhileIsNoSeat) {
  tree_.remove("proc/41/stat");
  tree_.remove("proc/41/cgroup");
  tree_.write("sys/class/kfd/kfd/proc/42/pasid", "0\n");
  EXPECT_EQ(value_of(collect(), "apu_seats"), 1);  // the unit is one by its name
}

TEST(CgroupMount, IsTheFirstUnifiedOne) {
  const auto mount = parse_cgroup_mount(
      "25 1 0:23 / /sys rw - sysfs sysfs rw\n"
      "31 25 0:27 / /sys/fs/cgroup/unified rw,nosuid shared:9 - cgroup2 cgroup2 rw\n");
  ASSERT_TRUE(mount);
  EXPECT_EQ(mount->mount_point, "/sys/fs/cgroup/unified");
  EXPECT_FALSE(mount->recursive_protection);
  EXPECT_FALSE(parse_cgroup_mount("garbage\n - \n1 2 3 - cgroup2\n"));
}

TEST(CgroupMount, IsThatOfTheWholeHierarchy) {
  const auto mount = parse_cgroup_mount(
      "30 24 0:27 /foo /var/lib/x/cg rw - cgroup2 cgroup2 rw\n"
      "31 24 0:27 / /mnt/my\\040cg rw - cgroup2 cgroup2 rw,memory_recursiveprot\n");
  ASSERT_TRUE(mount);
  EXPECT_EQ(mount->mount_point, "/mnt/my cg");
  EXPECT_TRUE(mount->recursive_protection);
  EXPECT_EQ(parse_cgroup_mount("30 24 0:27 /foo /cg rw - cgroup2 c rw\n")->mount_point, "/cg");
}

TEST(CgroupMount, TellsTheMemoryControllerOfV1) {
  EXPECT_TRUE(has_v1_memory("32 30 0:28 / /dev/memcg rw - cgroup cgroup rw,cpu,memory\n"));
  EXPECT_FALSE(has_v1_memory("32 30 0:28 / /x rw - cgroup2 cgroup2 rw,memory_recursiveprot\n"));
}

/// A host whose unit has the memory.events of a recorded one.
double oom_kills_of(const std::string& events_file) {
  TempTree tree;
  tree.write("sys/fs/cgroup/cgroup.controllers", "memory\n");
  const std::string unit = "sys/fs/cgroup/system.slice/llama.service/";
  tree.write(unit + "cgroup.procs", "");
  tree.write(unit + "memory.events", read_file(case_path(events_file)));
  CollectorHost host(tree.path());
  const auto snapshot = make_cgroup_collector(host.context("cgroup"))->collect();
  EXPECT_TRUE(snapshot);
  EXPECT_EQ(host.parse_errors("cgroup2").value_or(0), 0);
  return *value_of(snapshot->families,
                   R"(apu_seat_memcg_events_total{seat="llama",event="oom_kill"})");
}

TEST(RecordedCgroups, EventsAreThoseOfTheWholeSubtree) {
  EXPECT_EQ(oom_kills_of("81-memory-events-local-and-missing/parent/memory.events"), 2);
  EXPECT_EQ(oom_kills_of("81-memory-events-local-and-missing/oldkernel/memory.events"), 1);
}

TEST(RecordedCgroups, EventsOfAUnitThatIsGoneEndWithIt) {
  TempTree tree;
  tree.write("sys/fs/cgroup/cgroup.controllers", "memory\n");
  const std::string unit = "sys/fs/cgroup/system.slice/llama.service/";
  tree.write(unit + "cgroup.procs", "");
  tree.write(unit + "memory.events", "oom_kill 2\n");
  CollectorHost host(tree.path());
  const auto collector = make_cgroup_collector(host.context("cgroup"));
  EXPECT_TRUE(has_family(collector->collect()->families, "apu_seat_memcg_events_total"));
  std::filesystem::remove_all(tree.path() / "sys/fs/cgroup/system.slice/llama.service");
  EXPECT_FALSE(has_family(collector->collect()->families, "apu_seat_memcg_events_total"));
}

}  // namespace
}  // namespace apu
