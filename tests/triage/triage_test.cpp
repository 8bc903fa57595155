#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "exporter/text.h"
#include "triage/report.h"

namespace apu {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TriageReport thrash() {
  TriageReport report;
  report.now = from_unix_seconds(1'783'453'890);
  report.host = HostFacts{report.now - hours(100), "6.14.0-36-generic", "", "7.0.2", "EVO-X2"};
  report.has_verdict = true;
  report.verdict.judgement.verdict = Verdict::kKfdThrash;
  report.verdict.judgement.since = report.now - hours(68);
  Evidence hogs;
  hogs.what = "amdgpu_amdkfd_restore_userptr_worker thrashes";
  hogs.value = "1.02/s, 262147 hogs at least";
  hogs.threshold = "more than 0.2/s with 67 counted";
  hogs.source = "kernel log";
  hogs.at = report.now - minutes(122);
  report.verdict.judgement.evidence = {hogs};
  report.verdict.concerned = {"llama-26b"};
  report.verdict.safe = {"llama-embed"};
  report.verdict.not_known = {"memory pressure (psi: unsupported)"};
  TriageSeat wedged;
  wedged.name = "llama-26b";
  wedged.state = SeatState::kThrashing;
  wedged.since = report.now - minutes(51);
  wedged.pid = 41204;
  wedged.gpu_bytes = 14ULL << 30U;
  wedged.reasons = {hogs};
  TriageSeat safe;
  safe.name = "llama-embed";
  safe.state = SeatState::kIdle;
  report.seats = {wedged, safe};
  report.pools = {{"GTT of 0000:c5:00.0", 26ULL << 30U, 112ULL << 30U}};
  report.events = {{"svm_mapping_failed", 6, report.now - hours(34)}};
  return report;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for_each_line(text, [&](std::string_view line) { lines.emplace_back(line); });
  return lines;
}

TEST(TriageText, HasTheAnswerInItsFirstLine) {
  EXPECT_EQ(lines_of(to_triage_text(thrash()))[0],
            "KFD THRASH since 2026-07-04 23:51:30 UTC (2d 20h)");
  TriageReport report = thrash();
  report.verdict = {};
  report.verdict.judgement.verdict = Verdict::kHealthy;
  EXPECT_THAT(to_triage_text(report), StartsWith("HEALTHY: nothing"));
  report.no_gpu = true;
  EXPECT_THAT(to_triage_text(report), StartsWith("HEALTHY: no AMD GPU"));
  report.verdict.judgement.verdict = Verdict::kUnknown;
  EXPECT_THAT(to_triage_text(report), StartsWith("UNKNOWN: too little"));
  report.has_verdict = false;
  EXPECT_THAT(to_triage_text(report), StartsWith("UNKNOWN: the exporter has not looked"));
}

TEST(TriageText, SeatAtFaultOnAHostThatIsNotIsNoHealth) {
  TriageReport report = thrash();
  report.verdict.judgement = {};
  report.verdict.judgement.verdict = Verdict::kHealthy;
  EXPECT_TRUE(report.is_fault());
  EXPECT_THAT(to_triage_text(report), StartsWith("SEAT AT FAULT: llama-26b is thrashing"));
  EXPECT_THAT(to_triage_text(report), HasSubstr("Restart the seat that hangs"));
}

TEST(TriageText, TellsAStrangerWhatToDoOnOneScreen) {
  const std::string text = to_triage_text(thrash());
  EXPECT_LE(lines_of(text).size(), 45U);
  for (const std::string& line : lines_of(text)) {
    EXPECT_LE(line.size(), 80U) << line;
  }
  for (const char* part :
       {"never finish", "1.02/s", "kernel log, 2h 2m ago", "41204", "51m", "14.0",
        "Safe: llama-embed", "free memory first", "svm_mapping_failed", "psi: unsupported"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

TEST(TriageText, NamesOfUsersCannotForgeALine) {
  TriageReport report = thrash();
  report.seats[0].name = "x\nHEALTHY\x1b[2J";
  report.verdict.concerned = {report.seats[0].name};
  report.events[0].event = "OOM kills in a\nHEALTHY";
  const std::string text = to_triage_text(report);
  EXPECT_THAT(text, Not(HasSubstr("\nHEALTHY")));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST(TriageText, SeatAtFaultMayBeGoneOrWellByNow) {
  TriageReport report = thrash();
  report.verdict.judgement = {};
  report.verdict.judgement.verdict = Verdict::kHealthy;
  report.seats.erase(report.seats.begin());
  EXPECT_THAT(to_triage_text(report), StartsWith("SEAT AT FAULT: llama-26b, now gone;"));
  report.seats.clear();
  EXPECT_THAT(to_triage_text(report), StartsWith("SEAT AT FAULT: llama-26b, now gone;"));
  EXPECT_FALSE(advice_for(report).empty());
}

TEST(TriageText, SeatThatHangsHasItsAdviceWhateverTheHostHas) {
  TriageReport report = thrash();
  report.verdict.judgement.verdict = Verdict::kGpuMemoryExhausted;
  report.seats[0].state = SeatState::kBlocked;
  const std::string text = to_triage_text(report);
  EXPECT_THAT(text, HasSubstr("Restart the seat that hangs"));
  EXPECT_THAT(text, HasSubstr("Do not run ps aux"));
  report.seats[0].state = SeatState::kIoStarved;
  EXPECT_THAT(to_triage_text(report), Not(HasSubstr("Restart the seat")));
}

TEST(TriageText, KeepsToOneScreenWhateverThereIs) {
  TriageReport report = thrash();
  const std::string name(220, 'x');
  report.seats.resize(500, report.seats[0]);
  for (TriageSeat& seat : report.seats) {
    seat.name = name;
    seat.since = report.now - hours(24 * 120);
  }
  report.verdict.safe.resize(500, name);
  report.verdict.unproven.resize(500, name);
  report.pools.resize(40, report.pools[0]);
  report.events.resize(99, {name, 123456789, report.now - hours(24 * 1200)});
  report.verdict.not_known.resize(99, "what " + name + " does");
  report.verdict.judgement.doubts.resize(99, "seat " + name + " is blocked");
  Evidence evidence = report.verdict.judgement.evidence[0];
  evidence.what = "seat " + name + ": thrashes";
  report.verdict.judgement.evidence.resize(99, evidence);
  const auto lines = lines_of(to_triage_text(report));
  EXPECT_LE(lines.size(), 130U);
  for (const std::string& line : lines) {
    EXPECT_LE(line.size(), 80U) << line;
  }
}

TEST(TriageText, ManySeatsAreCut) {
  TriageReport report = thrash();
  report.seats.resize(64, report.seats[1]);
  EXPECT_THAT(to_triage_text(report), HasSubstr("and 52 more"));
}

TEST(TriageJson, HasWhatTheTextHas) {
  const auto json = nlohmann::json::parse(to_triage_json(thrash()));
  EXPECT_EQ(json.at("format"), "apu_exporter triage");
  EXPECT_EQ(json.at("version"), 1);
  EXPECT_EQ(json.at("fault"), true);
  EXPECT_EQ(json.at("judgement").at("verdict"), "kfd_thrash");
  EXPECT_EQ(json.at("judgement").at("evidence")[0].at("source"), "kernel log");
  EXPECT_EQ(json.at("seats")[0].at("state"), "thrashing");
  EXPECT_EQ(json.at("seats")[0].at("pid"), 41204);
  EXPECT_TRUE(json.at("seats")[1].at("gpu_bytes").is_null());
  EXPECT_EQ(json.at("seats_safe")[0], "llama-embed");
  EXPECT_FALSE(json.at("advice").empty());
}

TEST(TriageJson, AnyBytesMakeValidJson) {
  TriageReport report = thrash();
  report.seats[0].name = "\xff\"\n";
  report.seats[0].command = "\xfe";
  report.verdict.judgement.evidence[0].what = "seat \xff";
  EXPECT_TRUE(nlohmann::json::accept(to_triage_json(report)));
}

TEST(MakeTriage, OfAnEmptyStoreKnowsNothing) {
  const TriageReport report = make_triage(Store(), from_unix_seconds(1));
  EXPECT_FALSE(report.has_verdict);
  EXPECT_FALSE(report.is_fault());
}

}  // namespace
}  // namespace apu
