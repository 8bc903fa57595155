#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "exporter/result.h"

namespace apu {

/// One option of the configuration file.
struct ConfigEntry {
  std::string name;                 ///< the option's name without its dashes
  std::vector<std::string> values;  ///< one, or those of a list
  int line = 0;                     ///< from 1
};

/// Reads a flat YAML map of option names to values; repeatable options take lists. An empty file
/// is an empty map. Errors name the file and the line.
Result<std::vector<ConfigEntry>> read_config_file(const std::filesystem::path& path);

}  // namespace apu
