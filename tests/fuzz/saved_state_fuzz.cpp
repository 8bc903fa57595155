// A state file of any content is read or refused.

#include <cstdint>
#include <string_view>

#include "collectors/kernel_log/saved_state.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast)
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto state = apu::parse_saved_state(text)) {
    static_cast<void>(apu::to_text(*state));
  }
  return 0;
}
