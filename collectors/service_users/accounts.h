#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/parsers/problem.h"

namespace apu {

/// One line of /etc/passwd.
struct Account {
  std::string name;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::string home;
};

/// One line of /etc/group.
struct AccountGroup {
  std::string name;
  std::uint32_t gid = 0;
  std::set<std::string> members;  ///< by name, those beside users whose own group it is
};

/// The accounts in a host's files. Those of directories on the network are not in them, and asking
/// for these may hang.
struct Accounts {
  std::vector<Account> users;
  std::vector<AccountGroup> groups;

  /// By name, or by a decimal uid.
  [[nodiscard]] const Account* find_user(std::string_view name_or_uid) const;

  /// The id of a group by name, or a decimal gid.
  [[nodiscard]] std::optional<std::uint32_t> find_gid(std::string_view name_or_gid) const;

  /// All groups of a user: its own, and those that name it.
  [[nodiscard]] std::set<std::uint32_t> groups_of(const Account& user) const;
};

/// Parses /etc/passwd. Shape: NAME:PASSWORD:UID:GID:GECOS:HOME:SHELL.
/// Problem: a line of fewer fields, or whose ids are no numbers. glibc's fgetpwent() drops such a
/// line without a word.
std::vector<Account> parse_passwd(std::string_view text, Problems& problems);

/// Parses /etc/group. Shape: NAME:PASSWORD:GID:MEMBER,MEMBER. Problem: likewise.
std::vector<AccountGroup> parse_group(std::string_view text, Problems& problems);

}  // namespace apu
