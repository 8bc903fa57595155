#include "collectors/units/bus_manager.h"

#include <fmt/format.h>
#include <systemd/sd-bus.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "collectors/units/bus_connection.h"
#include "collectors/units/bus_values.h"
#include "collectors/units/unit_facts.h"
#include "exporter/file_root.h"
#include "exporter/text.h"

namespace apu {
namespace {

constexpr const char* kService = "org.freedesktop.systemd1";
constexpr const char* kManagerPath = "/org/freedesktop/systemd1";
constexpr const char* kManagerInterface = "org.freedesktop.systemd1.Manager";
constexpr const char* kUnitInterface = "org.freedesktop.systemd1.Unit";
constexpr const char* kPropertiesInterface = "org.freedesktop.DBus.Properties";
constexpr const char* kSystemBus = "unix:path=/run/dbus/system_bus_socket";

/// The interface that has what a unit of this kind has beyond the common.
const char* interface_of(std::string_view unit) {
  return unit.ends_with(".scope") ? "org.freedesktop.systemd1.Scope"
                                  : "org.freedesktop.systemd1.Service";
}

/// A manager at the other end of a connection.
class BusManager : public ServiceManager {
 public:
  explicit BusManager(BusConnection connection) : connection_(std::move(connection)) {}

  bool alive() override {
    constexpr int kEnough = 1000;  // of messages that nobody asked for
    int worked = 1;
    for (int i = 0; worked > 0 && i < kEnough; ++i) {
      worked = sd_bus_process(connection_.get(), nullptr);
    }
    return worked == 0 && sd_bus_is_ready(connection_.get()) > 0;
  }

  Result<std::vector<LoadedUnit>> list_units(const std::vector<std::string>& patterns,
                                             Deadline deadline) override {
    constexpr const char* kMember = "ListUnitsByPatterns";
    const auto answer = list(kMember, patterns, deadline);
    if (!answer) {
      return answer.error();
    }
    return read_loaded_units(answer->get(), kMember);
  }

  Result<std::vector<UnitFile>> list_unit_files(const std::vector<std::string>& patterns,
                                                Deadline deadline) override {
    constexpr const char* kMember = "ListUnitFilesByPatterns";
    const auto answer = list(kMember, patterns, deadline);
    if (!answer) {
      return answer.error();
    }
    return read_unit_files(answer->get(), kMember);
  }

  // One by one: GetAll would bring Environment=, which holds keys, and have the manager read files
  // of cgroups. All are sent before the first answer is waited for.
  Result<Properties> properties(const LoadedUnit& unit, Deadline deadline) override {
    std::vector<std::pair<const char*, std::string_view>> wanted;
    for (const std::string_view name : unit_properties()) {
      wanted.emplace_back(kUnitInterface, name);
    }
    for (const std::string_view name : service_properties()) {
      wanted.emplace_back(interface_of(unit.id), name);
    }
    std::vector<BusCall> calls(wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (Status error = ask(unit, wanted[i].first, wanted[i].second, calls[i])) {
        return *error;
      }
    }
    if (Status error = wait_answers(calls, deadline, unit.id)) {
      return *error;
    }
    Properties properties;
    for (size_t i = 0; i < wanted.size(); ++i) {
      sd_bus_message* answer = calls[i].answer.get();
      if (is_missing(answer)) {
        continue;
      }
      if (Status error = error_in(answer, unit.id)) {
        return *error;
      }
      properties.emplace(wanted[i].second, read_value(answer));
    }
    return properties;
  }

 private:
  /// The object of a unit that was unloaded since it was listed would load it; it is unloaded
  /// again.
  Status ask(const LoadedUnit& unit, const char* interface, std::string_view property,
             BusCall& call) {
    auto message = connection_.new_call(kService, unit.path.c_str(), kPropertiesInterface, "Get");
    if (!message) {
      return message.error();
    }
    const int appended =
        sd_bus_message_append((*message).get(), "ss", interface, std::string(property).c_str());
    return appended < 0 ? Status(bus_error(appended, unit.id))
                        : connection_.send((*message).get(), call, unit.id);
  }

  Status wait_answers(const std::vector<BusCall>& calls, Deadline deadline, std::string_view what) {
    const auto answered = [&] {
      return std::all_of(calls.begin(), calls.end(),
                         [](const BusCall& call) { return call.answer != nullptr; });
    };
    return connection_.work_until(answered, deadline, what);
  }

