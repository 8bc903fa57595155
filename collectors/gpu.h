#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collectors/parsers/gpu_devices.h"
#include "exporter/collector.h"

namespace apu {

/// A pool of a GPU's memory, in bytes. All numbers are momentary, and not of one instant.
struct GpuMemoryPool {
  std::optional<std::uint64_t> size_bytes;
  std::optional<std::uint64_t> used_bytes;
};

/// One GPU. The kernel functions named are in drivers/gpu/drm/amd/amdgpu.
struct Gpu {
  GpuDevice device;
  std::string gfx_target;              ///< "gfx1151", from KFD's topology; empty where not told
  std::optional<bool> unified_memory;  ///< by gfx_target; nullopt where that does not tell
  std::optional<bool> suspended;       ///< power/runtime_status; absent without power management
  GpuMemoryPool vram;                  ///< amdgpu_mem_info_vram_{total,used}_show: the carve-out
  GpuMemoryPool visible_vram;          ///< amdgpu_mem_info_vis_vram_*_show: what the CPU can map
  GpuMemoryPool gtt;  ///< amdgpu_mem_info_gtt_*_show: system RAM, buffers now in it
  std::optional<std::uint64_t> userptr_bound_bytes;  ///< amdgpu_mem_info_preempt_used_show
};

/// What the driver was told, as the files have it; empty where one cannot be read. gttsize and
/// vramlimit are for root alone.
struct GpuParameters {
  std::string gttsize;                  ///< MiB, -1: the TTM limit
  std::string vramlimit;                ///< MiB, 0: none
  std::string ttm_pages_limit;          ///< pages
  std::string ttm_page_pool_size;       ///< pages
  std::string no_system_mem_limit;      ///< Y or N
  std::string noretry;                  ///< -1: by the chip
  std::string debug_evictions;          ///< Y or N
  std::string svm_default_granularity;  ///< log2 of pages
};

/// The facts of a pass.
struct GpuFacts {
  std::vector<Gpu> gpus;  ///< by PCI address
  GpuParameters parameters;
  std::optional<std::uint64_t> ttm_pages_limit;  ///< pages
  std::uint64_t page_bytes = 0;
};

/// Removes from a pool what cannot be: more in use than there is. Returns whether it was so.
bool drop_impossible(GpuMemoryPool& pool);

Families to_families(const GpuFacts& facts);

std::span<const MetricInfo> gpu_metrics();

/// Memory pools and identity of the AMD GPUs. Source "amdgpu": absent where no card is the
/// driver's. Reads counters that the driver keeps in memory; wakes no device.
std::unique_ptr<Collector> make_gpu_collector(const CollectorContext& context);

}  // namespace apu
