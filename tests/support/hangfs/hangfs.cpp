// A file system that mirrors a directory, with one file whose read never returns:
//   hangfs SOURCE HANGING_FILE MOUNTPOINT
// Its files are opened with direct_io, but for journal files, which are mapped: a reader first
// waits interruptibly, and once a signal has reached it, in uninterruptible sleep that not even
// SIGKILL ends. Killing this daemon frees it. The file hangs once MOUNTPOINT/../hang exists, so
// that a reader can have read it before.

#define FUSE_USE_VERSION 31
#include <dirent.h>
#include <fcntl.h>
#include <fuse.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <string_view>

namespace {

std::string source;        // the mirrored directory
std::string hanging_path;  // as the file system sees it: "/proc/pressure/memory"
std::string trigger_path;  // while it exists, the file hangs

std::string real_path(const char* path) {
  return source + path;
}

int get_attributes(const char* path, struct stat* attributes, fuse_file_info* /*info*/) {
  return ::lstat(real_path(path).c_str(), attributes) == 0 ? 0 : -errno;
}

int read_directory(const char* path, void* buffer, fuse_fill_dir_t fill, off_t /*offset*/,
                   fuse_file_info* /*info*/, fuse_readdir_flags /*flags*/) {
  DIR* directory = ::opendir(real_path(path).c_str());
  if (directory == nullptr) {
    return -errno;
  }
  while (const dirent* entry = ::readdir(directory)) {
    fill(buffer, entry->d_name, nullptr, 0, static_cast<fuse_fill_dir_flags>(0));
  }
  ::closedir(directory);
  return 0;
}

int read_link(const char* path, char* buffer, size_t size) {
  const ssize_t count = ::readlink(real_path(path).c_str(), buffer, size - 1);
  if (count < 0) {
    return -errno;
  }
  buffer[count] = '\0';
  return 0;
}

int open_file(const char* path, fuse_file_info* info) {
  const int fd = ::open(real_path(path).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return -errno;
  }
  info->fh = static_cast<uint64_t>(fd);
  info->direct_io = std::string_view(path).ends_with(".journal") ? 0 : 1;
  return 0;
}

int read_file(const char* path, char* buffer, size_t size, off_t offset, fuse_file_info* info) {
  while (path == hanging_path && ::access(trigger_path.c_str(), F_OK) == 0) {
    ::pause();
  }
  const ssize_t count = ::pread(static_cast<int>(info->fh), buffer, size, offset);
  return count < 0 ? -errno : static_cast<int>(count);
}

int release_file(const char* /*path*/, fuse_file_info* info) {
  ::close(static_cast<int>(info->fh));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: hangfs SOURCE HANGING_FILE MOUNTPOINT\n");
    return 2;
  }
  source = argv[1];
  hanging_path = argv[2];
  trigger_path = std::string(argv[3]) + "/../hang";
  fuse_operations operations{};
  operations.getattr = get_attributes;
  operations.readlink = read_link;
  operations.readdir = read_directory;
  operations.open = open_file;
  operations.read = read_file;
  operations.release = release_file;
  char foreground[] = "-f";
  char* fuse_argv[] = {argv[0], foreground, argv[3], nullptr};
  return fuse_main(3, fuse_argv, &operations, nullptr);
}
