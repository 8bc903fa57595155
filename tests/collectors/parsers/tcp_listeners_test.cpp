#include "collectors/parsers/tcp_listeners.h"

#include <gtest/gtest.h>

namespace apu {
namespace {

std::string line_of(std::string_view address, std::string_view state = "0A") {
  return "   0: " + std::string(address) + " 00000000:0000 " + std::string(state) +
         " 00000000:00000000 00:00000000 00000000  1000        0 22711 1 0000000000000000 100 0 0 "
         "10 0";
}

std::optional<TcpListener> parsed(std::string_view address) {
  Problems problems;
  const auto listener = parse_tcp_listener(line_of(address), 2, problems);
  EXPECT_TRUE(problems.empty());
  return listener;
}

void expect(std::string_view address, ListenScope scope, std::string_view text) {
  const auto listener = parsed(address);
  ASSERT_TRUE(listener) << address;
  EXPECT_EQ(listener->scope, scope) << address;
  EXPECT_EQ(listener->address, text) << address;
  EXPECT_EQ(listener->port, 8080);
  EXPECT_EQ(listener->inode, 22711U);
}

// As the kernel prints them on little-endian hosts.
TEST(TcpListener, AddressesOfBothFamilies) {
  expect("0100007F:1F90", ListenScope::kLoopback, "127.0.0.1");
  expect("0200007F:1F90", ListenScope::kLoopback, "127.0.0.2");
  expect("00000000:1F90", ListenScope::kAny, "127.0.0.1");
  expect("0501A8C0:1F90", ListenScope::kOther, "");
  expect("00000000000000000000000000000000:1F90", ListenScope::kAny, "[::1]");
  expect("00000000000000000000000001000000:1F90", ListenScope::kLoopback, "[::1]");
  expect("0000000000000000FFFF00000100007F:1F90", ListenScope::kLoopback, "127.0.0.1");
  expect("B80D0120000000000000000001000000:1F90", ListenScope::kOther, "");
}

TEST(TcpListener, OthersAreNone) {
  Problems problems;
  EXPECT_FALSE(parse_tcp_listener(line_of("0100007F:1F90", "01"), 2, problems));
  EXPECT_FALSE(parse_tcp_listener("  sl  local_address rem_address   st tx_queue", 1, problems));
  EXPECT_FALSE(parse_tcp_listener("", 1, problems));
  EXPECT_TRUE(problems.empty());
}

TEST(TcpListener, LinesThatCannotBeReadAreProblems) {
  Problems problems;
  for (const char* address : {"0100007F", "0100007F:", "0100007F:1F901", "0100007:1F90",
                              "0100007G:1F90", ":1F90", "0100007F00000000:1F90"}) {
    EXPECT_FALSE(parse_tcp_listener(line_of(address), 2, problems)) << address;
  }
  EXPECT_FALSE(parse_tcp_listener("0: 0100007F:1F90 00000000:0000 0A", 3, problems));
  EXPECT_FALSE(parse_tcp_listener("0: 1", 4, problems));
  EXPECT_EQ(problems.size(), 9U);
  EXPECT_EQ(problems[0].line, 2);
}

TEST(SocketLink, HasAnInode) {
  EXPECT_EQ(parse_socket_link("socket:[22711]"), 22711U);
  for (const char* target : {"", "pipe:[22711]", "socket:[", "socket:[]", "socket:[x]", "socket:[1",
                             "/socket:[1]", "anon_inode:[eventpoll]"}) {
    EXPECT_FALSE(parse_socket_link(target)) << target;
  }
}

}  // namespace
}  // namespace apu
