#include "collectors/seat_ports.h"

#include <gtest/gtest.h>

#include "collectors/cgroup/cgroup.h"
#include "collectors/seat_config/seat_config.h"
#include "collectors/units/units.h"
#include "tests/support/collector_host.h"
#include "tests/support/temp_tree.h"

namespace apu {
namespace {

class SeatPortsTest : public testing::Test {
 protected:
  SeatPortsTest() {
    listen({{"0100007F", 8080, 500}});
    add_process(10, "llama-server", 500, "net:[1]");
    add_process(1, "systemd", 1, "net:[1]");
    tree_.link("proc/self/ns/net", "net:[1]");
    auto index = std::make_shared<SeatIndex>();
    Seat seat{"llama", parse_seat_place("/system.slice/llama.service"), {}};
    seat.processes.push_back({{10, 100}, "llama-server", seat.place.cgroup, true});
    index->seats = {seat};
    cgroup_.index = index;
    config_.processes[{10, 100}].http = HttpAddress{};
  }

  struct Socket {
    const char* address;
    int port;
    int inode;
    const char* state = "0A";
  };

  void listen(const std::vector<Socket>& sockets) {
    std::string text = "  sl  local_address rem_address   st\n";
    for (const Socket& socket : sockets) {
      text += fmt::format(
          "   0: {}:{:04X} 00000000:0000 {} 00000000:00000000 00:00000000 00000000  1000        0 "
          "{} 1 0000000000000000 100 0 0 10 0\n",
          socket.address, socket.port, socket.state, socket.inode);
    }
    tree_.write("proc/self/net/tcp", text);
  }

  void add_process(int pid, const std::string& comm, int inode, const std::string& net) {
    const std::string directory = "proc/" + std::to_string(pid);
    std::string fields;
    for (int i = 0; i < 48; ++i) {
      fields += " 1";
    }
    tree_.write(directory + "/stat", fmt::format("{} ({}) S{}\n", pid, comm, fields));
    tree_.write(directory + "/cgroup", "0::/user.slice/stray\n");
    tree_.link(directory + "/fd/0", "/dev/null");
    tree_.link(directory + "/fd/3", fmt::format("socket:[{}]", inode));
    tree_.link(directory + "/ns/net", net);
  }

  template <typename Facts>
  void put(const char* collector, const Facts& facts) {
    host_.store->put(collector, {std::make_shared<const Snapshot>(Snapshot{facts, {}}), TimePoint{},
                                 std::chrono::steady_clock::now(), std::chrono::hours(1)});
  }

  SeatPortsFacts facts() {
    put("cgroup", cgroup_);
    put("seat_config", config_);
    put("units", units_);
    const auto snapshot = make_seat_ports_collector(host_.context())->collect();
    families_ = snapshot->families;
    return std::any_cast<SeatPortsFacts>(snapshot->facts);
  }

  std::optional<bool> held() {
    const auto all = facts();
    const auto found = all.seats.find("llama");
    return found == all.seats.end() ? std::nullopt : found->second.held_by_other;
  }

  void remove_process_of_seat() {
    auto index = std::make_shared<SeatIndex>(*cgroup_.index);
    index->seats[0].processes.clear();
    cgroup_.index = index;
    SeatUnit unit;
    unit.seat = "llama";
    unit.facts.server = ServerArguments{ServerProgram::kLlamaServer, {}};
    unit.facts.server->told.port = 8080;
    units_.units = {unit};
  }

  TempTree tree_;
  CollectorHost host_{tree_.path()};
  CgroupFacts cgroup_;
  SeatConfigFacts config_;
  UnitsFacts units_;
  Families families_;
};

TEST_F(SeatPortsTest, SeatThatListensItselfIsWell) {
  EXPECT_EQ(held(), false);
  listen({});
  EXPECT_EQ(held(), false) << "it does not listen yet";
  listen({{"0100007F", 8080, 501, "01"}, {"0100007F", 8081, 502}, {"0A00000A", 8080, 503}});
  EXPECT_EQ(held(), false) << "a connection, another port, another address";
}

TEST_F(SeatPortsTest, StrangerOnThePortIsNamed) {
  add_process(77, "stray\nserver", 600, "net:[1]");
  listen({{"00000000", 8080, 600}});
  const SeatPort port = facts().seats.at("llama");
  EXPECT_EQ(port.held_by_other, true);
  EXPECT_EQ(port.holder, 77);
  EXPECT_EQ(port.holder_command, "stray\nserver");
  EXPECT_EQ(port.holder_cgroup, "/user.slice/stray");
  EXPECT_EQ(value_of(families_, "apu_seat_port_held_by_other{seat=\"llama\"}"), 1);
}

TEST_F(SeatPortsTest, UnitThatDoesNotRunWantsThePortOfItsCommand) {
  remove_process_of_seat();
  EXPECT_EQ(held(), true);
  EXPECT_EQ(facts().seats.at("llama").holder, 10);
  units_.units[0].facts.server->told.port.reset();
  EXPECT_FALSE(held()) << "what its environment says is not known";
}

TEST_F(SeatPortsTest, InitListensForAUnit) {
  remove_process_of_seat();
  listen({{"00000000", 8080, 1}});
  EXPECT_EQ(held(), false);
}

TEST_F(SeatPortsTest, WhatCannotBeToldIsAbsent) {
  listen({{"00000000", 8080, 999}});
  EXPECT_FALSE(held()) << "nobody is seen to hold it";
  tree_.remove("proc/10/ns/net");
  tree_.link("proc/10/ns/net", "net:[2]");
  EXPECT_TRUE(facts().seats.empty()) << "a container";
  tree_.remove("proc/10/ns/net");
  tree_.link("proc/10/ns/net", "net:[1]");
  tree_.remove("proc/10/fd");
  EXPECT_FALSE(held()) << "its own descriptors are not known";
}

TEST_F(SeatPortsTest, DamagedTableIsCounted) {
  tree_.write("proc/self/net/tcp", "  sl\n   0: garbage\n");
  EXPECT_FALSE(held());
  EXPECT_EQ(host_.parse_errors("seat_ports"), 1);
}

}  // namespace
}  // namespace apu
