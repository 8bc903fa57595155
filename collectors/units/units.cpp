#include "collectors/units/units.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "collectors/cgroup/cgroup.h"
#include "collectors/units/bus_manager.h"
#include "exporter/file_root.h"
#include "exporter/store.h"

namespace apu {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr const char* kSource = "dbus";
constexpr const char* kUserSource = "dbus_user";

/// A manager, and what is kept of it from pass to pass.
struct KnownManager {
  std::unique_ptr<ServiceManager> connection;  ///< null: to be made
  std::vector<UnitFile> files;
  unsigned passes_with_files = 0;
  bool was_blocked = false;
};

class UnitsCollector : public Collector {
 public:
  UnitsCollector(const CollectorContext& context, std::unique_ptr<ServiceManagers> managers)
      : procfs_(context.roots.procfs),
        store_(context.store),
        sources_(context.sources),
        rules_(rules_of(context.seats)),
        managers_(std::move(managers)) {
    for (const std::string& pattern : rules_.patterns) {
      patterns_.push_back(manager_pattern(pattern));
    }
  }

  Result<Snapshot> collect() override {
    if (!managers_) {
      const Error error{ErrorKind::kUnsupported, "D-Bus is not that of the host at --path.rootfs"};
      sources_.note(kSource, Status(error));
      return error;
    }
    // The older of the two is asked for first, so that the time is never later than the facts.
    const auto taken = store_->newest("cgroup").taken;
    const auto cgroup = fresh_facts<CgroupFacts>(*store_, "cgroup");
    pass_ends_ = steady_clock::now() + kPassTime;
    user_problem_.reset();
    return take_pass({cgroup.get(), taken});
  }

 private:
  static constexpr milliseconds kPassTime{8000};
  // The system's manager may be slow where memory is short; a user's shall not cost the others.
  static constexpr milliseconds kSystemTime{4000};
  static constexpr milliseconds kUserTime{1500};
  static constexpr size_t kMaxUsers = 32;
  // To list files the manager reads directories.
  static constexpr unsigned kPassesPerFileList = 10;

  Result<Snapshot> take_pass(const CgroupInput& cgroup) {
    const SeatIndex* index = cgroup.facts != nullptr ? cgroup.facts->index.get() : nullptr;
    std::vector<ManagerListing> listings;
    if (Status error = list("", index, listings)) {
      sources_.note(kSource, error);
      return *error;
    }
    const std::set<std::string> with_seats = users_of(index);
    for (const std::string& user : users_to_ask(with_seats)) {
      Status error = list(user, index, listings);
      note_user(error, with_seats.contains(user));
    }
    Choice choice = choose_units(std::move(listings), index, rules_, own_place());
    std::vector<UnitFacts> facts;
    if (Status error = read(choice.units, facts)) {
      sources_.note(kSource, error);
      return *error;
    }
    sources_.note(kSource, Status());
    report_users(!with_seats.empty());
    UnitsFacts found{derive(choice.units, std::move(facts), cgroup), choice.omitted};
    Families families = to_families(found);
    return Snapshot{std::move(found), std::move(families)};
  }

  // --- which managers

  static std::set<std::string> users_of(const SeatIndex* index) {
    std::set<std::string> users;
    for (const Seat& seat : index != nullptr ? index->seats : std::vector<Seat>()) {
      if (seat.place.kind == SeatKind::kUserUnit) {
        users.insert(seat.place.user);
      }
    }
    return users;
  }

  /// Those who have seats first, and last those who did not answer in the pass before.
  std::vector<std::string> users_to_ask(const std::set<std::string>& with_seats) {
    std::vector<std::string> users(with_seats.begin(), with_seats.end());
    for (std::string& user : managers_->users()) {
      if (!with_seats.contains(user)) {
        users.push_back(std::move(user));
      }
    }
    std::stable_partition(users.begin(), users.end(),
                          [&](const std::string& user) { return !known_[user].was_blocked; });
    users.resize(std::min(users.size(), kMaxUsers));
    std::erase_if(known_, [&](const auto& entry) {
      return !entry.first.empty() &&
             std::find(users.begin(), users.end(), entry.first) == users.end();
    });
    return users;
  }

  /// What keeps a user's manager from answering is told only where a seat is missed by it.
  void note_user(const Status& error, bool has_seats) {
    if (error && has_seats && !user_problem_) {
      user_problem_ = error;
    }
  }

  void report_users(bool wanted) {
    users_reported_ = users_reported_ || wanted;
    if (users_reported_) {
      sources_.note(kUserSource, user_problem_);
    }
  }

  // --- what to ask of one

  [[nodiscard]] Deadline deadline_for(const std::string& user) const {
    return std::min(pass_ends_, steady_clock::now() + (user.empty() ? kSystemTime : kUserTime));
  }

