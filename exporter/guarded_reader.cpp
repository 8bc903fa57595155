#include "exporter/guarded_reader.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <thread>

#include "exporter/file_root.h"
#include "exporter/guarded_helper.h"
#include "exporter/guarded_protocol.h"

namespace apu {
namespace {

constexpr const char* kSource = "guarded_reads";

// The least that any pipe takes: requests of this size in flight never block whoever sends them.
constexpr size_t kWindowBytes = 4096;

// Answers are let gather: to be woken for each costs more than to read the file.
constexpr std::chrono::microseconds kGatherTime{500};

// Once a file of a call has hung, of the time that the others are waited for: they all are to be
// reached, however many hang.
constexpr int kHastier = 4;

constexpr int kLongestQuarantine = 5;  // times retry_after
constexpr int kMostDoublings = 3;      // that it takes to get there
constexpr int kForgottenAfter = 60;    // times retry_after

constexpr std::chrono::seconds kEndWait{1};

Error not_reached() {
  return {ErrorKind::kBlocked, "not reached in time"};
}

Result<std::string> to_result(const GuardedAnswer& answer, const std::string& path) {
  if (answer.error == EFBIG) {
    return Error{ErrorKind::kMalformed, fmt::format("read {}: larger than expected", path)};
  }
  if (answer.error != 0) {
    return error_from_errno(static_cast<int>(answer.error), "read " + path);
  }
  return std::string(answer.content);
}

int to_poll_timeout(std::chrono::steady_clock::duration left) {
  return static_cast<int>(
      std::max<std::int64_t>(std::chrono::ceil<std::chrono::milliseconds>(left).count(), 0));
}

}  // namespace

/// The files of one call of read().
struct GuardedReader::Call {
  std::span<const GuardedFile> files;
  std::vector<Result<std::string>> results;
  std::deque<size_t> waiting;    // not asked for yet
  std::deque<size_t> in_flight;  // the helper reads the first, or has answered it
  size_t in_flight_bytes = 0;
  std::chrono::milliseconds file_wait{0};
  Steady::time_point ends;

  [[nodiscard]] bool done() const { return waiting.empty() && in_flight.empty(); }

  [[nodiscard]] Subject subject(size_t index) const {
    return {files[index].process, files[index].kind};
  }

  /// Ends the wait for the first file in flight.
  void finish(Result<std::string> result) {
    const size_t index = in_flight.front();
    in_flight_bytes -= request_size(files[index].path);
    in_flight.pop_front();
    results[index] = std::move(result);
  }

