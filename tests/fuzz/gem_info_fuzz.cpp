// The list of a GPU's graphics clients, whose names are any bytes: what the clients hold adds up.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "collectors/gpu_gem.h"

namespace {

void require(bool holds) {
  if (!holds) {
    std::abort();
  }
}

void check_sum(const apu::GemInfo& info, apu::GemPlacement placement) {
  apu::GemUse sum;
  for (const apu::GemClient& client : info.clients) {
    const apu::GemUse& use = client.uses[placement];
    require(sum.bytes <= UINT64_MAX - use.bytes);
    sum.bytes += use.bytes;
    sum.objects += use.objects;
  }
  const apu::GemUse& total = info.total[placement];
  require(sum.bytes == total.bytes && sum.objects == total.objects);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast)
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const apu::GemInfo info = apu::parse_gem_info(text);
  for (std::size_t i = 0; i < apu::kGemPlacements; ++i) {
    check_sum(info, static_cast<apu::GemPlacement>(i));
  }
  return 0;
}
