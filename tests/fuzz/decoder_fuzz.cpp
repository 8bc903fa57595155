// Compressed input, whole, damaged or cut off.

#include <cstdint>
#include <string_view>

#include "exporter/decoder.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kEnough = 16U << 20U;
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast)
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto decoder = apu::make_decoder(bytes);
  std::size_t decoded = 0;
  while (!bytes.empty() && decoded < kEnough) {
    const std::string_view piece = bytes.substr(0, bytes.size() / 2 + 1);
    if (decoder->feed(piece, [&](std::string_view out) { decoded += out.size(); })) {
      return 0;
    }
    bytes.remove_prefix(piece.size());
  }
  static_cast<void>(decoder->finish());
  return 0;
}
