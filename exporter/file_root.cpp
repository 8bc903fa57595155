#include "exporter/file_root.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <memory>
#include <system_error>

#include "exporter/descriptor.h"

namespace apu {
namespace {

struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

using TakePiece = std::function<void(std::string_view)>;

/// Hands the bytes of a file to `take`, to its end, or until they are more than `most_bytes`.
Status for_each_piece(const std::string& path, size_t most_bytes, const TakePiece& take) {
  // No O_NONBLOCK: a file that does not answer must look stuck, not empty.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) {
    return error_from_errno(errno, "open " + path);
  }
  std::array<char, 16384> piece{};
  size_t bytes = 0;
  while (true) {
    const ssize_t count = ::read(file.get(), piece.data(), piece.size());
    if (count == 0) {
      return std::nullopt;
    }
    if (count < 0 && errno != EINTR) {
      return error_from_errno(errno, "read " + path);
    }
    if (count > 0) {
      bytes += static_cast<size_t>(count);
      if (bytes > most_bytes) {
        return Error{ErrorKind::kMalformed,
                     fmt::format("read {}: larger than {} bytes", path, most_bytes)};
      }
      take({piece.data(), static_cast<size_t>(count)});
    }
  }
}

/// Makes lines of pieces; see for_each_line of text.h.
class LineJoiner {
 public:
  explicit LineJoiner(const TakePiece& visit) : visit_(visit) {}

  void take(std::string_view piece) {
    for (size_t end = piece.find('\n'); end != std::string_view::npos; end = piece.find('\n')) {
      begun_.append(piece.substr(0, end));
      visit_(begun_);
      begun_.clear();
      piece.remove_prefix(end + 1);
    }
    begun_.append(piece);
  }

  void finish() const {
    if (!begun_.empty()) {
      visit_(begun_);
    }
  }

 private:
  const TakePiece& visit_;
  std::string begun_;  // a line whose end has not come yet
};

}  // namespace

Result<std::string> FileRoot::read(std::string_view relative) const {
  std::string content;
  const Status problem = for_each_piece(path_of(relative).string(), kMaxFileBytes,
                                        [&](std::string_view piece) { content.append(piece); });
  if (problem) {
    return *problem;
  }
  return content;
}

Status FileRoot::for_each_line(std::string_view relative,
                               const std::function<void(std::string_view)>& visit) const {
  LineJoiner lines(visit);
  Status problem = for_each_piece(path_of(relative).string(), kMaxLineFileBytes,
                                  [&](std::string_view piece) { lines.take(piece); });
  if (!problem) {
    lines.finish();
  }
  return problem;
}

Result<std::vector<std::string>> FileRoot::list(std::string_view relative) const {
  const std::filesystem::path path = path_of(relative);
  std::error_code error;
  std::vector<std::string> names;
  std::filesystem::directory_iterator entry(path, error);
  const std::filesystem::directory_iterator end;
  while (!error && entry != end) {
    names.push_back(entry->path().filename().string());
    entry.increment(error);
  }
  if (error) {
    return error_from_errno(error.value(), "list " + path.string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

Result<std::string> FileRoot::link_name(std::string_view relative) const {
  const std::filesystem::path path = path_of(relative);
  std::error_code error;
  const std::filesystem::path target = std::filesystem::read_symlink(path, error);
  if (error) {
    return error_from_errno(error.value(), "read link " + path.string());
  }
  return target.filename().string();
}

Status FileRoot::for_each_link(
    std::string_view relative,
    const std::function<void(std::string_view, std::string_view)>& visit) const {
  const std::string path = path_of(relative).string();
  const std::unique_ptr<DIR, CloseDirectory> directory(::opendir(path.c_str()));
  if (!directory) {
    return error_from_errno(errno, "list " + path);
  }
  std::array<char, PATH_MAX> target{};
  errno = 0;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): the stream is this call's own
  while (const dirent* entry = ::readdir(directory.get())) {
    const ssize_t size =
        ::readlinkat(::dirfd(directory.get()), entry->d_name, target.data(), target.size());
    if (size >= 0) {
      visit(entry->d_name, {target.data(), static_cast<size_t>(size)});
    }
    errno = 0;
  }
  return errno == 0 ? Status() : error_from_errno(errno, "list " + path);
}

std::optional<DeviceNumber> FileRoot::device_number(std::string_view relative) const {
  const std::string path = path_of(relative).string();

  struct statx file {};

  if (::statx(AT_FDCWD, path.c_str(), AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_TYPE, &file) !=
          0 ||
      !S_ISCHR(file.stx_mode)) {
    return std::nullopt;
  }
  return DeviceNumber{file.stx_rdev_major, file.stx_rdev_minor};
}

bool FileRoot::exists(std::string_view relative) const {
  std::error_code error;
  return std::filesystem::exists(path_of(relative), error);
}

}  // namespace apu
