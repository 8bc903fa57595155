#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "exporter/file_root.h"
#include "exporter/result.h"

namespace apu {

/// A GPU that the amdgpu driver holds.
struct GpuDevice {
  std::string pci_address;  ///< "0000:c5:00.0": the label `gpu`, the same over boots
  std::string card;         ///< "card1": may differ from boot to boot
  std::string pci_id;       ///< "1002:1586", vendor and device
  std::optional<std::uint32_t> render_minor;  ///< 128 of renderD128; absent where there is none

  /// Its directory below sysfs.
  [[nodiscard]] std::string directory() const { return "class/drm/" + card + "/device"; }

  /// Its directory below debugfs: by PCI address since 6.11 or so; before, by the card's number.
  [[nodiscard]] std::array<std::string, 2> debug_directories() const {
    return {"dri/" + pci_address, "dri/" + card.substr(std::string_view("card").size())};
  }
};

/// Whether `text` is a PCI address, "domain:bus:device.function" in hexadecimal digits.
bool is_pci_address(std::string_view text);

/// The AMD GPUs of a host by PCI address, from /sys/class/drm. Connectors, render nodes, other
/// drivers' cards and partitions without a PCI device of their own are left out. Reads vendor
/// and device alone, which the PCI core holds in memory: no device is woken.
/// Errors: what listing /sys/class/drm gave; kNotFound if there is no such card; kUnsupported where
/// sysfs is empty, as where it was not mounted into a container.
Result<std::vector<GpuDevice>> read_gpu_devices(const FileRoot& sysfs);

/// Parses power/runtime_status: whether the device sleeps, or is on its way there or back.
///
/// Source: runtime_status_show in drivers/base/power/sysfs.c.
/// Shape:  "active", "suspended", "suspending", "resuming", "error" or "unsupported".
/// nullopt: "error", which says nothing of the device, or none of these.
std::optional<bool> parse_runtime_suspended(std::string_view text);

/// The same for a GPU. Does not wake it. nullopt where that is not told: a kernel without power
/// management, or a file that cannot be read.
std::optional<bool> read_runtime_suspended(const FileRoot& sysfs, const GpuDevice& device);

}  // namespace apu
