// The command line and the environment of a process, of any content.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "collectors/seat_config/server_config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kMaxFileName = 255;
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast)
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const apu::ServerConfig config = apu::parse_server_config(text, text, "llama-server");
  if (config.model.find('/') != std::string::npos || config.model.size() > kMaxFileName) {
    std::abort();
  }
  return 0;
}
