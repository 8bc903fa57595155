#pragma once

#include <systemd/sd-bus.h>

#include <string_view>
#include <vector>

#include "collectors/units/manager.h"
#include "exporter/result.h"

namespace apu {

/// The answer to Properties.Get. Of ExecStart= the arguments of the first command, which may hold
/// secrets: whoever takes them keeps what a list allows.
PropertyValue read_value(sd_bus_message* message);

/// The answers to ListUnitsByPatterns and ListUnitFilesByPatterns.
/// Errors: kMalformed; for more entries than any host has, too: a user's manager is no friend.
Result<std::vector<LoadedUnit>> read_loaded_units(sd_bus_message* message, std::string_view what);
Result<std::vector<UnitFile>> read_unit_files(sd_bus_message* message, std::string_view what);

}  // namespace apu
