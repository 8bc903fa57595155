#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "exporter/descriptor.h"
#include "exporter/result.h"

namespace apu {

/// This program, executed once more to do what may hang or crash. It talks through two pipes, its
/// stdin and stdout, inherits no other descriptor but stderr, and is to end when stdin does.
class HelperProcess {
 public:
  /// So many helpers that not even SIGKILL ends may be left behind before no more are started.
  static constexpr size_t kMaxLeftBehind = 8;

  /// How a helper came to its end.
  struct End {
    int signal = 0;  ///< that ended it; 0 if it exited
    int code = 0;    ///< its exit code, where it exited
  };

  /// Executes `program`. Errors: kBlocked where too many were left behind; what the system says.
  static Result<std::unique_ptr<HelperProcess>> start(const std::filesystem::path& program,
                                                      const std::vector<std::string>& arguments);

  /// Kills it, if it has not ended. Never waits for long.
  ~HelperProcess();
  HelperProcess(const HelperProcess&) = delete;
  HelperProcess& operator=(const HelperProcess&) = delete;

  /// Writes to its stdin. False if it reads no more.
  [[nodiscard]] bool send(std::string_view bytes) const;

  /// The end of a pipe that it writes as stdout; reads do not block.
  [[nodiscard]] int output() const { return output_.get(); }

  [[nodiscard]] pid_t pid() const { return pid_; }

  /// How it ended; nullopt if it still runs after `max_wait`.
  std::optional<End> wait_end(std::chrono::milliseconds max_wait);

 private:
  HelperProcess(pid_t pid, Descriptor input, Descriptor output);

  pid_t pid_;  // -1 once its end was seen
  Descriptor input_;
  Descriptor output_;
};

/// "signal 7", "exit code 1".
std::string to_text(const HelperProcess::End& end);

}  // namespace apu
