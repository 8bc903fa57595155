#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "exporter/result.h"

namespace apu {

/// What names a device, wherever its node stands.
struct DeviceNumber {
  std::uint32_t major = 0;
  std::uint32_t minor = 0;

  bool operator==(const DeviceNumber&) const = default;
};

/// Reads files below one directory: the only way a collector touches the file system. May block
/// for ever, so it is used in a collector's pass and never in a scrape.
class FileRoot {
 public:
  /// No file of procfs or sysfs that we read whole comes near it; a larger one is an error, never
  /// cut.
  static constexpr size_t kMaxFileBytes = size_t{1} << 20;

  /// The same for a file that is read line by line.
  static constexpr size_t kMaxLineFileBytes = size_t{64} << 20;

  explicit FileRoot(std::filesystem::path root) : root_(std::move(root)) {}

  /// The whole file. The kernel returns some files in pieces of 4 KiB (vmstat), so it reads until
  /// the end; st_size means nothing there.
  /// Errors: by errno; kMalformed for a file over kMaxFileBytes.
  [[nodiscard]] Result<std::string> read(std::string_view relative) const;

  /// Calls `visit(line)` for each line of a file that may be too large to hold, as text.h's
  /// for_each_line does for one that is held. After an error not all lines were visited.
  /// Errors: by errno; kMalformed for a file over kMaxLineFileBytes.
  [[nodiscard]] Status for_each_line(std::string_view relative,
                                     const std::function<void(std::string_view)>& visit) const;

  /// The names in a directory, sorted, without "." and "..".
  [[nodiscard]] Result<std::vector<std::string>> list(std::string_view relative) const;

  /// The last component of what a symbolic link points to: sysfs names a device's driver so.
  /// Touches neither the target nor its driver. Errors: by errno; kUnknown if it is no link.
  [[nodiscard]] Result<std::string> link_name(std::string_view relative) const;

  /// Calls `visit(name, target)` for each symbolic link in a directory, in the kernel's order; a
  /// link that goes away meanwhile is left out. Never follows one.
  [[nodiscard]] Status for_each_link(
      std::string_view relative,
      const std::function<void(std::string_view, std::string_view)>& visit) const;

  /// The number of the character device that a path leads to, links followed: of an open file that
  /// is /proc/PID/fd/N. Opens nothing, and asks neither the driver nor a file server, which can
  /// hang. nullopt where it leads to none.
  [[nodiscard]] std::optional<DeviceNumber> device_number(std::string_view relative) const;

  /// Whether the path exists. False as well where the parent may not be searched.
  [[nodiscard]] bool exists(std::string_view relative) const;

  [[nodiscard]] std::filesystem::path path_of(std::string_view relative) const {
    return root_ / relative;
  }

 private:
  std::filesystem::path root_;
};

}  // namespace apu
