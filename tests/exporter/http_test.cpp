#include "exporter/http.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <future>
#include <optional>
#include <stdexcept>
#include <thread>

#include "exporter/descriptor.h"
#include "exporter/text.h"
#include "tests/support/wait.h"

namespace apu {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::AnyOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::Not;
using testing::Pair;
using testing::SizeIs;
using testing::StartsWith;

/// A connection to 127.0.0.1:`port`; not valid if it is refused.
Descriptor connect_to(std::uint16_t port) {
  Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval patience{kLongWait.count(), 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  return ::connect(socket.get(), generic, sizeof(address)) == 0 ? std::move(socket) : Descriptor();
}

/// Sends `text` as it is and returns all that comes back.
std::string ask(std::uint16_t port, std::string_view text) {
  const Descriptor socket = connect_to(port);
  EXPECT_TRUE(socket.valid());
  ::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL);
  std::string answer;
  std::array<char, 4096> piece{};
  ssize_t count = 0;
  while ((count = ::recv(socket.get(), piece.data(), piece.size(), 0)) > 0) {
    answer.append(piece.data(), static_cast<size_t>(count));
  }
  return answer;
}

std::string request(std::string_view method, std::string_view target,
                    std::string_view headers = "") {
  std::string text(method);
  text += " ";
  text += target;
  text += " HTTP/1.1\r\nHost: localhost\r\n";
  text += headers;
  return text + "\r\n";
}

class HttpServerTest : public testing::Test {
 protected:
  void TearDown() override {
    if (server_) {
      server_->stop(kLongWait);
    }
  }

  /// Serves `handler` on a port of the kernel's choice, which it returns.
  std::uint16_t serve(HttpHandler handler) {
    auto server = HttpServer::start({{{"127.0.0.1", 0}}, 4}, std::move(handler));
    EXPECT_TRUE(server) << server.error().message;
    server_ = *std::move(server);
    return port_of(server_->addresses().at(0));
  }

  static std::uint16_t port_of(const std::string& address) {
    return parse_number<std::uint16_t>(address.substr(address.rfind(':') + 1)).value_or(0);
  }

  /// Serves a handler that notes its request in seen_.
  std::uint16_t serve_and_note() {
    return serve([this](const HttpRequest& request) {
      seen_.set_value(request);
      return HttpResponse{};
    });
  }

  /// The request that serve_and_note's handler got.
  HttpRequest seen() {
    auto future = seen_.get_future();
    EXPECT_EQ(future.wait_for(kLongWait), std::future_status::ready);
    return future.get();
  }

  std::promise<HttpRequest> seen_;
  std::unique_ptr<HttpServer> server_;
};

HttpResponse hello(const HttpRequest& /*request*/) {
  return {200, "text/plain; charset=utf-8", {{"Vary", "Accept-Encoding"}}, "hello\n"};
}

TEST_F(HttpServerTest, SaysWhereItListens) {
  const std::uint16_t port = serve(hello);
  EXPECT_THAT(server_->addresses(), ElementsAre("127.0.0.1:" + std::to_string(port)));
  EXPECT_NE(port, 0);
}

TEST_F(HttpServerTest, ListensOnSeveralAddresses) {
  auto server = HttpServer::start({{{"127.0.0.1", 0}, {"", 0}}, 4}, hello);
  ASSERT_TRUE(server) << server.error().message;
  server_ = *std::move(server);
  const std::vector<std::string> addresses = server_->addresses();
  ASSERT_THAT(addresses, SizeIs(2));
  EXPECT_THAT(addresses[1], StartsWith("0.0.0.0:"));
  for (const std::string& address : addresses) {
    EXPECT_THAT(ask(port_of(address), request("GET", "/")), EndsWith("hello\n")) << address;
  }
}

TEST_F(HttpServerTest, AnswersGet) {
  const std::string answer = ask(serve(hello), request("GET", "/metrics"));
  EXPECT_THAT(answer, AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), EndsWith("\r\n\r\nhello\n"),
                            HasSubstr("Content-Type: text/plain; charset=utf-8\r\n"),
                            HasSubstr("Content-Length: 6\r\n"), HasSubstr("Connection: close\r\n"),
                            HasSubstr("X-Content-Type-Options: nosniff\r\n"),
                            HasSubstr("Vary: Accept-Encoding\r\n")));
}

