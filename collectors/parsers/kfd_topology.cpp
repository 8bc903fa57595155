#include "collectors/parsers/kfd_topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "collectors/parsers/driver_number.h"
#include "collectors/parsers/keyed_numbers.h"
#include "collectors/report.h"

namespace apu {
namespace {

constexpr const char* kTopology = "class/kfd/kfd/topology/";

constexpr std::array<std::string_view, 12> kUnifiedTargets{
    "gfx902",  "gfx909",  "gfx90c",  "gfx1013", "gfx1033", "gfx1035",
    "gfx1036", "gfx1103", "gfx1150", "gfx1151", "gfx1152", "gfx1153"};

// Gfx940 and gfx942 are in neither list: APUs and cards share them.
constexpr std::array<std::string_view, 22> kCardTargets{
    "gfx701",  "gfx802",  "gfx803",  "gfx900",  "gfx904",  "gfx906",  "gfx908",  "gfx90a",
    "gfx941",  "gfx950",  "gfx1010", "gfx1011", "gfx1012", "gfx1030", "gfx1031", "gfx1032",
    "gfx1034", "gfx1100", "gfx1101", "gfx1102", "gfx1200", "gfx1201"};

template <size_t kSize>
bool contains(const std::array<std::string_view, kSize>& list, std::string_view text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

/// location_id is bus << 8 | device << 3 | function.
std::string pci_address(std::uint64_t domain, std::uint64_t location) {
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", domain, location >> 8U & 0xffU,
                     location >> 3U & 0x1fU, location & 7U);
}

using GpuDevices = std::vector<GpuDevice>;

/// The address without its function.
std::string_view slot_of(std::string_view address) {
  return address.substr(0, address.rfind('.'));
}

/// Of a partition the function holds the partition's number, too: no device has that address, but
/// one in the same slot has.
std::string address_of_device(const std::string& address, const GpuDevices& devices) {
  std::string same_slot;
  for (const GpuDevice& device : devices) {
    if (device.pci_address == address) {
      return address;
    }
    if (same_slot.empty() && slot_of(device.pci_address) == slot_of(address)) {
      same_slot = device.pci_address;
    }
  }
  return same_slot.empty() ? address : same_slot;
}

std::optional<std::uint32_t> to_u32(const std::optional<std::uint64_t>& value) {
  return value && *value <= std::numeric_limits<std::uint32_t>::max()
             ? std::optional(static_cast<std::uint32_t>(*value))
             : std::nullopt;
}

}  // namespace

std::string gfx_target_name(std::uint64_t version) {
  constexpr std::uint64_t kMajor = 10000;
  constexpr std::uint64_t kMinor = 100;
  constexpr std::uint64_t kLargestDigit = 15;
  const std::uint64_t minor = version / kMinor % kMinor;
  const std::uint64_t step = version % kMinor;
  if (version < kMajor || version >= kMajor * kMinor || minor > kLargestDigit ||
      step > kLargestDigit) {
    return {};
  }
  return fmt::format("gfx{}{:x}{:x}", version / kMajor, minor, step);
}

std::optional<bool> has_unified_memory(std::string_view gfx_target) {
  if (contains(kUnifiedTargets, gfx_target)) {
    return true;
  }
  return contains(kCardTargets, gfx_target) ? std::optional(false) : std::nullopt;
}

std::optional<std::uint32_t> parse_kfd_gpu_id(std::string_view text) {
  return to_u32(parse_driver_number(text));
}

KfdGpuNode parse_kfd_node(std::uint32_t gpu_id, std::string_view properties, Problems& problems) {
  const KeyedNumbers numbers = parse_vmstat(properties);
  problems = numbers.problems;
  KfdGpuNode node;
  node.gpu_id = gpu_id;
  const auto domain = numbers.get("domain");
  const auto location = numbers.get("location_id");
  if (domain && location) {
    node.pci_address = pci_address(*domain, *location);
  }
  node.render_minor = to_u32(numbers.get("drm_render_minor"));
  node.gfx_target = gfx_target_name(numbers.get_or_zero("gfx_target_version"));
  return node;
}

const std::vector<KfdGpuNode>& KfdTopology::refresh() {
  const auto text = sysfs_.read(fmt::format("{}generation_id", kTopology));
  const auto generation = text ? std::optional(*text) : std::nullopt;
  if (!generation || generation != generation_) {
    const bool whole = read_nodes();
    generation_ = whole ? generation : std::nullopt;
  }
  return nodes_;
}

/// Whether all that is there could be read.
bool KfdTopology::read_nodes() {
  nodes_.clear();
  const std::string directory = fmt::format("{}nodes", kTopology);
  const auto names = sysfs_.list(directory);
  if (!names) {
    return false;
  }
  bool whole = true;
  for (const std::string& name : *names) {
    whole = read_node(fmt::format("{}/{}", directory, name)) && whole;
  }
  const auto devices = read_gpu_devices(sysfs_);
  for (KfdGpuNode& node : nodes_) {
    node.pci_address = address_of_device(node.pci_address, devices ? *devices : GpuDevices());
  }
  return whole;
}

bool KfdTopology::read_node(const std::string& directory) {
  const auto id_text = sysfs_.read(directory + "/gpu_id");
  if (!id_text) {
    return true;  // gone, or denied by the device cgroup
  }
  const auto gpu_id = parse_kfd_gpu_id(*id_text);
  if (!gpu_id) {
    sources_.parse_error("kfd", fmt::format("{}/gpu_id:1: no number in '{}'", directory, *id_text));
    return false;
  }
  const auto properties =
      *gpu_id == 0 ? Result<std::string>(Error{}) : sysfs_.read(directory + "/properties");
  if (!properties) {
    return true;
  }
  Problems problems;
  nodes_.push_back(parse_kfd_node(*gpu_id, *properties, problems));
  report_problems(sources_, "kfd", directory + "/properties", problems);
  return problems.empty();
}

const KfdGpuNode* find_node(const std::vector<KfdGpuNode>& nodes, const GpuDevice& device) {
  for (const KfdGpuNode& node : nodes) {
    if (node.pci_address == device.pci_address) {
      return &node;
    }
  }
  for (const KfdGpuNode& node : nodes) {
    if (device.render_minor && node.render_minor == device.render_minor) {
      return &node;
    }
  }
  return nullptr;
}

const KfdGpuNode* find_node(const std::vector<KfdGpuNode>& nodes, std::uint32_t gpu_id) {
  for (const KfdGpuNode& node : nodes) {
    if (node.gpu_id == gpu_id) {
      return &node;
    }
  }
  return nullptr;
}

}  // namespace apu
