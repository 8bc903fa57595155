#include "collectors/units/bus_manager.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

#include "exporter/descriptor.h"
#include "tests/support/temp_tree.h"

namespace apu {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// A socket that a test's user manager would listen on.
Descriptor bind_socket(const std::filesystem::path& path) {
  std::filesystem::create_directories(path.parent_path());
  Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(static_cast<char*>(address.sun_path), path.c_str(), sizeof address.sun_path - 1);
  EXPECT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  return socket;
}

class UserManagers : public testing::Test {
 protected:
  Result<std::unique_ptr<ServiceManager>> connect(const std::string& user,
                                                  milliseconds wait = milliseconds(10000)) const {
    return make_bus_managers(runtime.path())->connect(user, steady_clock::now() + wait);
  }

  [[nodiscard]] std::filesystem::path socket_of(const std::string& user,
                                                const char* name = "systemd/private") const {
    return runtime.path() / user / name;
  }

  TempTree runtime;
  std::string self = std::to_string(::getuid());
};

TEST_F(UserManagers, AreOfUsersWhoHaveARuntimeDirectory) {
  runtime.write("1000/bus", "");
  runtime.write("7/bus", "");
  runtime.write("lost+found/x", "");
  EXPECT_THAT(make_bus_managers(runtime.path())->users(),
              testing::UnorderedElementsAre("1000", "7"));
  EXPECT_TRUE(make_bus_managers(runtime.path() / "none")->users().empty());
}

TEST_F(UserManagers, WithoutASocketAreNotFound) {
  EXPECT_EQ(connect("1000").error().kind, ErrorKind::kNotFound);
  EXPECT_EQ(connect("../1000").error().kind, ErrorKind::kNotFound);
}

TEST_F(UserManagers, ThatListenNoMoreAreNotFound) {
  bind_socket(socket_of(self));
  EXPECT_EQ(connect(self).error().kind, ErrorKind::kNotFound);
}

TEST_F(UserManagers, ThatAreAnotherUsersAreRefused) {
  const std::string other = std::to_string(::getuid() + 1);
  const Descriptor socket = bind_socket(socket_of(other));
  ASSERT_EQ(::listen(socket.get(), 4), 0);
  const auto made = connect(other);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().kind, ErrorKind::kPermissionDenied);
  EXPECT_THAT(made.error().message, testing::HasSubstr("another user"));
}

TEST_F(UserManagers, ThatNeverAnswerAreBlocked) {
  const Descriptor socket = bind_socket(socket_of(self));
  ASSERT_EQ(::listen(socket.get(), 4), 0);
  const auto start = steady_clock::now();
  EXPECT_EQ(connect(self, milliseconds(100)).error().kind, ErrorKind::kBlocked);
  EXPECT_GE(steady_clock::now() - start, milliseconds(100));
}

TEST_F(UserManagers, ThatDoNotEvenAcceptAreBlocked) {
  const Descriptor socket = bind_socket(socket_of(self));
  ASSERT_EQ(::listen(socket.get(), 0), 0);
  const auto managers = make_bus_managers(runtime.path());
  Status error;
  for (int i = 0; i < 3 && !(error && error->message.find("connect") == 0); ++i) {
    // Each leaves one in the queue, until that is full.
    const Descriptor waiting(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_un address{};
    socklen_t size = sizeof address;
    ASSERT_EQ(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    static_cast<void>(::connect(waiting.get(), reinterpret_cast<const sockaddr*>(&address), size));
    error = managers->connect(self, steady_clock::now() + milliseconds(50)).error();
  }
  EXPECT_EQ(error->kind, ErrorKind::kBlocked);
}

TEST_F(UserManagers, AreReachedByTheirBusWhereThePrivateSocketIsNot) {
  const Descriptor socket = bind_socket(socket_of(self, "bus"));
  ASSERT_EQ(::listen(socket.get(), 4), 0);
  EXPECT_EQ(connect(self, milliseconds(50)).error().kind, ErrorKind::kNotFound);
  Descriptor accepted(::accept(socket.get(), nullptr, nullptr));
  EXPECT_TRUE(accepted.valid());  // somebody came there
}

}  // namespace
}  // namespace apu
