#include "exporter/listen_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace apu {
namespace {

using testing::HasSubstr;

std::string refusal_of(std::string_view text) {
  const auto address = parse_listen_address(text);
  return address ? "" : address.error().message;
}

TEST(ParseListenAddress, TakesHostAndPort) {
  const auto address = parse_listen_address("127.0.0.1:10151");
  ASSERT_TRUE(address);
  EXPECT_EQ(address->host, "127.0.0.1");
  EXPECT_EQ(address->port, 10151);
}

TEST(ParseListenAddress, TakesAName) {
  const auto address = parse_listen_address("my-host.example:1");
  ASSERT_TRUE(address);
  EXPECT_EQ(address->host, "my-host.example");
}

TEST(ParseListenAddress, TakesAPortAloneForAllAddresses) {
  const auto address = parse_listen_address(":65535");
  ASSERT_TRUE(address);
  EXPECT_EQ(address->host, "");
  EXPECT_EQ(address->port, 65535);
}

TEST(ParseListenAddress, TakesPortZero) {
  const auto address = parse_listen_address("127.0.0.1:0");
  ASSERT_TRUE(address);
  EXPECT_EQ(address->port, 0);
}

TEST(ParseListenAddress, RefusesIpv6WithTheWayRound) {
  for (const char* text : {"[::1]:10151", "::1:10151", "[::]:80", "[::1]"}) {
    EXPECT_THAT(refusal_of(text), HasSubstr("IPv6")) << text;
    EXPECT_THAT(refusal_of(text), HasSubstr("reverse proxy")) << text;
  }
}

TEST(ParseListenAddress, RefusesUnixSocketsWithTheWayRound) {
  for (const char* text : {"/run/apu.sock", "@apu", "unix:/run/apu.sock"}) {
    EXPECT_THAT(refusal_of(text), HasSubstr("unix sockets")) << text;
    EXPECT_THAT(refusal_of(text), HasSubstr("reverse proxy")) << text;
  }
}

TEST(ParseListenAddress, RefusesABadPort) {
  for (const char* text : {"127.0.0.1:", ":65536", ":-1", ":http", ":80 ", ":+80", ":8s"}) {
    EXPECT_THAT(refusal_of(text), HasSubstr("port")) << text;
  }
}

TEST(ParseListenAddress, RefusesAnAddressWithoutAPort) {
  EXPECT_THAT(refusal_of("127.0.0.1"), HasSubstr("host:port"));
  EXPECT_THAT(refusal_of(""), HasSubstr("host:port"));
}

TEST(ParseListenAddress, RefusesWhatTheWebServerWouldReadAsMore) {
  for (const char* text : {"127.0.0.1,+80:443", "a b:80", "a/b:80", "*:80"}) {
    EXPECT_THAT(refusal_of(text), HasSubstr("host")) << text;
  }
}

TEST(ParseListenAddress, NamesTheRefusedText) {
  EXPECT_THAT(refusal_of("a_b:80"), HasSubstr("'a_b:80'"));
}

}  // namespace
}  // namespace apu
