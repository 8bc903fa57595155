#include "collectors/units/bus_manager.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-bus.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include "collectors/units/unit_facts.h"
#include "exporter/descriptor.h"
#include "exporter/file_root.h"
#include "exporter/text.h"

namespace apu {
namespace {

using std::chrono::microseconds;
using std::chrono::steady_clock;

constexpr const char* kService = "org.freedesktop.systemd1";
constexpr const char* kManagerPath = "/org/freedesktop/systemd1";
constexpr const char* kManagerInterface = "org.freedesktop.systemd1.Manager";
constexpr const char* kUnitInterface = "org.freedesktop.systemd1.Unit";
constexpr const char* kPropertiesInterface = "org.freedesktop.DBus.Properties";
constexpr const char* kSystemBus = "unix:path=/run/dbus/system_bus_socket";

struct BusDeleter {
  // Not the variant that flushes, which waits for the peer.
  void operator()(sd_bus* bus) const { sd_bus_close_unref(bus); }
};

struct SlotDeleter {
  void operator()(sd_bus_slot* slot) const { sd_bus_slot_unref(slot); }
};

struct MessageDeleter {
  void operator()(sd_bus_message* message) const { sd_bus_message_unref(message); }
};

using BusPtr = std::unique_ptr<sd_bus, BusDeleter>;
using SlotPtr = std::unique_ptr<sd_bus_slot, SlotDeleter>;
using MessagePtr = std::unique_ptr<sd_bus_message, MessageDeleter>;

/// For what sd-bus or a socket returned: a negative errno.
Error bus_error(int result, std::string_view what) {
  Error error = error_from_errno(-result, what);
  switch (-result) {
    case EAGAIN:  // connect(2): the queue of those who wait to be accepted is full
    case ETIMEDOUT:
      error.kind = ErrorKind::kBlocked;
      break;
    case ECONNREFUSED:  // a socket that nobody listens on
      error.kind = ErrorKind::kNotFound;
      break;
    default:
      break;
  }
  return error;
}

ErrorKind kind_of(std::string_view name) {
  struct Row {
    std::string_view name;
    ErrorKind kind;
  };

  constexpr std::array kRows{
      Row{"org.freedesktop.DBus.Error.AccessDenied", ErrorKind::kPermissionDenied},
      Row{"org.freedesktop.DBus.Error.NameHasNoOwner", ErrorKind::kNotFound},
      Row{"org.freedesktop.DBus.Error.ServiceUnknown", ErrorKind::kNotFound},
      Row{"org.freedesktop.DBus.Error.UnknownMethod", ErrorKind::kUnsupported},
      Row{"org.freedesktop.DBus.Error.UnknownInterface", ErrorKind::kUnsupported},
      Row{"org.freedesktop.DBus.Error.Timeout", ErrorKind::kBlocked},
      Row{"org.freedesktop.DBus.Error.NoReply", ErrorKind::kBlocked},
  };
  const auto* row =
      std::find_if(kRows.begin(), kRows.end(), [&](const Row& each) { return each.name == name; });
  return row == kRows.end() ? ErrorKind::kUnknown : row->kind;
}

/// The error that a message carries, if it is one.
Status error_in(sd_bus_message* message, std::string_view what) {
  const sd_bus_error* error = sd_bus_message_get_error(message);
  if (error == nullptr) {
    return std::nullopt;
  }
  const std::string_view name = error->name != nullptr ? error->name : "";
  return Error{kind_of(name),
               fmt::format("{}: {}", what, error->message != nullptr ? error->message : name)};
}

/// Whether an answer says that the unit, or this version, has no such property.
bool is_missing(sd_bus_message* message) {
  constexpr std::array<const char*, 5> kNames{
      "org.freedesktop.DBus.Error.UnknownProperty", "org.freedesktop.DBus.Error.UnknownInterface",
      "org.freedesktop.DBus.Error.UnknownObject", "org.freedesktop.DBus.Error.InvalidArgs",
      "org.freedesktop.systemd1.NoSuchUnit"};
  return std::any_of(kNames.begin(), kNames.end(), [&](const char* name) {
    return sd_bus_message_is_method_error(message, name) > 0;
  });
}

// --- values

Error malformed(std::string_view what) {
  return {ErrorKind::kMalformed, fmt::format("{}: the answer is of another type", what)};
}

std::optional<std::vector<std::string>> read_texts(sd_bus_message* message) {
  std::vector<std::string> texts;
  if (sd_bus_message_enter_container(message, SD_BUS_TYPE_ARRAY, "s") < 0) {
    return std::nullopt;
  }
  const char* text = nullptr;
  while (sd_bus_message_read_basic(message, SD_BUS_TYPE_STRING, static_cast<void*>(&text)) > 0) {
    texts.emplace_back(text);
  }
  return texts;
}

/// The basic value of type `type` that comes next, of which `T` is what sd-bus makes.
template <typename T>
PropertyValue read_unsigned(sd_bus_message* message, char type) {
  T value{};
  return sd_bus_message_read_basic(message, type, &value) > 0
             ? PropertyValue(static_cast<std::uint64_t>(value))
             : PropertyValue();
}

PropertyValue read_bool(sd_bus_message* message) {
  int value = 0;
  return sd_bus_message_read_basic(message, SD_BUS_TYPE_BOOLEAN, &value) > 0
             ? PropertyValue(value != 0)
             : PropertyValue();
}

PropertyValue read_text(sd_bus_message* message) {
  const char* text = nullptr;
  return sd_bus_message_read_basic(message, SD_BUS_TYPE_STRING, static_cast<void*>(&text)) > 0
             ? PropertyValue(std::string(text))
             : PropertyValue();
}

/// The answer to Properties.Get.
PropertyValue read_value(sd_bus_message* message) {
  char type = 0;
  const char* contents = nullptr;
  if (sd_bus_message_peek_type(message, &type, &contents) <= 0 || type != SD_BUS_TYPE_VARIANT ||
      sd_bus_message_enter_container(message, SD_BUS_TYPE_VARIANT, contents) < 0) {
    return {};
  }
  const std::string_view signature = contents;
  if (signature == "s") {
    return read_text(message);
  }
  if (signature == "b") {
    return read_bool(message);
  }
  if (signature == "u") {
    return read_unsigned<std::uint32_t>(message, SD_BUS_TYPE_UINT32);
  }
  if (signature == "t") {
    return read_unsigned<std::uint64_t>(message, SD_BUS_TYPE_UINT64);
  }
  if (signature == "as") {
    auto texts = read_texts(message);
    return texts ? PropertyValue(*std::move(texts)) : PropertyValue();
  }
  return {};
}

/// Reads an array of structures of texts and the like: `read_one` returns as sd_bus_message_read.
template <typename Entry, typename ReadOne>
Result<std::vector<Entry>> read_array(sd_bus_message* message, const char* structure,
                                      std::string_view what, ReadOne read_one) {
  std::vector<Entry> entries;
  if (sd_bus_message_enter_container(message, SD_BUS_TYPE_ARRAY, structure) < 0) {
    return malformed(what);
  }
  Entry entry;
  int read = 0;
  while ((read = read_one(entry)) > 0) {
    entries.push_back(entry);
  }
  if (read < 0) {
    return malformed(what);
  }
  return entries;
}

int read_loaded_unit(sd_bus_message* message, LoadedUnit& unit) {
  const char* id = nullptr;
  const char* load = nullptr;
  const char* active = nullptr;
  const char* sub = nullptr;
  const char* path = nullptr;
  const int read = sd_bus_message_read(message, "(ssssssouso)", &id, nullptr, &load, &active, &sub,
                                       nullptr, &path, nullptr, nullptr, nullptr);
  if (read > 0) {
    unit = {id, load, active, sub, path};
  }
  return read;
}

int read_unit_file(sd_bus_message* message, UnitFile& file) {
  const char* path = nullptr;
  const char* state = nullptr;
  const int read = sd_bus_message_read(message, "(ss)", &path, &state);
  if (read > 0) {
    file = {path, state};
  }
  return read;
}

/// The interface that has what a unit of this kind has beyond the common.
const char* interface_of(std::string_view unit) {
  return unit.ends_with(".scope") ? "org.freedesktop.systemd1.Scope"
                                  : "org.freedesktop.systemd1.Service";
}

// --- the connection

/// A call that was sent, and its answer once it came.
struct Call {
  SlotPtr slot;
  MessagePtr answer;
};

int take_answer(sd_bus_message* message, void* call, sd_bus_error* /*error*/) {
  static_cast<Call*>(call)->answer.reset(sd_bus_message_ref(message));
  return 1;
}

/// A connection that never waits past a deadline.
class Connection {
 public:
  explicit Connection(BusPtr bus) : bus_(std::move(bus)) {}

