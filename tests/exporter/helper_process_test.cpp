#include "exporter/helper_process.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string>

#include "tests/support/wait.h"

namespace apu {
namespace {

/// What the helper writes until it closes its stdout.
std::string all_output(const HelperProcess& helper) {
  std::string text;
  std::array<char, 4096> piece{};
  while (true) {
    pollfd polled{helper.output(), POLLIN, 0};
    if (::poll(&polled, 1, static_cast<int>(std::chrono::milliseconds(kLongWait).count())) <= 0) {
      return text + " and silence";
    }
    const ssize_t count = ::read(helper.output(), piece.data(), piece.size());
    if (count <= 0) {
      return text;
    }
    text.append(piece.data(), static_cast<size_t>(count));
  }
}

std::unique_ptr<HelperProcess> shell(const std::string& script) {
  auto helper = HelperProcess::start("/bin/sh", {"-c", script});
  return helper ? *std::move(helper) : nullptr;
}

TEST(HelperProcess, TalksThroughItsPipes) {
  const auto helper = shell("read line; echo \"got $line\"");
  ASSERT_NE(helper, nullptr);
  EXPECT_TRUE(helper->send("word\n"));
  EXPECT_EQ(all_output(*helper), "got word\n");
  const auto end = helper->wait_end(kLongWait);
  ASSERT_TRUE(end);
  EXPECT_EQ(to_text(*end), "exit code 0");
}

TEST(HelperProcess, InheritsNoOtherDescriptor) {
  const int leaky = ::dup(STDERR_FILENO);          // not close-on-exec
  const auto helper = shell("ls /proc/$$/fd; :");  // the shell's, and it makes no pipe
  ::close(leaky);
  ASSERT_NE(helper, nullptr);
  EXPECT_EQ(all_output(*helper), "0\n1\n2\n");
}

TEST(HelperProcess, TellsHowItEnded) {
  const auto killed = shell("kill -BUS $$");
  const auto failed = shell("exit 3");
  ASSERT_TRUE(killed && failed);
  EXPECT_EQ(killed->wait_end(kLongWait)->signal, SIGBUS);
  EXPECT_EQ(to_text(*failed->wait_end(kLongWait)), "exit code 3");
}

TEST(HelperProcess, OneThatHasEndedTakesNothing) {
  const auto helper = shell("exit 0");
  ASSERT_NE(helper, nullptr);
  ASSERT_TRUE(helper->wait_end(kLongWait));
  EXPECT_FALSE(helper->send("x"));  // and SIGPIPE does not end us
}

TEST(HelperProcess, IsStillThereUntilItEnds) {
  const auto helper = shell("read line");
  ASSERT_NE(helper, nullptr);
  EXPECT_FALSE(helper->wait_end(std::chrono::milliseconds(20)));
}

TEST(HelperProcess, EndsWithItsOwner) {
  auto helper = shell("trap '' TERM PIPE; while :; do sleep 1; done");
  ASSERT_NE(helper, nullptr);
  const pid_t pid = helper->pid();
  helper.reset();
  EXPECT_TRUE(eventually([&] { return ::kill(pid, 0) != 0; }));
}

TEST(HelperProcess, AProgramThatIsNotThereIsNotFound) {
  const auto helper = HelperProcess::start("/nonexistent/program", {});
  ASSERT_FALSE(helper);
  EXPECT_EQ(helper.error().kind, ErrorKind::kNotFound);
}

}  // namespace
}  // namespace apu
