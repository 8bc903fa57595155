#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "exporter/result.h"

namespace apu {

/// The journal files of some directories, and of the directories in them that are named by a
/// machine id: there is where libsystemd looks, which passes over in silence what it cannot open.
struct JournalFiles {
  /// Device and inode of each directory; nullopt where there is none.
  std::vector<std::optional<std::pair<std::uint64_t, std::uint64_t>>> directories;
  unsigned found = 0;      ///< of the system: the files of users hold no record that counts
  unsigned readable = 0;   ///< of those
  bool forbidden = false;  ///< a directory may not be read
};

JournalFiles look_for_journal_files(const std::vector<std::filesystem::path>& directories);

/// Why none of them can be read; nullopt if one can.
Status problem_of(const JournalFiles& files, const std::filesystem::path& place);

}  // namespace apu
