#pragma once

#include <filesystem>
#include <memory>

#include "collectors/units/manager.h"

namespace apu {

/// The managers behind D-Bus. Nothing is started, loaded or written: calls ask for no activation,
/// and objects are those of units that are in memory.
///
/// The system's: org.freedesktop.systemd1 on the system bus (DBUS_SYSTEM_BUS_ADDRESS, else
/// /run/dbus/system_bus_socket), whose policy lets everybody read. A user's: UID/systemd/private
/// below `runtime_directories`, which takes root and that user alone, else UID/bus. A socket that
/// another user listens on is refused.
std::unique_ptr<ServiceManagers> make_bus_managers(
    std::filesystem::path runtime_directories = "/run/user");

}  // namespace apu
