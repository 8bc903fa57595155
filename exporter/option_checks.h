#pragma once

#include <string>

namespace apu {

// Each takes the value of an option as it was given and returns what is wrong with it, for the
// user; empty if nothing is.

std::string check_listen_address(const std::string& text);
std::string check_telemetry_path(const std::string& path);
std::string check_period(const std::string& text);
std::string check_duration(const std::string& text);
std::string check_kernel_log(const std::string& choice);
std::string check_directory(const std::string& path);
std::string check_pattern(const std::string& pattern);

}  // namespace apu
