#include "collectors/service_users/service_users.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "collectors/report.h"
#include "collectors/units/units.h"
#include "exporter/file_root.h"
#include "exporter/store.h"

namespace apu {
namespace {

using prometheus::MetricType;

constexpr MetricInfo kTraversable{
    "apu_seat_home_traversable", MetricType::Gauge, "seat",
    "1 if the user of the seat's unit may search all directories to its home, by mode bits, groups "
    "and ACLs, else 0; absent where the exporter sees other directories than the host "
    "(/etc/passwd, /etc/group)"};
constexpr MetricInfo kLingers{
    "apu_seat_user_lingers", MetricType::Gauge, "seat",
    "1 if the user of a user's unit lingers, so that its manager starts with the host, else 0 "
    "(/var/lib/systemd/linger)"};
constexpr std::array kMetrics{kTraversable, kLingers};

/// How Debian and others say that an account has no home.
bool has_no_home(const std::string& home) {
  return home.empty() || home == "/" || home == "/nonexistent" || home == "/dev/null";
}

class ServiceUsersCollector : public Collector {
 public:
  explicit ServiceUsersCollector(const CollectorContext& context)
      : store_(context.store),
        rootfs_(context.roots.rootfs),
        procfs_(context.roots.procfs),
        live_(!context.roots.fixture),
        sources_(context.sources) {}

  Result<Snapshot> collect() override {
    const auto units = fresh_facts<UnitsFacts>(*store_, "units");
    if (!units) {
      return Snapshot{ServiceUsersFacts(), {}};
    }
    const auto accounts = read_accounts();
    if (!sources_.note("accounts", accounts)) {
      return accounts.error();
    }
    ServiceUsersFacts facts;
    for (const SeatUnit& unit : units->units) {
      facts.seats[unit.seat] = look_at(unit.facts, *accounts);
    }
    Families families = to_families(facts);
    return Snapshot{std::move(facts), std::move(families)};
  }

 private:
  [[nodiscard]] Result<Accounts> read_accounts() const {
    const auto passwd = rootfs_.read("etc/passwd");
    if (!passwd) {
      return passwd.error();
    }
    const auto group = rootfs_.read("etc/group");
    if (!group) {
      return group.error();
    }
    Accounts accounts;
    Problems problems;
    accounts.users = parse_passwd(*passwd, problems);
    report_problems(sources_, "accounts", "etc/passwd", std::exchange(problems, {}));
    accounts.groups = parse_group(*group, problems);
    report_problems(sources_, "accounts", "etc/group", problems);
    return accounts;
  }

  [[nodiscard]] ServiceUser look_at(const UnitFacts& unit, const Accounts& accounts) const {
    ServiceUser result;
    const auto account = account_of(unit, accounts);
    if (!account) {
      result.home_why = account.error().message;
      return result;
    }
    result.name = account->name;
    result.home = account->home;
    judge_home(identity_of(unit, *account, accounts), result);
    if (!unit.user.empty()) {
      result.lingers = lingers(account->name);
    }
    return result;
  }

  void judge_home(const Identity& who, ServiceUser& result) const {
    if (has_no_home(result.home)) {
      result.home_traversable = true;
      result.home_why = "the account has no home";
      return;
    }
    if (!sees_the_hosts_directories()) {
      result.home_why =
          "the exporter has a mount namespace of its own, and may see other "
          "directories than the host";
      return;
    }
    const auto closed = first_closed(rootfs_.path_of(""), real_path(result.home), who);
    if (closed) {
      result.home_traversable = !closed->has_value();
      result.home_why = *closed
                            ? fmt::format("{} may not search {}", result.name, (*closed)->string())
                            : fmt::format("{} reaches {}", result.name, result.home);
    } else if (closed.error().kind == ErrorKind::kNotFound) {
      result.home_traversable = false;
      result.home_why = closed.error().message;
    } else {
      result.home_why = closed.error().message;
    }
  }

  /// A sandbox shows an empty directory in place of /home (ProtectHome=).
  [[nodiscard]] bool sees_the_hosts_directories() const {
    if (!live_) {
      return true;
    }
    const auto own = procfs_.link_name("self/ns/mnt");
    const auto hosts = procfs_.link_name("1/ns/mnt");
    return own && hosts && *own == *hosts;
  }

  /// Where a home's links lead; in a recording they would lead out of it.
  [[nodiscard]] std::filesystem::path real_path(const std::string& home) const {
    std::error_code error;
    auto path = live_ ? std::filesystem::canonical(home, error) : std::filesystem::path(home);
    return error ? std::filesystem::path(home) : path;
  }

  [[nodiscard]] std::optional<bool> lingers(const std::string& user) const {
    const bool there = rootfs_.exists("var/lib/systemd/linger/" + user);
    return there || rootfs_.exists("var/lib/systemd") ? std::optional(there) : std::nullopt;
  }

  std::shared_ptr<const Store> store_;
  FileRoot rootfs_;
  FileRoot procfs_;
  bool live_;
  SourceReporter sources_;
};

}  // namespace

Result<Account> account_of(const UnitFacts& unit, const Accounts& accounts) {
  if (unit.user.empty() && !unit.run_as) {
    return Error{ErrorKind::kUnsupported, "the service manager does not say as whom it runs"};
  }
  std::string name = unit.user.empty() ? *unit.run_as : unit.user;
  if (name.empty()) {
    name = "root";
  }
  if (const Account* user = accounts.find_user(name)) {
    return *user;
  }
  return Error{ErrorKind::kNotFound, fmt::format("{} is not in /etc/passwd", name)};
}

Identity identity_of(const UnitFacts& unit, const Account& user, const Accounts& accounts) {
  Identity who{user.uid, accounts.groups_of(user)};
  std::vector<std::string> more = unit.supplementary_groups.value_or(std::vector<std::string>());
  more.push_back(unit.group.value_or(""));
  for (const std::string& group : more) {
    if (const auto gid = accounts.find_gid(group)) {
      who.gids.insert(*gid);
    }
  }
  return who;
}

Families to_families(const ServiceUsersFacts& facts) {
  MetricWriter metrics;
  for (const auto& [seat, user] : facts.seats) {
    metrics.set(kTraversable, {seat}, user.home_traversable);
    metrics.set(kLingers, {seat}, user.lingers);
  }
  return metrics.take();
}

std::span<const MetricInfo> service_users_metrics() {
  return kMetrics;
}

std::unique_ptr<Collector> make_service_users_collector(const CollectorContext& context) {
  return std::make_unique<ServiceUsersCollector>(context);
}

}  // namespace apu
