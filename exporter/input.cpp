#include "exporter/input.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <vector>

#include "exporter/decoder.h"
#include "exporter/descriptor.h"

namespace apu {
namespace {

constexpr size_t kPieceBytes = 256 << 10;  // more than a record of /dev/kmsg
constexpr size_t kMagicBytes = 6;

/// An open input and how to read it.
struct OpenInput {
  std::string name;
  Descriptor owned;
  int descriptor = STDIN_FILENO;
  bool device = false;
};

Result<OpenInput> open_input(const std::string& path) {
  OpenInput input;
  input.name = path == "-" ? "stdin" : path;
  if (path != "-") {
    struct stat status {};

    if (::stat(path.c_str(), &status) != 0) {
      return error_from_errno(errno, "open " + path);
    }
    input.device = S_ISCHR(status.st_mode);
    // A device that follows the log would never end.
    input.owned =
        Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | (input.device ? O_NONBLOCK : 0)));
    input.descriptor = input.owned.get();
    if (!input.owned.valid()) {
      return error_from_errno(errno, "open " + path);
    }
  }

  struct stat status {};

  if (::fstat(input.descriptor, &status) == 0 && S_ISDIR(status.st_mode)) {
    return Error{ErrorKind::kUnsupported, input.name + " is a directory"};
  }
  return input;
}

/// Bytes read into `piece`: 0 at the end.
Result<size_t> read_piece(const OpenInput& input, std::vector<char>& piece) {
  while (true) {
    const ssize_t count = ::read(input.descriptor, piece.data(), piece.size());
    if (count >= 0) {
      return static_cast<size_t>(count);
    }
    if (input.device && errno == EAGAIN) {
      return size_t{0};
    }
    const bool overrun = input.device && errno == EPIPE;  // the next record goes on
    if (errno != EINTR && !overrun) {
      return error_from_errno(errno, "read " + input.name);
    }
  }
}

/// The first bytes, of which the decoder needs a few at once.
Status read_head(const OpenInput& input, std::vector<char>& piece, std::string& head) {
  while (head.size() < kMagicBytes) {
    const auto count = read_piece(input, piece);
    if (!count) {
      return count.error();
    }
    if (*count == 0) {
      break;
    }
    head.append(piece.data(), *count);
  }
  return std::nullopt;
}

Status decode(const OpenInput& input, const TakeBytes& take) {
  std::vector<char> piece(kPieceBytes);
  std::string head;
  if (Status error = read_head(input, piece, head)) {
    return error;
  }
  const auto decoder = make_decoder(head);
  std::string_view bytes = head;
  while (!bytes.empty()) {
    if (Status error = decoder->feed(bytes, take)) {
      return error;
    }
    const auto count = read_piece(input, piece);
    if (!count) {
      return count.error();
    }
    bytes = {piece.data(), *count};
  }
  return head.empty() ? std::nullopt : decoder->finish();
}

}  // namespace

Status read_input(const std::string& path, const TakeBytes& take) {
  const auto input = open_input(path);
  if (!input) {
    return input.error();
  }
  Status error = decode(*input, take);
  if (error && error->kind == ErrorKind::kMalformed) {
    error->message = fmt::format("{}: {}", input->name, error->message);
  }
  return error;
}

}  // namespace apu