  /// Calls `ask(manager, deadline)`, on a new connection if there is none that stands.
  template <typename Ask>
  Status with_manager(const std::string& user, Ask ask) {
    KnownManager& known = known_[user];
    const Deadline deadline = deadline_for(user);
    Status error;
    if (!known.connection || !known.connection->alive()) {
      known.connection.reset();
      auto made = managers_->connect(user, deadline);
      if (made) {
        known.connection = *std::move(made);
      } else {
        error = made.error();
      }
    }
    error = error ? error : ask(known, deadline);
    known.was_blocked = error && error->kind == ErrorKind::kBlocked;
    if (error) {
      known.connection.reset();
    }
    return error;
  }

  Status list(const std::string& user, const SeatIndex* index,
              std::vector<ManagerListing>& listings) {
    std::vector<std::string> names = patterns_;
    for (const Seat& seat : index != nullptr ? index->seats : std::vector<Seat>()) {
      if (auto id = unit_id(seat.place, user)) {
        names.push_back(*std::move(id));
      }
    }
    return with_manager(user, [&](KnownManager& known, Deadline deadline) -> Status {
      auto loaded = known.connection->list_units(names, deadline);
      if (!loaded) {
        return loaded.error();
      }
      if (Status error = list_files(known, deadline)) {
        return error;
      }
      listings.push_back({user, *std::move(loaded), known.files});
      return std::nullopt;
    });
  }

  Status list_files(KnownManager& known, Deadline deadline) {
    if (known.passes_with_files > 0) {
      --known.passes_with_files;
      return std::nullopt;
    }
    auto files = known.connection->list_unit_files(patterns_, deadline);
    if (!files) {
      return files.error();
    }
    known.files = *std::move(files);
    known.passes_with_files = kPassesPerFileList - 1;
    return std::nullopt;
  }

  /// Facts of all units; those of a user whose manager fails are taken out of `units`.
  Status read(std::vector<ChosenUnit>& units, std::vector<UnitFacts>& facts) {
    std::vector<ChosenUnit> kept;
    std::set<std::string> failed;
    for (const ChosenUnit& unit : units) {
      if (failed.contains(unit.user)) {
        continue;
      }
      if (Status error = read_one(unit, facts)) {
        if (unit.user.empty()) {
          return error;
        }
        failed.insert(unit.user);
        note_user(error, true);
        continue;
      }
      kept.push_back(unit);
    }
    units = std::move(kept);
    return std::nullopt;
  }

  Status read_one(const ChosenUnit& unit, std::vector<UnitFacts>& facts) {
    if (!unit.loaded) {
      facts.push_back(facts_of_file(unit));
      return std::nullopt;
    }
    return with_manager(unit.user, [&](KnownManager& known, Deadline deadline) -> Status {
      const auto properties = known.connection->properties(*unit.loaded, deadline);
      if (!properties) {
        return properties.error();
      }
      ParsedUnit parsed = parse_unit(unit.user, *unit.loaded, *properties);
      for (const std::string& problem : parsed.problems) {
        sources_.parse_error(unit.user.empty() ? kSource : kUserSource, problem);
      }
      facts.push_back(std::move(parsed.facts));
      return std::nullopt;
    });
  }

  static UnitFacts facts_of_file(const ChosenUnit& unit) {
    UnitFacts facts;
    facts.id = unit.id;
    facts.user = unit.user;
    facts.active_state = "inactive";
    facts.unit_file_state = unit.unit_file_state;
    facts.fragment_path = unit.fragment_path;
    return facts;
  }

  /// The exporter's own cgroup, which is no seat whatever a pattern says.
  const SeatPlace& own_place() {
    if (!own_place_) {
      const auto text = procfs_.read("self/cgroup");
      const auto path = text ? parse_proc_cgroup(*text) : Result<std::string>(Error{});
      own_place_ = path ? parse_seat_place(*path) : SeatPlace();
    }
    return *own_place_;
  }

  FileRoot procfs_;
  std::shared_ptr<const Store> store_;
  SourceReporter sources_;
  SeatRules rules_;
  std::vector<std::string> patterns_;          // for managers
  std::unique_ptr<ServiceManagers> managers_;  // null where D-Bus is off
  std::map<std::string, KnownManager> known_;  // by user
  std::optional<SeatPlace> own_place_;
  Deadline pass_ends_;
  Status user_problem_;  // of this pass
  bool users_reported_ = false;
};

}  // namespace

std::unique_ptr<Collector> make_units_collector(const CollectorContext& context,
                                                std::unique_ptr<ServiceManagers> managers) {
  return std::make_unique<UnitsCollector>(context, std::move(managers));
}

std::unique_ptr<Collector> make_units_collector(const CollectorContext& context) {
  return make_units_collector(context, context.roots.fixture ? nullptr : make_bus_managers());
}

}  // namespace apu
