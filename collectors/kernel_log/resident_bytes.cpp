#include "collectors/kernel_log/resident_bytes.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>

#include "exporter/descriptor.h"
#include "exporter/text.h"

namespace apu {

std::uint64_t resident_bytes() {
  constexpr size_t kMaxText = 128;
  std::array<char, kMaxText> text{};
  const Descriptor file(::open("/proc/self/statm", O_RDONLY | O_CLOEXEC));
  const ssize_t count = ::read(file.get(), text.data(), text.size());
  const auto fields =
      split_fields({text.data(), count > 0 ? static_cast<size_t>(count) : size_t{0}});
  const auto pages = fields.size() > 1 ? parse_number<std::uint64_t>(fields[1]) : std::nullopt;
  return pages.value_or(0) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace apu