  /// What is in flight has to be asked for again.
  void take_back() {
    waiting.insert(waiting.begin(), in_flight.begin(), in_flight.end());
    in_flight.clear();
    in_flight_bytes = 0;
  }
};

GuardedReader::GuardedReader(std::initializer_list<std::string_view> kinds, SourceReporter sources,
                             GuardedReaderSettings settings)
    : sources_(std::move(sources)), settings_(std::move(settings)) {
  for (const std::string_view kind : kinds) {
    sources_.expect_guarded_reads(std::string(kind));
  }
}

std::vector<Result<std::string>> GuardedReader::read(std::span<const GuardedFile> files) {
  last_wait_.reset();
  Call call = begin(files);
  while (!call.done() && Steady::now() < call.ends) {
    if (const Status error = ensure_helper()) {
      fail_rest(call, *error);
      break;
    }
    send_requests(call);
    receive_answers(call);
  }
  if (!call.in_flight.empty()) {
    drop_helper(call);  // its answers would be taken for those of the next call
  }
  return std::move(call.results);
}

/// Sorts out what is in quarantine. What is tried again after one comes last.
GuardedReader::Call GuardedReader::begin(std::span<const GuardedFile> files) {
  const auto now = Steady::now();
  Call call;
  call.files = files;
  call.results.assign(files.size(), not_reached());
  call.file_wait = settings_.file_wait;
  call.ends = now + settings_.call_wait;
  std::deque<size_t> retried;
  for (size_t i = 0; i < files.size(); ++i) {
    const auto found = quarantine_.find(call.subject(i));
    if (request_size(files[i].path) > kWindowBytes) {
      call.results[i] = error_from_errno(ENAMETOOLONG, "read " + files[i].path);
    } else if (found == quarantine_.end()) {
      call.waiting.push_back(i);
    } else if (found->second.until <= now) {
      retried.push_back(i);
    } else {
      call.results[i] = Error{ErrorKind::kBlocked, files[i].path + " did not answer a while ago"};
    }
  }
  call.waiting.insert(call.waiting.end(), retried.begin(), retried.end());
  return call;
}

Status GuardedReader::ensure_helper() {
  if (helper_) {
    return std::nullopt;
  }
  auto started = HelperProcess::start(settings_.program, {std::string(kGuardedReaderOption)});
  if (!started) {
    sources_.unavailable(kSource, started.error().kind);
    return started.error();
  }
  helper_ = *std::move(started);
  received_.clear();
  if (!wait_started()) {
    helper_.reset();
    sources_.unavailable(kSource, ErrorKind::kBlocked);
    return Error{ErrorKind::kBlocked,
                 fmt::format("a helper to read files did not start within {} ms",
                             settings_.start_wait.count())};
  }
  sources_.available(kSource);
  return std::nullopt;
}

bool GuardedReader::wait_started() {
  const auto until = Steady::now() + settings_.start_wait;
  while (Steady::now() < until && receive(until) != Received::kEnd) {
    std::string_view rest = received_;
    if (const auto answer = take_answer(rest)) {
      received_.clear();
      return answer->id == kStartedId;
    }
  }
  return false;
}

void GuardedReader::drop_helper(Call& call) {
  helper_.reset();
  received_.clear();
  call.take_back();
}

void GuardedReader::send_requests(Call& call) {
  std::string bytes;
  if (call.in_flight.empty()) {
    last_sign_ = Steady::now();
  }
  while (!call.waiting.empty()) {
    const size_t index = call.waiting.front();
    const std::string& path = call.files[index].path;
    if (call.in_flight_bytes + request_size(path) > kWindowBytes) {
      break;
    }
    append_request(bytes, {static_cast<std::uint32_t>(index), settings_.max_bytes, path});
    call.in_flight_bytes += request_size(path);
    call.in_flight.push_back(index);
    call.waiting.pop_front();
  }
  if (!bytes.empty()) {
    (void)helper_->send(bytes);  // one that has ended is noticed when its answer is read
  }
}

void GuardedReader::receive_answers(Call& call) {
  const auto file_ends = last_sign_ + call.file_wait;
  switch (receive(std::min(file_ends, call.ends))) {
    case Received::kBytes:
      last_sign_ = Steady::now();
      take_answers(call);
      break;
    case Received::kSilence:
      if (Steady::now() >= file_ends) {
        take_timeout(call);
      }
      break;
    case Received::kEnd:
      take_end(call);
      break;
  }
}

/// Waits for bytes of the helper's, and takes those that are there.
GuardedReader::Received GuardedReader::receive(Steady::time_point until) {
  constexpr size_t kReadBytes = size_t{64} << 10;
  pollfd polled{helper_->output(), POLLIN, 0};
  if (::poll(&polled, 1, to_poll_timeout(until - Steady::now())) <= 0) {
    return Received::kSilence;
  }
  const size_t before = received_.size();
  received_.resize(before + kReadBytes);
  const ssize_t count = ::read(helper_->output(), received_.data() + before, kReadBytes);
  received_.resize(before + static_cast<size_t>(std::max<ssize_t>(count, 0)));
  if (count == 0) {
    return Received::kEnd;
  }
  return count > 0 ? Received::kBytes : Received::kSilence;
}

void GuardedReader::take_answers(Call& call) {
  std::string_view rest = received_;
  while (const auto answer = take_answer(rest)) {
    if (call.in_flight.empty() || answer->id != call.in_flight.front()) {
      drop_helper(call);  // it answers what nobody asked
      return;
    }
    const size_t index = call.in_flight.front();
    quarantine_.erase(call.subject(index));
    call.finish(to_result(*answer, call.files[index].path));
  }
  received_.erase(0, received_.size() - rest.size());
  if (!call.in_flight.empty()) {
    std::this_thread::sleep_for(kGatherTime);
  }
}

/// The first file in flight hangs.
void GuardedReader::take_timeout(Call& call) {
  const size_t index = call.in_flight.front();
  const Subject subject = call.subject(index);
  const GuardedFile& file = call.files[index];
  sources_.guarded_timeout(std::string(file.kind), file.path);
  // Our own process, whatever --path.procfs says, and a file that blocks nobody.
  const auto wait = FileRoot("/proc").read(fmt::format("{}/wchan", helper_->pid()));
  last_wait_ = wait ? *wait : "";
  put_into_quarantine(subject);
  const Error error{ErrorKind::kBlocked, fmt::format("{} has not answered within {} ms", file.path,
                                                     call.file_wait.count())};
  call.file_wait = settings_.file_wait / kHastier;
  drop_helper(call);
  std::erase_if(call.waiting, [&](size_t other) {
    const bool same = call.subject(other) == subject;
    if (same) {
      call.results[other] = error;
    }
    return same;
  });
}

void GuardedReader::put_into_quarantine(const Subject& subject) {
  const auto now = Steady::now();
  // Forgets processes that have ended since.
  std::erase_if(quarantine_, [&](const auto& entry) {
    return entry.second.until + kForgottenAfter * settings_.retry_after < now;
  });
  Quarantine& quarantine = quarantine_[subject];
  const int doublings = std::min(quarantine.timeouts, kMostDoublings);
  quarantine.timeouts += 1;
  quarantine.until = now + settings_.retry_after * std::min(1 << doublings, kLongestQuarantine);
}

/// The helper has ended; the first file in flight may be what ended it, and is not tried again.
void GuardedReader::take_end(Call& call) {
  const auto end = helper_->wait_end(kEndWait);
  const size_t index = call.in_flight.front();
  call.finish(Error{ErrorKind::kUnknown,
                    fmt::format("read {}: the helper {}", call.files[index].path,
                                end ? "ended by " + to_text(*end) : "closed its output")});
  drop_helper(call);
}

void GuardedReader::fail_rest(Call& call, const Error& error) {
  call.take_back();
  for (const size_t index : call.waiting) {
    call.results[index] = error;
  }
  call.waiting.clear();
}

}  // namespace apu
