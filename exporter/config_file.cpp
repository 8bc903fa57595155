#include "exporter/config_file.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>

#include "exporter/file_root.h"

namespace apu {
namespace {

int line_of(const YAML::Node& node) {
  return node.Mark().line + 1;
}

Error at_line(const std::filesystem::path& path, int line, std::string_view what) {
  return {ErrorKind::kMalformed, fmt::format("{}:{}: {}", path.string(), line, what)};
}

/// The values of an entry; empty if `node` is neither a scalar nor a list of scalars.
std::vector<std::string> values_of(const YAML::Node& node) {
  if (node.IsScalar()) {
    return {node.Scalar()};
  }
  std::vector<std::string> values;
  if (node.IsSequence()) {
    for (const YAML::Node& item : node) {
      if (!item.IsScalar()) {
        return {};
      }
      values.push_back(item.Scalar());
    }
  }
  return values;
}

Result<ConfigEntry> read_entry(const std::filesystem::path& path, const YAML::Node& key,
                               const YAML::Node& value) {
  if (!key.IsScalar()) {
    return at_line(path, line_of(key), "an option's name is not a plain word");
  }
  ConfigEntry entry{key.Scalar(), values_of(value), line_of(key)};
  if (entry.values.empty()) {
    return at_line(path, entry.line,
                   fmt::format("'{}' needs a value or a list of values", entry.name));
  }
  return entry;
}

Result<std::vector<ConfigEntry>> read_entries(const std::filesystem::path& path,
                                              const YAML::Node& document) {
  std::vector<ConfigEntry> entries;
  if (document.IsNull()) {
    return entries;
  }
  if (!document.IsMap()) {
    return at_line(path, line_of(document), "not a map of option names to values");
  }
  for (const auto& item : document) {
    Result<ConfigEntry> entry = read_entry(path, item.first, item.second);
    if (!entry) {
      return entry.error();
    }
    const auto same = [&](const ConfigEntry& other) { return other.name == entry->name; };
    if (std::any_of(entries.begin(), entries.end(), same)) {
      return at_line(path, entry->line, fmt::format("'{}' is set twice", entry->name));
    }
    entries.push_back(*std::move(entry));
  }
  return entries;
}

}  // namespace

Result<std::vector<ConfigEntry>> read_config_file(const std::filesystem::path& path) {
  const auto text = FileRoot(path.parent_path()).read(path.filename().string());
  if (!text) {
    return text.error();
  }
  try {
    return read_entries(path, YAML::Load(*text));
  } catch (const YAML::Exception& exception) {
    return at_line(path, exception.mark.line + 1, exception.msg);
  }
}

}  // namespace apu
