#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "collectors/service_users/accounts.h"
#include "collectors/service_users/search_rights.h"
#include "collectors/units/unit_facts.h"
#include "exporter/collector.h"

namespace apu {

/// What the user of a seat's unit can do after a boot. Absent is not known.
struct ServiceUser {
  std::string name;  ///< empty where it has no account here
  std::string home;
  std::optional<bool> home_traversable;
  std::string home_why;         ///< which directory is closed, or why it is not known
  std::optional<bool> lingers;  ///< of a user's unit: its manager starts with the host
};

/// The facts of a pass.
struct ServiceUsersFacts {
  std::map<std::string, ServiceUser> seats;  ///< by name; those that are units
};

/// As whom a unit runs: its user's ids, with what Group= and SupplementaryGroups= add.
/// Errors: kNotFound for one that has no account, as with DynamicUser=; kUnsupported where the
/// manager did not tell the user.
Result<Account> account_of(const UnitFacts& unit, const Accounts& accounts);
Identity identity_of(const UnitFacts& unit, const Account& user, const Accounts& accounts);

Families to_families(const ServiceUsersFacts& facts);

std::span<const MetricInfo> service_users_metrics();

/// Whether the users of the seats' units reach their homes, and have a manager after a boot.
/// Source "accounts": /etc/passwd and /etc/group. Homes can stand on a server that hangs.
std::unique_ptr<Collector> make_service_users_collector(const CollectorContext& context);

}  // namespace apu
