#include "exporter/sources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "exporter/exposition.h"

namespace apu {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class SourcesTest : public testing::Test {
 protected:
  [[nodiscard]] std::string page() const { return to_text(board_->families()); }

  std::shared_ptr<SourceBoard> board_ = std::make_shared<SourceBoard>();
  SourceReporter memory_{board_, "memory"};
  SourceReporter swap_{board_, "swap"};
};

TEST_F(SourcesTest, SayNothingOfUnknownSources) {
  EXPECT_THAT(board_->families(), IsEmpty());
}

TEST_F(SourcesTest, AnAvailableSourceHasNoReasonAndNoErrors) {
  memory_.available("procfs");
  EXPECT_THAT(page(), AllOf(HasSubstr("apu_source_available{source=\"procfs\"} 1\n"),
                            HasSubstr("apu_parse_errors_total{source=\"procfs\"} 0\n"),
                            Not(HasSubstr("apu_source_unavailable_info{"))));
}

TEST_F(SourcesTest, AnUnavailableSourceHasItsReason) {
  memory_.unavailable("procfs", ErrorKind::kPermissionDenied);
  EXPECT_THAT(
      page(),
      AllOf(HasSubstr("apu_source_available{source=\"procfs\"} 0\n"),
            HasSubstr(
                "apu_source_unavailable_info{source=\"procfs\",reason=\"permission_denied\"} 1\n"),
            Not(HasSubstr("apu_parse_errors_total"))));
}

TEST_F(SourcesTest, ASourceThatComesBackLosesItsReason) {
  memory_.unavailable("procfs", ErrorKind::kNotFound);
  memory_.available("procfs");
  EXPECT_THAT(page(), AllOf(HasSubstr("apu_source_available{source=\"procfs\"} 1\n"),
                            Not(HasSubstr("apu_source_unavailable_info{"))));
}

TEST_F(SourcesTest, ASourceIsUnavailableIfOneOfItsCollectorsSaysSo) {
  memory_.available("procfs");
  swap_.unavailable("procfs", ErrorKind::kNotFound);
  EXPECT_THAT(page(), HasSubstr("apu_source_available{source=\"procfs\"} 0\n"));
  memory_.available("procfs");
  EXPECT_THAT(page(), HasSubstr("apu_source_available{source=\"procfs\"} 0\n"));
  swap_.available("procfs");
  EXPECT_THAT(page(), HasSubstr("apu_source_available{source=\"procfs\"} 1\n"));
}

TEST_F(SourcesTest, ASourceHasOneReasonOnly) {
  memory_.unavailable("procfs", ErrorKind::kNotFound);
  swap_.unavailable("procfs", ErrorKind::kBlocked);
  EXPECT_THAT(page(), AllOf(HasSubstr("reason=\"not_found\""), Not(HasSubstr("blocked"))));
}

TEST_F(SourcesTest, CountParseErrorsOverAllCollectors) {
  memory_.parse_error("procfs", "meminfo:3: x");
  memory_.parse_error("procfs", "meminfo:3: x");
  swap_.parse_error("procfs", "swaps:2: y");
  EXPECT_THAT(page(), HasSubstr("apu_parse_errors_total{source=\"procfs\"} 3\n"));
}

TEST_F(SourcesTest, KnowANewMessage) {
  EXPECT_TRUE(board_->count_parse_error("procfs", "a"));
  EXPECT_FALSE(board_->count_parse_error("procfs", "a"));
  EXPECT_TRUE(board_->count_parse_error("procfs", "b"));
  EXPECT_TRUE(board_->count_parse_error("sysfs", "b"));
}

TEST_F(SourcesTest, KeepTheirErrorCountWhenTheyAreAvailableAgain) {
  memory_.parse_error("procfs", "a");
  memory_.available("procfs");
  EXPECT_THAT(page(), HasSubstr("apu_parse_errors_total{source=\"procfs\"} 1\n"));
}

TEST_F(SourcesTest, NoteWhetherAResultCame) {
  EXPECT_TRUE(memory_.note("procfs", Result<int>(1)));
  EXPECT_THAT(page(), HasSubstr("apu_source_available{source=\"procfs\"} 1\n"));
  EXPECT_FALSE(memory_.note("procfs", Result<int>(Error{ErrorKind::kBlocked, "read x"})));
  EXPECT_THAT(page(), AllOf(HasSubstr("reason=\"blocked\""),
                            HasSubstr("apu_parse_errors_total{source=\"procfs\"} 0\n")));
}

TEST_F(SourcesTest, NoteCountsMalformedInput) {
  EXPECT_FALSE(memory_.note("procfs", Result<int>(Error{ErrorKind::kMalformed, "x:1: y"})));
  EXPECT_THAT(page(), AllOf(HasSubstr("reason=\"malformed\""),
                            HasSubstr("apu_parse_errors_total{source=\"procfs\"} 1\n")));
}

TEST_F(SourcesTest, MayBeReportedFromSeveralThreads) {
  constexpr int kEach = 500;
  const auto report = [](const SourceReporter& reporter) {
    for (int i = 0; i < kEach; ++i) {
      reporter.available("procfs");
      reporter.parse_error("procfs", "same");
    }
  };
  std::thread other([&] { report(memory_); });
  report(swap_);
  const std::string during = page();
  other.join();
  EXPECT_THAT(during, HasSubstr("apu_source_available"));
  EXPECT_THAT(page(), HasSubstr("apu_parse_errors_total{source=\"procfs\"} 1000\n"));
}

TEST_F(SourcesTest, GuardedReadsCountFromZeroOnOnceThereIsAReader) {
  EXPECT_THAT(page(), Not(HasSubstr("apu_guarded_read_timeouts_total")));
  memory_.expect_guarded_reads("fdinfo");
  EXPECT_THAT(page(), HasSubstr("apu_guarded_read_timeouts_total{file=\"fdinfo\"} 0\n"));
  swap_.guarded_timeout("fdinfo", "/proc/1/fdinfo/1");
  swap_.guarded_timeout("cmdline", "/proc/1/cmdline");
  memory_.expect_guarded_reads("fdinfo");
  EXPECT_THAT(page(), AllOf(HasSubstr("apu_guarded_read_timeouts_total{file=\"fdinfo\"} 1\n"),
                            HasSubstr("apu_guarded_read_timeouts_total{file=\"cmdline\"} 1\n")));
}

}  // namespace
}  // namespace apu
