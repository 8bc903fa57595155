#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "collectors/parsers/problem.h"

namespace apu {

/// What a file of /proc/<pid>/fdinfo is about.
enum class FdinfoKind {
  kNoClient,  ///< no GPU's descriptor; or one whose driver said nothing this time, see parse_fdinfo
  kForeign,   ///< a descriptor of another driver: another GPU, an NPU
  kAmdgpu,
};

/// A client's memory in one pool, in bytes. Absent where the kernel does not print it.
struct FdinfoPool {
  std::optional<std::uint64_t> resident;   ///< drm-resident-*: lies there now
  std::optional<std::uint64_t> placed;     ///< drm-memory-*, "* mem": see memory_of
  std::optional<std::uint64_t> total;      ///< drm-total-*, amd-requested-*: was asked for there
  std::optional<std::uint64_t> shared;     ///< drm-shared-*: in several clients
  std::optional<std::uint64_t> purgeable;  ///< drm-purgeable-*
  std::optional<std::uint64_t> active;     ///< drm-active-*: work is under way on it
  std::optional<std::uint64_t> evicted;  ///< amd-evicted-*: was asked for there and lies elsewhere
};

/// What the memory of a client in a pool is: what lies there now. That is drm-resident-*, and
/// drm-memory-* on kernels without it. Where both are printed they are one number (6.14 on), or
/// drm-memory-* holds evicted objects too (6.13). Never their sum, and never drm-total-*: what was
/// asked for in one pool may lie in another, or in none.
std::optional<std::uint64_t> memory_of(const FdinfoPool& pool);

struct Fdinfo {
  FdinfoKind kind = FdinfoKind::kNoClient;
  std::string gpu;                         ///< drm-pdev: PCI address, or empty
  std::optional<std::uint64_t> client_id;  ///< drm-client-id: an open file of the GPU
  std::optional<std::uint64_t> pasid;  ///< before 5.19, which have no client id, stands in for it
  FdinfoPool vram;
  FdinfoPool gtt;
  FdinfoPool cpu;  ///< system memory that is not mapped for the GPU now: no part of the two above

  /// Whether the kernel took no lock that a restore worker holds to print this. Otherwise the read
  /// can hang, and objects that were locked at that moment are missing in the sums.
  bool lock_free = false;

  Problems problems;
};

/// Parses /proc/<pid>/fdinfo/<fd> of a descriptor of /dev/dri/*.
///
/// Source: seq_show in fs/proc/fd.c, drm_show_fdinfo in drivers/gpu/drm/drm_file.c,
///         amdgpu_show_fdinfo in drivers/gpu/drm/amd/amdgpu/amdgpu_fdinfo.c.
/// Shape:  "key:<TAB>value" lines, some with blanks before the TAB.
/// Units:  KiB, MiB, kB; a bare number is bytes. One file mixes them.
///
/// Generations of amdgpu:
///   5.14  pdev, pasid, "vram mem", "gtt mem", "cpu mem", all of them without drm-; locks
///   5.19  drm-driver, drm-pdev, drm-client-id, drm-memory-*; locks, as all of the next two
///   6.4   and amd-evicted-*, amd-requested-*, *-visible-vram; drm-shared-*
///   6.13  and drm-total-*, drm-resident-*, drm-active-*
///   6.14  no drm-active-* and no *-visible-vram: sums that are kept up to date, without locks
/// A kernel whose wait for its lock was interrupted prints no memory at all, and the one before 6.5
/// not even which driver it is: absent, not 0.
///
/// Problem: a number that is none, has an unknown unit, is there twice, or is larger than an
/// address space (a counter of the kernel's that fell below 0): it is left out. Likewise a last
/// line without its end, and an amdgpu client without its PCI address or an id.
Fdinfo parse_fdinfo(std::string_view text);

}  // namespace apu
