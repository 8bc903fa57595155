#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "exporter/collector.h"

namespace apu {

/// The facts of a pass.
struct DriverFacts {
  /// Whether the amdgpu module that runs is the one on the disk. It is not after an update without
  /// a reboot, and after a reboot where the initramfs was not made anew. Absent where that cannot
  /// be told.
  std::optional<bool> is_on_disk;
  std::string is_on_disk_unknown;  ///< why it is absent
  /// Messages of KFD that dynamic debug prints. In a storm these are about 900 lines a second, and
  /// the kernel's log is gone. Absent where the kernel has no dynamic debug, or hides it.
  std::optional<std::uint64_t> kfd_debug_messages;
  std::string kfd_debug_unknown;  ///< why it is absent
};

/// The path of a module's file below the directory of modules.dep.
///
/// Source: depmod(8). Shape: "PATH: PATH ...", a module and those it needs; PATH ends in .ko,
/// .ko.gz, .ko.xz or .ko.zst.
std::optional<std::string> find_module_file(std::string_view modules_dep, std::string_view module);

Families to_families(const DriverFacts& facts);

std::span<const MetricInfo> driver_metrics();

/// Whether the driver that runs is what its administrator believes. The module's file is read when
/// it has changed.
std::unique_ptr<Collector> make_driver_collector(const CollectorContext& context);

}  // namespace apu
