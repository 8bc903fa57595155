#include "exporter/commands/output.h"

#include <fmt/format.h>

#include <cstdio>

#include "exporter/log.h"

namespace apu {

bool print_whole(std::string_view text, std::string_view what) {
  const bool printed =
      std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (!printed) {
    log::error(fmt::format("{} could not be written to stdout", what));
  }
  return printed;
}

}  // namespace apu
