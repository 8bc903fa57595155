#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/parsers/problem.h"
#include "exporter/collector.h"
#include "exporter/result.h"

namespace apu {

/// One of KFD's accounts of memory, in MiB, rounded down as printed.
struct KfdMemoryAccount {
  std::int64_t used_mib = 0;  ///< over the limit with no_system_mem_limit; below 0 by its bugs
  std::uint64_t limit_mib = 0;
};

struct KfdMemLimit {
  std::optional<KfdMemoryAccount> system;  ///< all that KFD charges, userptr and SVM included
  std::optional<KfdMemoryAccount> ttm;     ///< what it places by TTM: GTT, and an APU's VRAM
  Problems problems;
};

/// Parses debugfs kfd/mem_limit.
///
/// Source: kfd_debugfs_kfd_mem_limits in drivers/gpu/drm/amd/amdgpu/amdgpu_amdkfd_gpuvm.c.
/// Shape:  "System mem used %lldM out of %lluM" and "TTM mem used %lldM out of %lluM".
/// Units:  MiB.
/// Problem: a line of these that is cut, repeated, or has a number that wrapped; a file without
///          both.
KfdMemLimit parse_kfd_mem_limit(std::string_view text);

/// TTM's pools of free pages, which no process holds.
struct TtmPagePool {
  std::uint64_t pages = 0;
  std::uint64_t limit_pages = 0;
};

/// Parses debugfs ttm/page_pool.
///
/// Source: ttm_pool_debugfs_footer in drivers/gpu/drm/ttm/ttm_pool.c.
/// Shape:  a table by order, then "total\t: %8lu of %8lu"; a kernel that prints several such
///         lines, one for each NUMA node, has them added up.
/// Units:  pages.
/// Errors: kMalformed if there is no such line, or one that cannot be read.
Result<TtmPagePool> parse_ttm_page_pool(std::string_view text);

/// The size and use of GTT as its manager has it.
struct GttManager {
  std::uint64_t size_bytes = 0;
  std::uint64_t used_bytes = 0;
};

/// Parses debugfs dri/<gpu>/amdgpu_gtt_mm. No more than mem_info_gtt_* of sysfs gives, without
/// root: a cross-check.
///
/// Source: amdgpu_gtt_mgr_debug and ttm_resource_manager_debug in drivers/gpu/drm.
/// Shape:  "  size: %llu" and "  usage: %llu" lines in bytes since 5.19; before, a line "man
///         size:%llu pages,  gtt used:%llu pages", and before that "man size:%llu pages, gtt
///         available:%lld pages, usage:%lluMB". "total:" is of the small GART, not of GTT.
/// Errors: kMalformed if it is none of these.
Result<GttManager> parse_gtt_mm(std::string_view text, std::uint64_t page_bytes);

/// GTT of one GPU.
struct GpuGtt {
  std::string gpu;  ///< PCI address
  GttManager manager;
};

/// The facts of a pass.
struct KfdLimitsFacts {
  std::optional<KfdMemLimit> mem_limit;  ///< absent where it cannot be read
  std::optional<TtmPagePool> page_pool;  ///< likewise
  std::vector<GpuGtt> gtt;               ///< of the GPUs whose file can be read
  std::uint64_t page_bytes = 0;
};

Families to_families(const KfdLimitsFacts& facts);

std::span<const MetricInfo> kfd_limits_metrics();

/// KFD's memory limits and TTM's pool, from debugfs. Source "debugfs": not available where it is
/// not mounted, or not for us; nor where the kernel is locked down, which denies kfd/mem_limit
/// alone. Opens exact paths only: many files there hang, or act when they are read.
std::unique_ptr<Collector> make_kfd_limits_collector(const CollectorContext& context);

}  // namespace apu
