#include "collectors/service_users/search_rights.h"

#include <acl/libacl.h>
#include <sys/acl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>
#include <vector>

namespace apu {
namespace {

using Acl = std::unique_ptr<std::remove_pointer_t<acl_t>, int (*)(void*)>;

bool allows_search(acl_entry_t entry) {
  acl_permset_t permissions = nullptr;
  return ::acl_get_permset(entry, &permissions) == 0 &&
         ::acl_get_perm(permissions, ACL_EXECUTE) == 1;
}

std::optional<std::uint32_t> id_of(acl_entry_t entry) {
  const std::unique_ptr<void, int (*)(void*)> qualifier(::acl_get_qualifier(entry), ::acl_free);
  return qualifier ? std::optional(*static_cast<const id_t*>(qualifier.get())) : std::nullopt;
}

void take_entry(acl_entry_t entry, DirectoryRights& rights) {
  acl_tag_t tag = ACL_UNDEFINED_TAG;
  if (::acl_get_tag_type(entry, &tag) != 0) {
    return;
  }
  const bool search = allows_search(entry);
  if (tag == ACL_MASK) {
    rights.has_mask = true;
    rights.group_class_search = search;
  } else if (tag == ACL_GROUP_OBJ) {
    rights.owning_group_search = search;
  } else if (tag == ACL_USER || tag == ACL_GROUP) {
    if (const auto id = id_of(entry)) {
      (tag == ACL_USER ? rights.users : rights.groups)[*id] = search;
    }
  }
}

Status read_acl(const std::filesystem::path& path, DirectoryRights& rights) {
  const Acl acl(::acl_get_file(path.c_str(), ACL_TYPE_ACCESS), ::acl_free);
  if (!acl) {
    // Not a file system with ACLs: the mode bits say all.
    return errno == EOPNOTSUPP || errno == ENOSYS
               ? std::nullopt
               : Status(error_from_errno(errno, "read the ACL of " + path.string()));
  }
  acl_entry_t entry = nullptr;
  for (int which = ACL_FIRST_ENTRY; ::acl_get_entry(acl.get(), which, &entry) == 1;
       which = ACL_NEXT_ENTRY) {
    take_entry(entry, rights);
  }
  return std::nullopt;
}

/// Whether one of the groups that `who` is in may; nullopt if none of them is named.
std::optional<bool> group_may_search(const DirectoryRights& rights, const Identity& who) {
  std::optional<bool> may;
  if (who.gids.contains(rights.gid)) {
    may = rights.has_mask ? rights.owning_group_search : (rights.mode & S_IXGRP) != 0;
  }
  for (const auto& [gid, search] : rights.groups) {
    if (who.gids.contains(gid)) {
      may = may.value_or(false) || search;
    }
  }
  return may;
}

}  // namespace

Result<DirectoryRights> read_rights(const std::filesystem::path& path) {
  struct stat status {};

  if (::lstat(path.c_str(), &status) != 0) {
    return error_from_errno(errno, path.string());
  }
  if (!S_ISDIR(status.st_mode)) {
    return Error{ErrorKind::kUnsupported, path.string() + " is no directory"};
  }
  DirectoryRights rights;
  rights.uid = status.st_uid;
  rights.gid = status.st_gid;
  rights.mode = status.st_mode;
  if (const Status error = read_acl(path, rights)) {
    return *error;
  }
  return rights;
}

bool may_search(const DirectoryRights& rights, const Identity& who) {
  if (who.uid == 0) {
    return true;
  }
  if (who.uid == rights.uid) {
    return (rights.mode & S_IXUSR) != 0;
  }
  const bool masked_out = rights.has_mask && !rights.group_class_search;
  if (const auto user = rights.users.find(who.uid); user != rights.users.end()) {
    return user->second && !masked_out;
  }
  if (const auto group = group_may_search(rights, who)) {
    return *group && !masked_out;
  }
  return (rights.mode & S_IXOTH) != 0;
}

Result<std::optional<std::filesystem::path>> first_closed(const std::filesystem::path& root,
                                                          const std::filesystem::path& directory,
                                                          const Identity& who) {
  std::vector<std::filesystem::path> way{root};
  for (const auto& part : directory.lexically_normal().relative_path()) {
    if (!part.empty()) {  // behind a slash at the end
      way.push_back(way.back() / part);
    }
  }
  for (const auto& path : way) {
    const auto rights = read_rights(path);
    if (!rights) {
      return rights.error();
    }
    if (!may_search(*rights, who)) {
      return std::optional(path);
    }
  }
  return std::optional<std::filesystem::path>();
}

}  // namespace apu
