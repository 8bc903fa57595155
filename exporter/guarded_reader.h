#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "exporter/helper_process.h"
#include "exporter/result.h"
#include "exporter/sources.h"

namespace apu {

/// What tells a process from all others since boot: its id alone is used again.
struct ProcessIdentity {
  std::int64_t pid = 0;
  std::uint64_t start_ticks = 0;  ///< field 22 of /proc/<pid>/stat

  auto operator<=>(const ProcessIdentity&) const = default;
};

/// A file of a process that may hang whoever reads it.
struct GuardedFile {
  std::string_view kind;  ///< label `file` of apu_guarded_read_timeouts_total; outlives the reader
  std::string path;
  ProcessIdentity process;
};

struct GuardedReaderSettings {
  std::filesystem::path program = "/proc/self/exe";
  std::chrono::milliseconds file_wait{2000};  ///< for one file, until one of the call has hung
  std::chrono::milliseconds start_wait{
      3000};                                  ///< for a new helper: on a host that swaps it is slow
  std::chrono::milliseconds call_wait{6000};  ///< for all files of a call
  std::chrono::milliseconds retry_after{60'000};  ///< a file that has hung; see GuardedReader
  std::uint32_t max_bytes = 64U << 10;            ///< of a file
};

/// Reads files that may hang, through a helper process that may be killed: fdinfo of DRM
/// descriptors, cmdline, environ. This process never opens them.
///
/// A file that does not answer within `file_wait`, or a quarter of it after another one has hung in
/// the same call, costs its helper, counts as a timeout, and puts
/// its process into quarantine for that kind of file: nothing is read there for `retry_after`,
/// after another timeout for twice as long, and so on up to five times as long. A new process with
/// the same id is free. Those that are tried again are read last, so that they keep nobody waiting.
///
/// Source "guarded_reads": available while a helper runs; kBlocked where so many hang in the kernel
/// that no more are started (HelperProcess::kMaxLeftBehind), or a new one does not start.
///
/// For one thread. A collector owns one; the counts are shared.
class GuardedReader {
 public:
  GuardedReader(std::initializer_list<std::string_view> kinds, SourceReporter sources,
                GuardedReaderSettings settings = {});

  /// Reads all `files`; results in their order. Takes `call_wait` and `start_wait` at most. Errors:
  /// by errno; kMalformed for a file over max_bytes; kBlocked for one that hangs, is in quarantine,
  /// or was not reached in time.
  std::vector<Result<std::string>> read(std::span<const GuardedFile> files);

  /// Where in the kernel the helper slept when a file of the last call did not answer in time, as
  /// its /proc/PID/wchan had it; empty if that could not be read. nullopt if none was waited for
  /// that long: what kBlocked says of a file in quarantine, or not reached, is no news of it.
  [[nodiscard]] const std::optional<std::string>& last_wait() const { return last_wait_; }

  /// The helper that runs, -1 if none does.
  [[nodiscard]] pid_t helper() const { return helper_ ? helper_->pid() : -1; }

 private:
  using Steady = std::chrono::steady_clock;
  using Subject = std::pair<ProcessIdentity, std::string_view>;  // and kind of file

  struct Quarantine {
    Steady::time_point until;
    int timeouts = 0;  // in a row
  };

  enum class Received { kBytes, kSilence, kEnd };

  struct Call;

  Call begin(std::span<const GuardedFile> files);
  Status ensure_helper();
  bool wait_started();
  void drop_helper(Call& call);
  void send_requests(Call& call);
  void receive_answers(Call& call);
  void take_answers(Call& call);
  void take_timeout(Call& call);
  void put_into_quarantine(const Subject& subject);
  void take_end(Call& call);
  Received receive(Steady::time_point until);
  void fail_rest(Call& call, const Error& error);

  SourceReporter sources_;
  GuardedReaderSettings settings_;
  std::map<Subject, Quarantine> quarantine_;
  std::unique_ptr<HelperProcess> helper_;
  std::string received_;  // what came of answers that are not whole yet
  Steady::time_point last_sign_;
  std::optional<std::string> last_wait_;
};

}  // namespace apu