TEST_F(HttpServerTest, AnswersHeadWithTheSameHeadersAndNoBody) {
  const std::string answer = ask(serve(hello), request("HEAD", "/metrics"));
  EXPECT_THAT(answer, AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), EndsWith("\r\n\r\n"),
                            HasSubstr("Content-Length: 6\r\n"), Not(HasSubstr("hello"))));
}

TEST_F(HttpServerTest, SendsALargeBodyWhole) {
  const std::string body(size_t{3} << 20, 'x');
  const std::uint16_t port = serve([&](const HttpRequest&) {
    return HttpResponse{200, "text/plain", {}, body};
  });
  const std::string answer = ask(port, request("GET", "/"));
  EXPECT_EQ(answer.substr(answer.find("\r\n\r\n") + 4), body);
}

TEST_F(HttpServerTest, SpellsTheStatusOfEveryAnswer) {
  const std::uint16_t port = serve([](const HttpRequest& got) {
    const auto status = parse_number<int>(got.path.substr(1));
    return HttpResponse{status.value_or(0), "text/plain", {}, ""};
  });
  for (const char* status : {"400 Bad Request", "404 Not Found", "405 Method Not Allowed",
                             "500 Internal Server Error", "503 Service Unavailable"}) {
    const std::string path = "/" + std::string(status, 3);
    EXPECT_THAT(ask(port, request("GET", path)),
                StartsWith("HTTP/1.1 " + std::string(status) + "\r\n"));
  }
}

TEST_F(HttpServerTest, HandsMethodAndPathToTheHandler) {
  ask(serve_and_note(), request("POST", "/-/rea%64y?x=1", "Content-Length: 0\r\n"));
  const HttpRequest got = seen();
  EXPECT_EQ(got.method, "POST");
  EXPECT_EQ(got.path, "/-/ready");
  EXPECT_THAT(got.query, ElementsAre(Pair("x", "1")));
  EXPECT_FALSE(got.accepts_gzip);
}

TEST_F(HttpServerTest, DecodesRepeatedQueryParametersInOrder) {
  ask(serve_and_note(),
      request("GET", "/metrics?collect%5B%5D=swap&collect[]=a%2Fb+c&empty=&bare"));
  EXPECT_THAT(seen().query, ElementsAre(Pair("collect[]", "swap"), Pair("collect[]", "a/b c"),
                                        Pair("empty", ""), Pair("bare", "")));
}

TEST_F(HttpServerTest, HasNoQueryWhereThereIsNone) {
  ask(serve_and_note(), request("GET", "/metrics"));
  EXPECT_THAT(seen().query, IsEmpty());
}

TEST_F(HttpServerTest, KnowsWhoAcceptsGzip) {
  std::atomic<bool> accepts = false;
  const std::uint16_t port = serve([&](const HttpRequest& got) {
    accepts = got.accepts_gzip;
    return HttpResponse{};
  });
  for (const char* header : {"gzip", "gzip, deflate", "deflate;q=0.5,  gzip;q=1.0", "gzip;q=0.001",
                             "gzip; q=0.5", "gzip ;q=1"}) {
    ask(port, request("GET", "/", "Accept-Encoding: " + std::string(header) + "\r\n"));
    EXPECT_TRUE(accepts) << header;
  }
  for (const char* header : {"gzip;q=0", "gzip;q=0.000", "gzip; q=0", "deflate, gzip;q=0, br",
                             "identity", "", "deflate", "gzipped"}) {
    ask(port, request("GET", "/", "Accept-Encoding: " + std::string(header) + "\r\n"));
    EXPECT_FALSE(accepts) << header;
  }
}

