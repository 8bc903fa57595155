#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace apu {

/// A recorded case, tests/cases/NAME.
inline std::filesystem::path case_path(const std::string& name) {
  return std::filesystem::path(APU_SOURCE_DIR) / "tests/cases" / name;
}

/// A recorded host, tests/fixtures/NAME.
inline std::filesystem::path fixture_path(const std::string& name) {
  return std::filesystem::path(APU_SOURCE_DIR) / "tests/fixtures" / name;
}

/// The bytes of a file; a failure of the test if it cannot be read.
inline std::string read_file(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  EXPECT_TRUE(stream.is_open()) << file;
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// The names of all recorded hosts.
inline std::vector<std::string> fixture_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(fixture_path(""))) {
    names.push_back(entry.path().filename().string());
  }
  EXPECT_FALSE(names.empty());
  return names;
}

}  // namespace apu
