#include "collectors/kernel_log/state_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "exporter/descriptor.h"
#include "exporter/log.h"
#include "exporter/thread.h"

namespace apu {
namespace {

constexpr size_t kMaxBytes = 4 << 20;

}  // namespace

Result<SavedState> load_state(const std::filesystem::path& file) {
  const Descriptor descriptor(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!descriptor.valid()) {
    return error_from_errno(errno, "open " + file.string());
  }

  struct stat status {};

  if (::fstat(descriptor.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return Error{ErrorKind::kUnsupported, file.string() + ": no regular file"};
  }
  std::string text(kMaxBytes + 1, '\0');
  size_t size = 0;
  while (size < text.size()) {
    const ssize_t count = ::read(descriptor.get(), text.data() + size, text.size() - size);
    if (count < 0) {
      return error_from_errno(errno, "read " + file.string());
    }
    if (count == 0) {
      break;
    }
    size += static_cast<size_t>(count);
  }
  text.resize(size);
  if (size > kMaxBytes) {
    return Error{ErrorKind::kMalformed, file.string() + ": too large"};
  }
  auto state = parse_saved_state(text);
  return state ? std::move(state)
               : Error{ErrorKind::kMalformed, file.string() + ": " + state.error().message};
}

namespace {

Status replace_file(const std::filesystem::path& file, const std::string& text) {
  constexpr mode_t kMode = 0640;
  const std::string fresh = file.string() + ".new";
  {
    ::unlink(fresh.c_str());  // whatever an earlier one left there
    const Descriptor descriptor(
        ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kMode));
    if (!descriptor.valid()) {
      return error_from_errno(errno, "open " + fresh);
    }
    const ssize_t written = ::write(descriptor.get(), text.data(), text.size());
    if (written != static_cast<ssize_t>(text.size())) {
      return error_from_errno(written < 0 ? errno : ENOSPC, "write " + fresh);
    }
  }
  if (std::rename(fresh.c_str(), file.c_str()) != 0) {
    return error_from_errno(errno, "rename " + fresh);
  }
  return std::nullopt;
}

}  // namespace

Status save_state(const std::filesystem::path& file, const SavedState& state) {
  return replace_file(file, to_text(state));
}

// --- StateSaver

struct StateSaver::Mailbox {
  std::filesystem::path file;
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<SavedState> waiting;

  SavedState take() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return waiting.has_value(); });
    return *std::exchange(waiting, std::nullopt);
  }
};

StateSaver::StateSaver(const std::filesystem::path& file) : mailbox_(std::make_shared<Mailbox>()) {
  mailbox_->file = file;
  start_detached_thread("kernel_log-save", [mailbox = mailbox_] {
    std::string last_error;
    std::string saved;
    while (true) {
      std::string text = to_text(mailbox->take());
      if (text == saved) {
        continue;
      }
      const Status error = replace_file(mailbox->file, text);
      const std::string message = error ? error->message : "";
      if (!message.empty() && message != last_error) {
        log::warn("The state file cannot be written", {{"err", message}});
      }
      last_error = message;
      saved = error ? "" : std::move(text);
    }
  });
}

void StateSaver::save(SavedState state) {
  {
    const std::lock_guard lock(mailbox_->mutex);
    mailbox_->waiting = std::move(state);
  }
  mailbox_->changed.notify_one();
}

}  // namespace apu