  [[nodiscard]] sd_bus* get() const { return bus_.get(); }

  /// Works until `done()`. A peer that never stops talking does not make it late.
  template <typename Done>
  Status work_until(Done done, Deadline deadline, std::string_view what) {
    while (!done()) {
      const int worked = sd_bus_process(bus_.get(), nullptr);
      if (worked < 0) {
        return bus_error(worked, what);
      }
      const auto left = std::chrono::duration_cast<microseconds>(deadline - steady_clock::now());
      if (left.count() <= 0) {
        return Error{ErrorKind::kBlocked, fmt::format("{}: no answer in time", what)};
      }
      const int waited =
          worked > 0 ? 0 : sd_bus_wait(bus_.get(), static_cast<std::uint64_t>(left.count()));
      if (waited < 0 && waited != -EINTR) {
        return bus_error(waited, what);
      }
    }
    return std::nullopt;
  }

  /// Authentication, and on a bus the name.
  Status wait_ready(Deadline deadline, std::string_view what) {
    return work_until([this] { return sd_bus_is_ready(bus_.get()) > 0; }, deadline, what);
  }

  Result<MessagePtr> new_call(const char* path, const char* interface, const char* member) {
    sd_bus_message* message = nullptr;
    int made =
        sd_bus_message_new_method_call(bus_.get(), &message, kService, path, interface, member);
    MessagePtr call(message);
    if (made >= 0) {
      made = sd_bus_message_set_auto_start(message, 0);
    }
    if (made < 0) {
      return bus_error(made, member);
    }
    return call;
  }

