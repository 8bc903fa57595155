#pragma once

#include <systemd/sd-bus.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string_view>

#include "collectors/units/manager.h"
#include "exporter/descriptor.h"
#include "exporter/result.h"

namespace apu {

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
Error bus_error(int result, std::string_view what);

/// The error that a message carries, if it is one.
Status error_in(sd_bus_message* message, std::string_view what);

/// Whether an answer says that the unit, or this version, has no such property.
bool is_missing(sd_bus_message* message);

/// A call that was sent, and its answer once it came.
struct BusCall {
  SlotPtr slot;
  MessagePtr answer;
};

/// A connection that never waits past a deadline.
class BusConnection {
 public:
  explicit BusConnection(BusPtr bus) : bus_(std::move(bus)) {}

  [[nodiscard]] sd_bus* get() const { return bus_.get(); }

  /// Works until `done()`. A peer that never stops talking does not make it late.
  template <typename Done>
  Status work_until(Done done, Deadline deadline, std::string_view what) {
    while (!done()) {
      if (Status error = work_once(deadline, what)) {
        return error;
      }
    }
    return std::nullopt;
  }

  /// Authentication, and on a bus the name.
  Status wait_ready(Deadline deadline, std::string_view what);

  /// A call that starts nobody. `service` and the others as of sd_bus_message_new_method_call(3).
  Result<MessagePtr> new_call(const char* service, const char* path, const char* interface,
                              const char* member);

  /// Sends a call; `call` must stay where it is until it has its answer, or is gone.
  Status send(sd_bus_message* message, BusCall& call, std::string_view what);

 private:
  Status work_once(Deadline deadline, std::string_view what);

  BusPtr bus_;
};

/// Connects to a socket without waiting, and sees that `user` listens on it.
Result<Descriptor> connect_to(const std::filesystem::path& path, std::uint64_t user);

/// Sets up a bus object that is not connected yet.
Result<BusPtr> new_bus(bool bus_client, Deadline deadline);

}  // namespace apu
