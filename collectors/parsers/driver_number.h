#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace apu {

/// Parses a file that holds one unsigned decimal number, as the attributes of amdgpu, KFD and
/// module parameters do.
///
/// Source: sysfs_emit(buf, "%llu\n", ...) in the drivers' show functions.
/// Shape:  digits and a newline. Without it the number may have been cut; KFD's queue files are
///         the only ones that the kernel prints so, for which see parse_bare_number.
/// nullopt: no such number, or one of 2^63 and more: a difference of counters that wrapped.
std::optional<std::uint64_t> parse_driver_number(std::string_view text);

/// The same for a file that the kernel prints without a newline.
std::optional<std::uint64_t> parse_bare_number(std::string_view text);

/// Parses "0x1002\n", as PCI ids are printed (drivers/pci/pci-sysfs.c).
std::optional<std::uint32_t> parse_pci_id(std::string_view text);

}  // namespace apu
