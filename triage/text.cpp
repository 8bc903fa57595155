#include "exporter/text.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "triage/report.h"
#include "verdict/advice.h"

namespace apu {
namespace {

constexpr size_t kWidth = 80;
constexpr size_t kShownEvidence = 6;
constexpr size_t kShownSeats = 12;
constexpr size_t kShownNames = 8;
constexpr size_t kItemBytes = 2 * kWidth;  // of one entry of a list
constexpr size_t kShownAdvice = 4;
constexpr size_t kShownEvents = 5;
constexpr size_t kShownUnknown = 4;

/// "2d 20h", "51m", "35s".
std::string span_text(TimePoint from, TimePoint to) {
  using std::chrono::days;
  using std::chrono::hours;
  using std::chrono::minutes;
  using std::chrono::seconds;
  const auto span = std::max(std::chrono::floor<seconds>(to - from), seconds(0));
  if (span < minutes(1)) {
    return fmt::format("{}s", span.count());
  }
  if (span < hours(1)) {
    return fmt::format("{}m", std::chrono::floor<minutes>(span).count());
  }
  const auto whole_hours = std::chrono::floor<hours>(span);
  if (span < days(1)) {
    return fmt::format("{}h {}m", whole_hours.count(),
                       std::chrono::floor<minutes>(span - whole_hours).count());
  }
  const auto whole_days = std::chrono::floor<days>(span);
  if (whole_days >= days(100)) {
    return fmt::format("{}d", whole_days.count());
  }
  return fmt::format("{}d {}h", whole_days.count(),
                     std::chrono::floor<hours>(span - whole_days).count());
}

std::string time_text(TimePoint time) {
  return fmt::format("{:%Y-%m-%d %H:%M:%S} UTC",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(time)));
}

std::string upper(std::string_view label) {
  std::string text(label);
  for (char& c : text) {
    c = c == '_' ? ' ' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return text;
}

std::string gibibytes(std::uint64_t bytes) {
  constexpr double kGibibyte = 1024.0 * 1024 * 1024;
  return fmt::format("{:.1f}", static_cast<double>(bytes) / kGibibyte);
}

std::string seat_at_fault(const TriageReport& report) {
  const std::string& name = report.verdict.concerned.front();
  // The seats are newer than the verdict: it may be gone, or well again.
  const auto seat = std::find_if(report.seats.begin(), report.seats.end(),
                                 [&](const TriageSeat& each) { return each.name == name; });
  const bool known = seat != report.seats.end() && seat->state;
  const std::string state = known ? fmt::format(" is {}", to_label(*seat->state)) : ", now gone";
  return fmt::format("SEAT AT FAULT: {}{}; no fault of the host is known",
                     cut_text(name, kWidth / 3), state);
}

/// The answer.
std::string first_line(const TriageReport& report) {
  const Judgement& judgement = report.verdict.judgement;
  if (!report.has_verdict) {
    return "UNKNOWN: the exporter has not looked yet";
  }
  if (is_fault(judgement.verdict)) {
    std::string line = upper(to_label(judgement.verdict));
    if (judgement.since) {
      line += fmt::format(" since {} ({})", time_text(*judgement.since),
                          span_text(*judgement.since, report.now));
    }
    return line;
  }
  if (!report.verdict.concerned.empty()) {
    return seat_at_fault(report);
  }
  if (judgement.verdict == Verdict::kUnknown) {
    return "UNKNOWN: too little can be read to tell; see what is not known";
  }
  return report.no_gpu ? "HEALTHY: no AMD GPU is on this host"
                       : "HEALTHY: nothing that can be read from here is wrong";
}

void append_host(std::string& out, const TriageReport& report) {
  std::string line = time_text(report.now);
  if (report.host) {
    line += fmt::format(", up {}", span_text(report.host->boot_time, report.now));
    for (const std::string& part : {report.host->machine, report.host->kernel}) {
      line += part.empty() ? "" : ", " + cut_text(part, kWidth / 2);
    }
  }
  append_wrapped(out, kWidth, "", line);
  if (is_fault(report.verdict.judgement.verdict)) {
    append_wrapped(out, kWidth, "", explain(report.verdict.judgement.verdict));
  }
}

void append_evidence(std::string& out, const TriageReport& report) {
  const auto& evidence = report.verdict.judgement.evidence;
  if (evidence.empty()) {
    return;
  }
  out += "\nHow it is known\n";
  for (size_t i = 0; i < std::min(evidence.size(), kShownEvidence); ++i) {
    const Evidence& each = evidence[i];
    std::string text = to_valid_utf8(each.what);
    text += each.value.empty() ? "" : ": " + to_valid_utf8(each.value);
    text += each.threshold.empty() ? "" : fmt::format(" (fault: {})", each.threshold);
    text += each.source.empty() ? "" : fmt::format(" [{}", each.source);
    text += each.source.empty() || !each.at
                ? ""
                : fmt::format(", {} ago", span_text(*each.at, report.now));
    text += each.source.empty() ? "" : "]";
    append_wrapped(out, kWidth, " - ", cut_text(text, kItemBytes + kWidth));
  }
  if (evidence.size() > kShownEvidence) {
    out += fmt::format(" - and {} more\n", evidence.size() - kShownEvidence);
  }
}

void append_seats(std::string& out, const TriageReport& report) {
  if (report.seats.empty()) {
    return;
  }
  constexpr size_t kWhyWidth = 25;
  out += fmt::format("\n{:<18} {:<10} {:>7} {:>6} {:>7}  WHY\n", "SEAT", "STATE", "FOR", "GPU GiB",
                     "PID");
  for (size_t i = 0; i < std::min(report.seats.size(), kShownSeats); ++i) {
    const TriageSeat& seat = report.seats[i];
    const bool has_reason = seat.state && is_fault(*seat.state) && !seat.reasons.empty();
    const std::string line = fmt::format(
        "{:<18} {:<10} {:>7} {:>7} {:>7}  {}", cut_text(seat.name, 18),
        seat.state ? to_label(*seat.state) : "not known",
        seat.since ? span_text(*seat.since, report.now) : "-",
        seat.gpu_bytes ? gibibytes(*seat.gpu_bytes) : "-",
        seat.pid ? std::to_string(*seat.pid) : "-",
        has_reason
            ? cut_text(seat.reasons.front().what + " " + seat.reasons.front().value, kWhyWidth)
            : "");
    out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  if (report.seats.size() > kShownSeats) {
    out += fmt::format("and {} more: /triage?format=json has all\n",
                       report.seats.size() - kShownSeats);
  }
}

void append_names(std::string& out, std::string_view title, const std::vector<std::string>& names) {
  if (!names.empty()) {
    std::string text;
    for (size_t i = 0; i < std::min(names.size(), kShownNames); ++i) {
      text += (text.empty() ? "" : ", ") + cut_text(names[i], kWidth / 2);
    }
    text +=
        names.size() > kShownNames ? fmt::format(" and {} more", names.size() - kShownNames) : "";
    append_wrapped(out, kWidth, title, text);
  }
}

void append_pools(std::string& out, const TriageReport& report) {
  std::vector<std::string> pools;
  for (const TriagePool& pool : report.pools) {
    pools.push_back(fmt::format("{} {} of {} GiB", pool.name, gibibytes(pool.used_bytes),
                                gibibytes(pool.size_bytes)));
  }
  append_names(out, "Memory: ", pools);
}

void append_list(std::string& out, std::string_view title, const std::vector<std::string>& items,
                 size_t shown, size_t items_bytes = kItemBytes) {
  if (items.empty()) {
    return;
  }
  out += fmt::format("\n{}\n", title);
  for (size_t i = 0; i < std::min(items.size(), shown); ++i) {
    append_wrapped(out, kWidth, " - ", cut_text(items[i], items_bytes));
  }
  if (items.size() > shown) {
    out += fmt::format(" - and {} more: /triage?format=json\n", items.size() - shown);
  }
}

void append_events(std::string& out, const TriageReport& report) {
  if (report.events.empty()) {
    return;
  }
  out += "\nKernel log of this boot, the newest first\n";
  for (size_t i = 0; i < std::min(report.events.size(), kShownEvents); ++i) {
    const TriageEvent& event = report.events[i];
    out += cut_text(fmt::format(" {:>8} ago {:>7} x {}",
                                event.last ? span_text(*event.last, report.now) : "?", event.count,
                                cut_text(event.event, kWidth)),
                    kWidth) +
           "\n";
  }
}

}  // namespace

std::string to_triage_text(const TriageReport& report) {
  std::string out = first_line(report) + "\n";
  append_host(out, report);
  append_evidence(out, report);
  append_list(out, "What speaks for a fault, and does not suffice", report.verdict.judgement.doubts,
              kShownUnknown);
  append_seats(out, report);
  if (report.is_fault()) {
    append_names(out, "Safe: ", report.verdict.safe);
    append_names(out, "Not seen to serve, so they may hang: ", report.verdict.unproven);
  }
  append_pools(out, report);
  append_list(out, "What to do", advice_for(report), kShownAdvice, 5 * kWidth);
  append_events(out, report);
  append_list(out, "What is not known", report.verdict.not_known, kShownUnknown);
  return out;
}

}  // namespace apu