  Result<MessagePtr> list(const char* member, const std::vector<std::string>& patterns,
                          Deadline deadline) {
    auto message = connection_.new_call(kService, kManagerPath, kManagerInterface, member);
    if (!message) {
      return message;
    }
    if (const int appended = append_patterns((*message).get(), patterns); appended < 0) {
      return bus_error(appended, member);
    }
    std::vector<BusCall> calls(1);
    if (Status error = connection_.send((*message).get(), calls[0], member)) {
      return *error;
    }
    if (Status error = wait_answers(calls, deadline, member)) {
      return *error;
    }
    if (Status error = error_in(calls[0].answer.get(), member)) {
      return *error;
    }
    return std::move(calls[0].answer);
  }

  /// States, of which none means all, and patterns.
  static int append_patterns(sd_bus_message* message, const std::vector<std::string>& patterns) {
    int appended = sd_bus_message_append(message, "as", 0);
    if (appended >= 0) {
      appended = sd_bus_message_open_container(message, SD_BUS_TYPE_ARRAY, "s");
    }
    for (const std::string& pattern : patterns) {
      if (appended >= 0) {
        appended = sd_bus_message_append_basic(message, SD_BUS_TYPE_STRING, pattern.c_str());
      }
    }
    return appended < 0 ? appended : sd_bus_message_close_container(message);
  }

  BusConnection connection_;
};

// --- ways to a manager

Result<std::unique_ptr<ServiceManager>> start(BusPtr bus, Deadline deadline,
                                              std::string_view what) {
  if (const int started = sd_bus_start(bus.get()); started < 0) {
    return bus_error(started, what);
  }
  BusConnection connection(std::move(bus));
  if (Status error = connection.wait_ready(deadline, what)) {
    return *error;
  }
  return std::unique_ptr<ServiceManager>(std::make_unique<BusManager>(std::move(connection)));
}

class BusManagers : public ServiceManagers {
 public:
  explicit BusManagers(std::filesystem::path runtime_directories)
      : runtime_(std::move(runtime_directories)) {}

  [[nodiscard]] std::vector<std::string> users() const override {
    std::vector<std::string> users;
    const auto names = runtime_.list(".");
    for (const std::string& name : names ? *names : std::vector<std::string>()) {
      if (parse_number<std::uint32_t>(name)) {
        users.push_back(name);
      }
    }
    return users;
  }

  Result<std::unique_ptr<ServiceManager>> connect(const std::string& user,
                                                  Deadline deadline) override {
    if (user.empty()) {
      return connect_to_system(deadline);
    }
    auto manager = connect_to_user(user, "systemd/private", false, deadline);
    if (manager || manager.error().kind == ErrorKind::kBlocked) {
      return manager;
    }
    auto by_bus = connect_to_user(user, "bus", true, deadline);
    return by_bus ? std::move(by_bus) : std::move(manager);
  }

 private:
  static Result<std::unique_ptr<ServiceManager>> connect_to_system(Deadline deadline) {
    const char* given = ::secure_getenv("DBUS_SYSTEM_BUS_ADDRESS");
    const char* address = given != nullptr ? given : kSystemBus;
    auto bus = new_bus(true, deadline);
    if (!bus) {
      return bus.error();
    }
    const std::string what = fmt::format("system bus {}", address);
    if (const int set = sd_bus_set_address((*bus).get(), address); set < 0) {
      return bus_error(set, what);
    }
    return start(*std::move(bus), deadline, what);
  }

  [[nodiscard]] Result<std::unique_ptr<ServiceManager>> connect_to_user(const std::string& user,
                                                                        const char* name,
                                                                        bool bus_client,
                                                                        Deadline deadline) const {
    const auto uid = parse_number<std::uint32_t>(user);
    if (!uid) {
      return Error{ErrorKind::kNotFound, fmt::format("'{}' is no user's id", user)};
    }
    const auto path = runtime_.path_of(user) / name;
    auto socket = connect_to(path, *uid);
    if (!socket) {
      return socket.error();
    }
    auto bus = new_bus(bus_client, deadline);
    if (!bus) {
      return bus.error();
    }
    const int fd = (*socket).get();
    if (const int set = sd_bus_set_fd((*bus).get(), fd, fd); set < 0) {
      return bus_error(set, path.string());
    }
    (*socket).release();  // the bus has it
    return start(*std::move(bus), deadline, path.string());
  }

  FileRoot runtime_;
};

}  // namespace

std::unique_ptr<ServiceManagers> make_bus_managers(std::filesystem::path runtime_directories) {
  return std::make_unique<BusManagers>(std::move(runtime_directories));
}

}  // namespace apu
