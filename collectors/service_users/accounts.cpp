#include "collectors/service_users/accounts.h"

#include <fmt/format.h>

#include <algorithm>

#include "exporter/text.h"

namespace apu {
namespace {

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) {
      return parts;
    }
    text.remove_prefix(end + 1);
  }
}

/// Lines of NIS ("+::::::") are none of the file's own.
bool is_entry(std::string_view line) {
  return !line.empty() && line[0] != '#' && line[0] != '+' && line[0] != '-';
}

/// Parses the lines of a file; `parse` gives nullopt for fields that are none of it.
template <typename Entry, typename Parse>
std::vector<Entry> parse_lines(std::string_view text, const char* what, Problems& problems,
                               Parse parse) {
  std::vector<Entry> entries;
  int number = 0;
  for_each_line(text, [&](std::string_view line) {
    ++number;
    if (!is_entry(line)) {
      return;
    }
    if (std::optional<Entry> entry = parse(split(line, ':'))) {
      entries.push_back(*std::move(entry));
    } else {
      problems.push_back(
          {number, fmt::format("no {}: '{}'", what, line.substr(0, line.find(':')))});
    }
  });
  return entries;
}

}  // namespace

const Account* Accounts::find_user(std::string_view name_or_uid) const {
  const auto uid = parse_number<std::uint32_t>(name_or_uid);
  const auto found = std::find_if(users.begin(), users.end(), [&](const Account& user) {
    return uid ? user.uid == *uid : user.name == name_or_uid;
  });
  return found == users.end() ? nullptr : &*found;
}

std::optional<std::uint32_t> Accounts::find_gid(std::string_view name_or_gid) const {
  if (const auto gid = parse_number<std::uint32_t>(name_or_gid)) {
    return gid;
  }
  const auto found = std::find_if(groups.begin(), groups.end(), [&](const AccountGroup& group) {
    return group.name == name_or_gid;
  });
  return found == groups.end() ? std::nullopt : std::optional(found->gid);
}

std::set<std::uint32_t> Accounts::groups_of(const Account& user) const {
  std::set<std::uint32_t> gids{user.gid};
  for (const AccountGroup& group : groups) {
    if (group.members.contains(user.name)) {
      gids.insert(group.gid);
    }
  }
  return gids;
}

std::vector<Account> parse_passwd(std::string_view text, Problems& problems) {
  return parse_lines<Account>(
      text, "account", problems,
      [](const std::vector<std::string_view>& fields) -> std::optional<Account> {
        constexpr size_t kFields = 7;
        if (fields.size() < kFields || fields[0].empty()) {
          return std::nullopt;
        }
        const auto uid = parse_number<std::uint32_t>(fields[2]);
        const auto gid = parse_number<std::uint32_t>(fields[3]);
        if (!uid || !gid) {
          return std::nullopt;
        }
        return Account{std::string(fields[0]), *uid, *gid, std::string(fields[5])};
      });
}

std::vector<AccountGroup> parse_group(std::string_view text, Problems& problems) {
  return parse_lines<AccountGroup>(
      text, "group", problems,
      [](const std::vector<std::string_view>& fields) -> std::optional<AccountGroup> {
        constexpr size_t kFields = 4;
        const auto gid =
            fields.size() < kFields ? std::nullopt : parse_number<std::uint32_t>(fields[2]);
        if (!gid || fields[0].empty()) {
          return std::nullopt;
        }
        AccountGroup group{std::string(fields[0]), *gid, {}};
        for (const std::string_view member : split(fields[3], ',')) {
          group.members.emplace(member);
        }
        return group;
      });
}

}  // namespace apu
