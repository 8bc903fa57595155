#include "collectors/driver/dynamic_debug.h"

#include <string>

#include "exporter/text.h"

namespace apu {
namespace {

constexpr std::string_view kFolder = "amdkfd/";

}  // namespace

Result<bool> prints_kfd_debug(std::string_view line) {
  std::string_view rest = line;
  const std::string_view place = take_field(rest);
  if (place.find(kFolder) == std::string_view::npos) {
    return false;
  }
  take_field(rest);  // module and function
  const std::string_view flags = take_field(rest);
  if (!flags.starts_with('=')) {
    return Error{ErrorKind::kMalformed, "no flags in '" + std::string(line) + "'"};
  }
  return flags.find('p') != std::string_view::npos;
}

}  // namespace apu
