// What the guarded reader and its helper send each other, of any content.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "exporter/guarded_protocol.h"

namespace {

/// Takes messages until none is whole; each makes the rest shorter.
template <typename Take>
void take_all(std::string_view bytes, Take take) {
  while (true) {
    const std::size_t before = bytes.size();
    if (!take(bytes)) {
      return;
    }
    if (bytes.size() >= before) {
      std::abort();
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast)
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  take_all(bytes, apu::take_request);
  take_all(bytes, apu::take_answer);
  return 0;
}
