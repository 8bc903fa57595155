#include "collectors/kernel_log/journal_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <system_error>

namespace apu {
namespace {

namespace fs = std::filesystem;

bool is_machine_id(const std::string& name) {
  constexpr size_t kHexDigits = 32;
  const auto hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  // A namespace of journald is "ID.NAME".
  return name.size() >= kHexDigits && std::all_of(name.begin(), name.begin() + kHexDigits, hex) &&
         (name.size() == kHexDigits || name[kHexDigits] == '.');
}

bool is_journal_file(std::string_view name) {
  return name.ends_with(".journal") || name.ends_with(".journal~");
}

void look_into(const fs::path& directory, bool below, JournalFiles& files) {
  std::error_code error;
  fs::directory_iterator entry(directory, error);
  files.forbidden = files.forbidden || error == std::errc::permission_denied;
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!is_journal_file(name)) {
      if (below && is_machine_id(name)) {
        look_into(entry->path(), false, files);
      }
    } else if (!name.starts_with("user-")) {
      ++files.found;
      files.readable += ::faccessat(AT_FDCWD, entry->path().c_str(), R_OK, AT_EACCESS) == 0 ? 1 : 0;
    }
  }
}

}  // namespace

JournalFiles look_for_journal_files(const std::vector<fs::path>& directories) {
  JournalFiles files;
  for (const fs::path& directory : directories) {
    struct stat status {};

    if (::stat(directory.c_str(), &status) != 0) {
      files.directories.emplace_back();
      files.forbidden = files.forbidden || errno == EACCES;
      continue;
    }
    files.directories.emplace_back(std::pair(status.st_dev, status.st_ino));
    look_into(directory, true, files);
  }
  return files;
}

Status problem_of(const JournalFiles& files, const fs::path& place) {
  if (files.readable > 0) {
    return std::nullopt;
  }
  if (files.found > 0 || files.forbidden) {
    return Error{ErrorKind::kPermissionDenied,
                 fmt::format("no journal file of the system below {} may be read: be root or in "
                             "group systemd-journal",
                             place.string())};
  }
  return Error{ErrorKind::kNotFound, fmt::format("no journal file below {}", place.string())};
}

}  // namespace apu
