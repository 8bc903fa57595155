#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/parsers/problem.h"
#include "exporter/collector.h"

namespace apu {

/// Where a buffer object lies.
enum class GemPlacement : std::size_t {
  kVisibleVram,  ///< the part of VRAM that the CPU can map; older kernels say kVram for all of it
  kVram,
  kGtt,
  kCpu,  ///< system memory that is not mapped for the GPU now
  kGds,
  kGws,
  kOa,
  kPreemptible,
  kDoorbell,
  kMmioRemap,
  kNone,     ///< it has no pages
  kUnknown,  ///< it was locked while the file was printed, as happens in a storm
};

constexpr std::size_t kGemPlacements = static_cast<std::size_t>(GemPlacement::kUnknown) + 1;

struct GemUse {
  std::uint64_t objects = 0;
  std::uint64_t bytes = 0;  ///< the objects' full size
};

/// By placement.
class GemUses {
 public:
  GemUse& operator[](GemPlacement placement) { return uses_[static_cast<std::size_t>(placement)]; }

  const GemUse& operator[](GemPlacement placement) const {
    return uses_[static_cast<std::size_t>(placement)];
  }

 private:
  std::array<GemUse, kGemPlacements> uses_{};
};

/// An open file of the GPU; a process may have several.
struct GemClient {
  std::optional<std::int64_t> pid;  ///< thread group, in the first namespace; absent if unreadable
  std::string comm;  ///< at most 15 bytes, any bytes; "<unknown>" where the process is gone
  GemUses uses;
};

struct GemInfo {
  std::vector<GemClient> clients;
  GemUses total;  ///< over the clients; an object that several share counts for each
  Problems problems;
};

/// Reads debugfs dri/<gpu>/amdgpu_gem_info line by line: it may be too large to hold.
///
/// Source: amdgpu_debugfs_gem_info_show and amdgpu_bo_print_info in
///         drivers/gpu/drm/amd/amdgpu/amdgpu_gem.c and amdgpu_object.c.
/// Shape:  "pid %8d command %s:" for each client, then its objects, "\t\t0x%08x: %12lld byte
///         PLACEMENT[ pin count %d][ imported from ...| exported as ...] FLAG...". Older kernels
///         print one TAB, and the placement padded to four columns. A flag may look like one
///         (VRAM_CLEARED). From 7.0 or so an object's fences follow, the first on its line, and a
///         blank line.
/// Units:  bytes.
/// Problem: a line of these that cannot be read, an object before any client, a size that wrapped,
///          or a sum that would. A client without a readable pid still has its objects.
///
/// A user chooses the name, which may hold line ends. In its 15 bytes there is no room for a line
/// that reads as a client with a pid, or as an object.
class GemInfoReader {
 public:
  void take(std::string_view line);

  /// What was read. The reader is used up.
  GemInfo finish();

 private:
  void begin_client(std::string_view line);
  void end_name();
  void take_object(std::string_view line);
  void add_problem(int line_number, std::string_view what, std::string_view line);

  GemInfo info_;
  int line_number_ = 0;
  int open_name_line_ = 0;  // of the client whose name has not ended yet; 0: there is none
};

/// The same for a text.
GemInfo parse_gem_info(std::string_view text);

struct GpuGem {
  std::string gpu;  ///< PCI address
  GemInfo info;
};

/// The facts of a pass: the GPUs whose file could be read.
struct GpuGemFacts {
  std::vector<GpuGem> gpus;
};

Families to_families(const GpuGemFacts& facts);

std::span<const MetricInfo> gpu_gem_metrics();

/// What graphics clients hold on the AMD GPUs. KFD's memory is not in it. Off by default, and a
/// collector of its own: the file takes the mutex of the device's open files, behind which the
/// read can wait, and names each object under a spinlock. It does not wake the device. Source
/// "gem_info": not available where debugfs is not mounted, or not for us, or a GPU's file cannot
/// be read.
std::unique_ptr<Collector> make_gpu_gem_collector(const CollectorContext& context);

}  // namespace apu
