#include "exporter/guarded_helper.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string>

#include "exporter/descriptor.h"
#include "exporter/guarded_protocol.h"

namespace apu {
namespace {

constexpr size_t kPieceBytes = size_t{16} << 10;

/// Appends what a file holds to `content`, `max_bytes` at most. Returns 0 or errno.
int read_file(const std::string& path, size_t max_bytes, std::string& content) {
  // No O_NONBLOCK: a file that does not answer must look stuck, not empty.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) {
    return errno;
  }
  std::array<char, kPieceBytes> piece;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  while (true) {
    const ssize_t count = ::read(file.get(), piece.data(), piece.size());
    if (count == 0) {
      return 0;
    }
    if (count < 0 && errno != EINTR) {
      return errno;
    }
    content.append(piece.data(), static_cast<size_t>(std::max<ssize_t>(count, 0)));
    if (content.size() > max_bytes) {
      return EFBIG;
    }
  }
}

bool write_all(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(STDOUT_FILENO, bytes.data(), bytes.size());
    if (count < 0 && errno != EINTR) {
      return false;
    }
    bytes.remove_prefix(static_cast<size_t>(std::max<ssize_t>(count, 0)));
  }
  return true;
}

class Helper {
 public:
  void run() {
    append_answer(answer_, {kStartedId, 0, {}});
    bool read_by_somebody = write_all(answer_);
    while (read_by_somebody && receive()) {
      std::string_view rest = requests_;
      for (auto request = take_request(rest); request && read_by_somebody;
           request = take_request(rest)) {
        read_by_somebody = answer(*request);
      }
      requests_.erase(0, requests_.size() - rest.size());
    }
  }

 private:
  /// Waits for requests. False at the end of stdin.
  bool receive() {
    std::array<char, kPieceBytes> piece;  // NOLINT(cppcoreguidelines-pro-type-member-init)
    const ssize_t count = ::read(STDIN_FILENO, piece.data(), piece.size());
    requests_.append(piece.data(), static_cast<size_t>(std::max<ssize_t>(count, 0)));
    return count > 0 || (count < 0 && errno == EINTR);
  }

  bool answer(const GuardedRequest& request) {
    content_.clear();
    const int error = read_file(std::string(request.path), request.max_bytes, content_);
    answer_.clear();
    append_answer(answer_, {request.id, static_cast<std::uint32_t>(error),
                            error == 0 ? std::string_view(content_) : std::string_view()});
    return write_all(answer_);
  }

  std::string requests_;
  std::string content_;
  std::string answer_;
};

}  // namespace

int run_guarded_reader() {
  ::prctl(PR_SET_NAME, "apu-reader");
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  Helper().run();
  return EXIT_SUCCESS;
}

}  // namespace apu
