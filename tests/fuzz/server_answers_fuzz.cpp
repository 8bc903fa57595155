// What a server on the port of a llama-server answers, of any content.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "collectors/seat_health/answers.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kMaxSlots = 4096;
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast)
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static_cast<void>(apu::is_health_answer(text));
  const auto slots = apu::parse_slots(text);
  if (slots.ok() && slots->size() > kMaxSlots) {
    std::abort();
  }
  if (!slots.ok() && slots.error().message != "no list of slots") {
    std::abort();  // it might quote what it read
  }
  return 0;
}