  /// Sends a call; `call` must stay where it is until it has its answer, or is gone.
  Status send(sd_bus_message* message, Call& call, std::string_view what) {
    sd_bus_slot* slot = nullptr;
    const int sent = sd_bus_call_async(bus_.get(), &slot, message, take_answer, &call, 0);
    call.slot.reset(slot);
    return sent < 0 ? Status(bus_error(sent, what)) : std::nullopt;
  }

 private:
  BusPtr bus_;
};

/// A manager at the other end of a connection.
class BusManager : public ServiceManager {
 public:
  explicit BusManager(Connection connection) : connection_(std::move(connection)) {}

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
    return read_array<LoadedUnit>(answer->get(), "(ssssssouso)", kMember, [&](LoadedUnit& unit) {
      return read_loaded_unit(answer->get(), unit);
    });
  }

  Result<std::vector<UnitFile>> list_unit_files(const std::vector<std::string>& patterns,
                                                Deadline deadline) override {
    constexpr const char* kMember = "ListUnitFilesByPatterns";
    const auto answer = list(kMember, patterns, deadline);
    if (!answer) {
      return answer.error();
    }
    return read_array<UnitFile>(answer->get(), "(ss)", kMember, [&](UnitFile& file) {
      return read_unit_file(answer->get(), file);
    });
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
    std::vector<Call> calls(wanted.size());
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
  Status ask(const LoadedUnit& unit, const char* interface, std::string_view property, Call& call) {
    auto message = connection_.new_call(unit.path.c_str(), kPropertiesInterface, "Get");
    if (!message) {
      return message.error();
    }
    const int appended =
        sd_bus_message_append((*message).get(), "ss", interface, std::string(property).c_str());
    return appended < 0 ? Status(bus_error(appended, unit.id))
                        : connection_.send((*message).get(), call, unit.id);
  }

  Status wait_answers(const std::vector<Call>& calls, Deadline deadline, std::string_view what) {
    const auto answered = [&] {
      return std::all_of(calls.begin(), calls.end(),
                         [](const Call& call) { return call.answer != nullptr; });
    };
    return connection_.work_until(answered, deadline, what);
  }

  Result<MessagePtr> list(const char* member, const std::vector<std::string>& patterns,
                          Deadline deadline) {
    auto message = connection_.new_call(kManagerPath, kManagerInterface, member);
    if (!message) {
      return message;
    }
    if (const int appended = append_patterns((*message).get(), patterns); appended < 0) {
      return bus_error(appended, member);
    }
    std::vector<Call> calls(1);
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

  Connection connection_;
};

// --- ways to a manager

/// Connects to a socket without waiting, and sees that `user` listens on it.
Result<Descriptor> connect_to(const std::filesystem::path& path, std::uint64_t user) {
  const std::string what = "connect to " + path.string();
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.string().size() >= sizeof address.sun_path) {
    return bus_error(-ENAMETOOLONG, what);
  }
  std::memcpy(static_cast<char*>(address.sun_path), path.c_str(), path.string().size() + 1);
  Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid() ||
      ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return bus_error(-errno, what);
  }
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return bus_error(-errno, what);
  }
  if (peer.uid != user) {
    return Error{ErrorKind::kPermissionDenied, what + ": another user listens there"};
  }
  return socket;
}

/// Sets up a bus object that is not connected yet.
Result<BusPtr> new_bus(bool bus_client, Deadline deadline) {
  sd_bus* raw = nullptr;
  int made = sd_bus_new(&raw);
  BusPtr bus(raw);
  const auto left =
      std::chrono::duration_cast<microseconds>(deadline - steady_clock::now()).count();
  if (made >= 0) {
    made = sd_bus_set_bus_client(raw, bus_client ? 1 : 0);
  }
  if (made >= 0) {
    made = sd_bus_negotiate_fds(raw, 0);
  }
  if (made >= 0) {
    made = sd_bus_set_method_call_timeout(raw, static_cast<std::uint64_t>(std::max(left, 1L)));
  }
  if (made < 0) {
    return bus_error(made, "D-Bus");
  }
  return bus;
}

Result<std::unique_ptr<ServiceManager>> start(BusPtr bus, Deadline deadline,
                                              std::string_view what) {
  if (const int started = sd_bus_start(bus.get()); started < 0) {
    return bus_error(started, what);
  }
  Connection connection(std::move(bus));
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
