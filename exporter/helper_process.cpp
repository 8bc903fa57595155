#include "exporter/helper_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <mutex>
#include <thread>
#include <utility>

namespace apu {
namespace {

constexpr std::chrono::milliseconds kLookAgain{2};
constexpr int kFirstNotInherited = 3;

std::optional<HelperProcess::End> look_at(pid_t pid) {
  int status = 0;
  const pid_t seen = ::waitpid(pid, &status, WNOHANG);
  if (seen == 0) {
    return std::nullopt;
  }
  if (seen < 0) {
    return HelperProcess::End{};  // somebody else took its status
  }
  return WIFSIGNALED(status) ? HelperProcess::End{WTERMSIG(status), 0}
                             : HelperProcess::End{0, WEXITSTATUS(status)};
}

/// Those that were killed and have not ended: in uninterruptible sleep.
class LeftBehind {
 public:
  void add(pid_t pid) {
    const std::lock_guard lock(mutex_);
    pids_.push_back(pid);
  }

  /// How many are left, without those that ended since.
  size_t count() {
    const std::lock_guard lock(mutex_);
    std::erase_if(pids_, [](pid_t pid) { return look_at(pid).has_value(); });
    return pids_.size();
  }

 private:
  std::mutex mutex_;
  std::vector<pid_t> pids_;
};

/// Never destroyed: a detached thread may outlive main.
LeftBehind& left_behind() {
  static auto* const instance = new LeftBehind;
  return *instance;
}

struct Pipe {
  Descriptor reading;
  Descriptor writing;
};

Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return error_from_errno(errno, "pipe");
  }
  return Pipe{Descriptor(ends[0]), Descriptor(ends[1])};
}

/// What the new process starts with: the two pipes, no signal blocked or ignored.
class SpawnSettings {
 public:
  SpawnSettings(const Pipe& in, const Pipe& out) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_adddup2(&actions_, in.reading.get(), STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions_, out.writing.get(), STDOUT_FILENO);
    posix_spawn_file_actions_addclosefrom_np(&actions_, kFirstNotInherited);
    posix_spawnattr_init(&attributes_);
    sigset_t signals;
    sigemptyset(&signals);
    posix_spawnattr_setsigmask(&attributes_, &signals);
    sigfillset(&signals);
    posix_spawnattr_setsigdefault(&attributes_, &signals);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }

  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }

  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  [[nodiscard]] const posix_spawn_file_actions_t* actions() const { return &actions_; }

  [[nodiscard]] const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

}  // namespace

std::string to_text(const HelperProcess::End& end) {
  return end.signal != 0 ? fmt::format("signal {}", end.signal)
                         : fmt::format("exit code {}", end.code);
}

HelperProcess::HelperProcess(pid_t pid, Descriptor input, Descriptor output)
    : pid_(pid), input_(std::move(input)), output_(std::move(output)) {}

Result<std::unique_ptr<HelperProcess>> HelperProcess::start(
    const std::filesystem::path& program, const std::vector<std::string>& arguments) {
  if (left_behind().count() >= kMaxLeftBehind) {
    return Error{
        ErrorKind::kBlocked,
        fmt::format("{} helper processes hang in the kernel: no more are started", kMaxLeftBehind)};
  }
  auto in = make_pipe();
  auto out = make_pipe();
  if (!in || !out) {
    return in ? out.error() : in.error();
  }
  std::string name = program.string();
  std::vector<std::string> texts = arguments;
  std::vector<char*> argv{name.data()};
  std::transform(texts.begin(), texts.end(), std::back_inserter(argv),
                 [](std::string& text) { return text.data(); });
  argv.push_back(nullptr);
  const SpawnSettings settings(*in, *out);
  pid_t pid = -1;
  const int error = ::posix_spawn(&pid, program.c_str(), settings.actions(), settings.attributes(),
                                  argv.data(), environ);
  if (error != 0) {
    return error_from_errno(error, "execute " + name);
  }
  ::fcntl(out->reading.get(), F_SETFL, O_NONBLOCK);
  return std::unique_ptr<HelperProcess>(
      new HelperProcess(pid, std::move(in->writing), std::move(out->reading)));
}

HelperProcess::~HelperProcess() {
  constexpr std::chrono::milliseconds kEndWait{50};
  if (pid_ < 0) {
    return;
  }
  ::kill(pid_, SIGKILL);
  if (!wait_end(kEndWait)) {
    left_behind().add(pid_);
  }
}

bool HelperProcess::send(std::string_view bytes) const {
  // The process may not ignore SIGPIPE: keep it from this thread, and take it if it came.
  sigset_t pipe_signal;
  sigset_t before;
  sigemptyset(&pipe_signal);
  sigaddset(&pipe_signal, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
  const ssize_t count = ::write(input_.get(), bytes.data(), bytes.size());
  if (count < 0 && errno == EPIPE && sigismember(&before, SIGPIPE) == 0) {
    const timespec now{};
    sigtimedwait(&pipe_signal, nullptr, &now);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return count == static_cast<ssize_t>(bytes.size());
}

std::optional<HelperProcess::End> HelperProcess::wait_end(std::chrono::milliseconds max_wait) {
  const auto deadline = std::chrono::steady_clock::now() + max_wait;
  while (pid_ >= 0) {
    if (const auto end = look_at(pid_)) {
      pid_ = -1;
      return end;
    }
    if (std::chrono::steady_clock::now() >= deadline) {
      return std::nullopt;
    }
    std::this_thread::sleep_for(kLookAgain);
  }
  return std::nullopt;
}

}  // namespace apu
