#include "collectors/units/bus_values.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>

namespace apu {
namespace {

constexpr size_t kMaxEntries = 4096;

constexpr std::string_view kCommands = "a(sasbttttuii)";  // ExecStart=

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

/// The arguments of the first of several commands; none where there is no command.
std::optional<std::vector<std::string>> read_arguments(sd_bus_message* message) {
  if (sd_bus_message_enter_container(message, SD_BUS_TYPE_ARRAY, "(sasbttttuii)") < 0) {
    return std::nullopt;
  }
  if (sd_bus_message_enter_container(message, SD_BUS_TYPE_STRUCT, "sasbttttuii") <= 0) {
    return std::vector<std::string>();
  }
  const char* path = nullptr;
  return sd_bus_message_read_basic(message, SD_BUS_TYPE_STRING, static_cast<void*>(&path)) > 0
             ? read_texts(message)
             : std::nullopt;
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
    if (entries.size() == kMaxEntries) {
      return Error{ErrorKind::kMalformed,
                   fmt::format("{}: more than {} entries", what, kMaxEntries)};
    }
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

}  // namespace

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
  if (signature == kCommands) {
    auto arguments = read_arguments(message);
    return arguments ? PropertyValue(*std::move(arguments)) : PropertyValue();
  }
  return {};
}

Result<std::vector<LoadedUnit>> read_loaded_units(sd_bus_message* message, std::string_view what) {
  return read_array<LoadedUnit>(message, "(ssssssouso)", what,
                                [&](LoadedUnit& unit) { return read_loaded_unit(message, unit); });
}

Result<std::vector<UnitFile>> read_unit_files(sd_bus_message* message, std::string_view what) {
  return read_array<UnitFile>(message, "(ss)", what,
                              [&](UnitFile& file) { return read_unit_file(message, file); });
}

}  // namespace apu
