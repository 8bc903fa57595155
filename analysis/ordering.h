#pragma once

#include <string>
#include <vector>

#include "analysis/log_entry.h"

namespace apu {

/// Brings a file's entries into the order in which they happened: turns a log round that stands
/// newest first, and gives stamps without a year the newest in which none is after the log's last
/// line.
void order_entries(LogFile& file);

/// An entry and the file it stood in.
struct PlacedEntry {
  size_t file = 0;  ///< index into the files
  const LogEntry* entry = nullptr;
  std::uint64_t plain_kernel_before = 0;  ///< of the entry's own boot
  std::uint64_t plain_user_before = 0;
};

/// All entries of one boot of a host.
struct BootEntries {
  std::string id;            ///< by the journal; empty where it is not told
  bool begins_here = false;  ///< the log has the boot's first line, or the line that separates it
  std::vector<PlacedEntry> entries;
  std::uint64_t plain_kernel_after = 0;  ///< records that tell nothing, after the last entry
  std::uint64_t plain_user_after = 0;
  std::uint64_t duplicates = 0;  ///< entries left out that another file had too
};

/// Parts the entries of all files by boot, the oldest boot first: by the journal's boot id; else by
/// journalctl's separators, the kernel's banner, and its stamp where that falls. A file that goes
/// on where another ended is of the same boot. Within a boot the entries are sorted by their stamps
/// where all have some. `files` must outlive the result.
std::vector<BootEntries> part_boots(std::vector<LogFile>& files);

}  // namespace apu
