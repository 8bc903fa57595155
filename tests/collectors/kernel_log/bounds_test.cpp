// What an attacker of the log, or a broken one, cannot make grow.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>

#include "collectors/kernel_log/state.h"
#include "exporter/sources.h"

namespace apu {
namespace {

constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();

KernelLogState state_of(const std::vector<std::string>& messages) {
  KernelLogState state;
  for (const std::string& message : messages) {
    LogRecord record;
    record.origin = Origin::kKernel;
    record.message = message;
    state.fold(record, std::nullopt);
  }
  return state;
}

TEST(Bounds, SoManyGpusHaveCountsOfTheirOwn) {
  std::vector<std::string> messages;
  for (int bus = 0; bus < 200; ++bus) {
    messages.push_back(fmt::format("amdgpu 0000:{:02x}:00.0: amdgpu: GPU reset begin!", bus));
  }
  const auto state = state_of(messages);
  const auto& lines = state.events().at(EventKind::kGpuReset).lines;
  EXPECT_EQ(lines.size(), KernelLogState::kMaxGpus + 1);
  EXPECT_EQ(lines.at("other"), 200 - KernelLogState::kMaxGpus);
}

TEST(Bounds, NamesLongerThanTheKernelsAreNone) {
  const std::string name(5000, 'x');
  EXPECT_EQ(parse_hog_report("workqueue: f [" + name + "] hogged CPU for >1us 4 times").kind,
            ParsedHog::Kind::kMalformed);
  EXPECT_EQ(parse_hog_report("workqueue: " + name + " hogged CPU for >1us 4 times").kind,
            ParsedHog::Kind::kMalformed);
}

TEST(Bounds, LargestCountHasABoundThatIsNotBelowIt) {
  for (const HogRule& rule : {HogRule{4}, HogRule{std::nullopt}}) {
    EXPECT_GE(rule.next(kMax), rule.snap(kMax));
    EXPECT_GE(rule.next(kMax / 2), rule.snap(kMax / 2));
  }
}

TEST(Bounds, SoManyMessagesOfASourceAreLogged) {
  SourceBoard board;
  size_t logged = 0;
  for (int pass = 0; pass < 3; ++pass) {
    for (int line = 0; line < 100; ++line) {
      logged += board.count_parse_error("procfs", fmt::format("vmstat:{}: x", line)) ? 1 : 0;
    }
  }
  EXPECT_EQ(logged, SourceBoard::kLoggedMessages);
  EXPECT_TRUE(board.count_parse_error("zfs", "arcstats:1: x"));
}

}  // namespace
}  // namespace apu
