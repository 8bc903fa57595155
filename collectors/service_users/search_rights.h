#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "exporter/result.h"

namespace apu {

/// As whom a process asks.
struct Identity {
  std::uint32_t uid = 0;
  std::set<std::uint32_t> gids;
};

/// What decides who may pass through a directory: mode bits and POSIX ACL.
struct DirectoryRights {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::uint32_t mode = 0;
  bool has_mask = false;                 ///< there is an ACL beyond the mode bits
  bool group_class_search = false;       ///< the ACL's mask allows it; without one, all is allowed
  bool owning_group_search = false;      ///< by the ACL's entry, before the mask
  std::map<std::uint32_t, bool> users;   ///< named in the ACL, before the mask
  std::map<std::uint32_t, bool> groups;  ///< likewise
};

/// Reads them; a link is not followed. Asks the file system's server, which can hang.
/// Errors: by errno; kUnsupported if it is no directory.
Result<DirectoryRights> read_rights(const std::filesystem::path& path);

/// Whether the kernel lets `who` search the directory. Root may always.
///
/// Source: acl(5), "Access check algorithm"; generic_permission in fs/namei.c.
bool may_search(const DirectoryRights& rights, const Identity& who);

/// The first directory on the way to `directory`, itself included, that `who` may not search;
/// nullopt if there is none.
/// Errors: as of read_rights; kNotFound if one is missing, which is named.
Result<std::optional<std::filesystem::path>> first_closed(const std::filesystem::path& root,
                                                          const std::filesystem::path& directory,
                                                          const Identity& who);

}  // namespace apu