TEST_F(HttpServerTest, RefusesAnUnknownMethodAndGoesOn) {
  const std::uint16_t port = serve(hello);
  EXPECT_THAT(ask(port, request("BREW", "/")), MatchesRegex("HTTP/1\\.1 (4|5)..(.|\n)*"));
  EXPECT_THAT(ask(port, request("GET", "/")), EndsWith("hello\n"));
}

TEST_F(HttpServerTest, RefusesWhatIsNoHttpAndGoesOn) {
  const std::uint16_t port = serve(hello);
  EXPECT_THAT(ask(port, "\x16\x03\x01 not http\r\n\r\n"), Not(HasSubstr("200 OK")));
  EXPECT_THAT(ask(port, request("GET", "/")), EndsWith("hello\n"));
}

TEST_F(HttpServerTest, AHandlerThatThrowsIsAnInternalError) {
  const std::uint16_t port = serve([](const HttpRequest& got) -> HttpResponse {
    if (got.path == "/standard") {
      throw std::runtime_error("secret detail");
    }
    throw 42;
  });
  for (const char* path : {"/standard", "/other"}) {
    EXPECT_THAT(ask(port, request("GET", path)),
                AllOf(StartsWith("HTTP/1.1 500 "), Not(HasSubstr("secret detail"))));
  }
}

TEST_F(HttpServerTest, SaysWhyItCannotListen) {
  const std::uint16_t taken = serve(hello);
  const auto second = HttpServer::start({{{"127.0.0.1", taken}}, 4}, hello);
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, HasSubstr("127.0.0.1:" + std::to_string(taken)));
  EXPECT_THAT(second.error().message, AnyOf(HasSubstr("Address already in use"), HasSubstr("98")));
}

TEST_F(HttpServerTest, ListensNowhereIfOneAddressIsTaken) {
  const std::uint16_t taken = serve(hello);
  EXPECT_FALSE(HttpServer::start({{{"127.0.0.1", 0}, {"127.0.0.1", taken}}, 4}, hello));
}

TEST_F(HttpServerTest, AnswersSeveralAtATime) {
  std::atomic<int> inside = 0;
  const std::uint16_t port = serve([&](const HttpRequest& got) {
    ++inside;
    const bool both = eventually([&] { return inside >= 2; });
    return HttpResponse{both ? 200 : 500, "text/plain", {}, got.path};
  });
  auto first = std::async(std::launch::async, [&] { return ask(port, request("GET", "/a")); });
  EXPECT_THAT(ask(port, request("GET", "/b")), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(first.get(), StartsWith("HTTP/1.1 200"));
}

TEST_F(HttpServerTest, ClosesItsPortOnStop) {
  const std::uint16_t port = serve(hello);
  ASSERT_TRUE(connect_to(port).valid());
  EXPECT_TRUE(server_->stop(kLongWait));
  EXPECT_FALSE(connect_to(port).valid());
}

TEST_F(HttpServerTest, StopsWellUnderASecond) {
  const std::uint16_t port = serve(hello);
  EXPECT_THAT(ask(port, request("GET", "/")), EndsWith("hello\n"));
  EXPECT_TRUE(server_->stop(milliseconds(1000)));
  EXPECT_TRUE(server_->stop(milliseconds(0))) << "a second call finds it stopped";
}

TEST_F(HttpServerTest, StopWaitsABoundedTimeForAStuckHandler) {
  std::promise<void> entered;
  std::promise<void> released;
  const std::uint16_t port = serve([&, wait = released.get_future().share()](const HttpRequest&) {
    entered.set_value();
    wait.wait();
    return HttpResponse{};
  });
  auto client = std::async(std::launch::async, [&] { return ask(port, request("GET", "/")); });
  ASSERT_EQ(entered.get_future().wait_for(kLongWait), std::future_status::ready);
  bool stopped = true;
  EXPECT_LT(time_of([&] { stopped = server_->stop(milliseconds(10)); }), kLongWait / 2);
  EXPECT_FALSE(stopped);
  released.set_value();
  client.get();
  EXPECT_TRUE(server_->stop(kLongWait));
}

}  // namespace
}  // namespace apu
