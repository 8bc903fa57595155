#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace apu {

/// A client of a GPU: one open file of its device node, however many descriptors of however many
/// processes refer to it. Ids are unique to one GPU only.
struct ClientKey {
  std::string gpu;       ///< PCI address
  std::uint64_t id = 0;  ///< drm-client-id

  auto operator<=>(const ClientKey&) const = default;
};

/// A client's memory, or a sum, in bytes: what lies there now. Absent where it is not known.
struct PoolBytes {
  std::optional<std::uint64_t> vram;
  std::optional<std::uint64_t> gtt;

  [[nodiscard]] bool known() const { return vram && gtt; }

  bool operator==(const PoolBytes&) const = default;
};

/// By PCI address.
using GpuPools = std::map<std::string, PoolBytes>;

/// What was read of a client in a pass.
struct ClientReading {
  PoolBytes memory;
  bool may_skip = false;  ///< this kernel leaves out objects that are locked at that moment
};

using ClientReadings = std::map<ClientKey, ClientReading>;

}  // namespace apu
