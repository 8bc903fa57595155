// What a helper process sends, of any content: each frame is taken whole, refused, or not yet
// there.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "collectors/kernel_log/journal_frame.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast)
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  while (true) {
    const std::size_t before = bytes.size();
    const auto frame = apu::take_frame(bytes);
    if (!frame || !*frame) {
      return 0;
    }
    if (bytes.size() >= before) {
      std::abort();
    }
  }
}
