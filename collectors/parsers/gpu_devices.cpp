#include "collectors/parsers/gpu_devices.h"

#include <fmt/format.h>

#include <algorithm>

#include "collectors/parsers/driver_number.h"
#include "exporter/text.h"

namespace apu {
namespace {

constexpr std::uint32_t kAmd = 0x1002;

/// Removes leading hexadecimal digits; their number.
size_t take_hex(std::string_view& text) {
  const size_t end = std::min(text.find_first_not_of("0123456789abcdef"), text.size());
  text.remove_prefix(end);
  return end;
}

/// The number in "card1" or "renderD128"; nullopt for "card1-DP-1" and other names.
std::optional<std::uint32_t> number_after(std::string_view prefix, std::string_view name) {
  return consume(name, prefix) ? parse_number<std::uint32_t>(name) : std::nullopt;
}

std::optional<std::uint32_t> read_pci_id(const FileRoot& sysfs, const std::string& file) {
  const auto text = sysfs.read(file);
  return text ? parse_pci_id(*text) : std::nullopt;
}

std::optional<std::uint32_t> read_render_minor(const FileRoot& sysfs, const GpuDevice& device) {
  if (const auto nodes = sysfs.list(device.directory() + "/drm")) {
    for (const std::string& node : *nodes) {
      if (const auto minor = number_after("renderD", node)) {
        return minor;
      }
    }
  }
  return std::nullopt;
}

std::optional<GpuDevice> read_device(const FileRoot& sysfs, const std::string& card) {
  GpuDevice device;
  device.card = card;
  const std::string directory = device.directory();
  const auto address = sysfs.link_name(directory);
  const auto driver = sysfs.link_name(directory + "/driver");
  const auto vendor = read_pci_id(sysfs, directory + "/vendor");
  const auto id = read_pci_id(sysfs, directory + "/device");
  const bool ours = address && is_pci_address(*address) && driver && *driver == "amdgpu";
  if (!ours || vendor != kAmd || !id) {
    return std::nullopt;
  }
  device.pci_address = *address;
  device.pci_id = fmt::format("{:04x}:{:04x}", *vendor, *id);
  device.render_minor = read_render_minor(sysfs, device);
  return device;
}

bool by_address(const GpuDevice& a, const GpuDevice& b) {
  return a.pci_address < b.pci_address;
}

bool same_address(const GpuDevice& a, const GpuDevice& b) {
  return a.pci_address == b.pci_address;
}

}  // namespace

bool is_pci_address(std::string_view text) {
  return take_hex(text) >= 4 && consume(text, ":") && take_hex(text) == 2 && consume(text, ":") &&
         take_hex(text) == 2 && consume(text, ".") && take_hex(text) == 1 && text.empty();
}

Result<std::vector<GpuDevice>> read_gpu_devices(const FileRoot& sysfs) {
  const auto names = sysfs.list("class/drm");
  if (!names) {
    const auto sysfs_root = sysfs.list("");
    const bool is_sysfs = sysfs_root && !sysfs_root->empty();
    return is_sysfs ? names.error()
                    : Error{ErrorKind::kUnsupported, "there is no sysfs: its directory is empty"};
  }
  std::vector<GpuDevice> devices;
  for (const std::string& name : *names) {
    if (!number_after("card", name)) {
      continue;
    }
    if (auto device = read_device(sysfs, name)) {
      devices.push_back(*std::move(device));
    }
  }
  if (devices.empty()) {
    return Error{ErrorKind::kNotFound, "no card of the amdgpu driver in /sys/class/drm"};
  }
  std::stable_sort(devices.begin(), devices.end(), by_address);
  devices.erase(std::unique(devices.begin(), devices.end(), same_address), devices.end());
  return devices;
}

std::optional<bool> parse_runtime_suspended(std::string_view text) {
  const std::string_view status = first_line(text);
  if (status == "active" || status == "unsupported") {
    return false;
  }
  if (status == "suspended" || status == "suspending" || status == "resuming") {
    return true;
  }
  return std::nullopt;
}

std::optional<bool> read_runtime_suspended(const FileRoot& sysfs, const GpuDevice& device) {
  const auto text = sysfs.read(device.directory() + "/power/runtime_status");
  return text ? parse_runtime_suspended(*text) : std::nullopt;
}

}  // namespace apu
