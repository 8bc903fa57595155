#include "collectors/units/bus_connection.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

namespace apu {
namespace {

using std::chrono::microseconds;
using std::chrono::steady_clock;

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

int take_answer(sd_bus_message* message, void* call, sd_bus_error* /*error*/) {
  static_cast<BusCall*>(call)->answer.reset(sd_bus_message_ref(message));
  return 1;
}

}  // namespace

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

Status error_in(sd_bus_message* message, std::string_view what) {
  const sd_bus_error* error = sd_bus_message_get_error(message);
  if (error == nullptr) {
    return std::nullopt;
  }
  const std::string_view name = error->name != nullptr ? error->name : "";
  return Error{kind_of(name),
               fmt::format("{}: {}", what, error->message != nullptr ? error->message : name)};
}

bool is_missing(sd_bus_message* message) {
  constexpr std::array<const char*, 5> kNames{
      "org.freedesktop.DBus.Error.UnknownProperty", "org.freedesktop.DBus.Error.UnknownInterface",
      "org.freedesktop.DBus.Error.UnknownObject", "org.freedesktop.DBus.Error.InvalidArgs",
      "org.freedesktop.systemd1.NoSuchUnit"};
  return std::any_of(kNames.begin(), kNames.end(), [&](const char* name) {
    return sd_bus_message_is_method_error(message, name) > 0;
  });
}

Status BusConnection::work_once(Deadline deadline, std::string_view what) {
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
  return waited < 0 && waited != -EINTR ? Status(bus_error(waited, what)) : std::nullopt;
}

Status BusConnection::wait_ready(Deadline deadline, std::string_view what) {
  return work_until([this] { return sd_bus_is_ready(bus_.get()) > 0; }, deadline, what);
}

Result<MessagePtr> BusConnection::new_call(const char* service, const char* path,
                                           const char* interface, const char* member) {
  sd_bus_message* message = nullptr;
  int made = sd_bus_message_new_method_call(bus_.get(), &message, service, path, interface, member);
  MessagePtr call(message);
  if (made >= 0) {
    made = sd_bus_message_set_auto_start(message, 0);
  }
  if (made < 0) {
    return bus_error(made, member);
  }
  return call;
}

Status BusConnection::send(sd_bus_message* message, BusCall& call, std::string_view what) {
  sd_bus_slot* slot = nullptr;
  const int sent = sd_bus_call_async(bus_.get(), &slot, message, take_answer, &call, 0);
  call.slot.reset(slot);
  return sent < 0 ? Status(bus_error(sent, what)) : std::nullopt;
}

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

}  // namespace apu
