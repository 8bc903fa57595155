#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "collectors/parsers/keyed_numbers.h"
#include "exporter/collector.h"

namespace apu {

/// Where the RAM is, in bytes. The kinds add up to MemTotal - MemFree.
struct MemoryUse {
  std::uint64_t anon = 0;             ///< anonymous and shared memory, swap cache
  std::uint64_t file = 0;             ///< page cache
  std::uint64_t kernel = 0;           ///< slab, page tables, per-CPU, vmalloc, stacks
  std::optional<std::uint64_t> gpu;   ///< GPUActive + GPUReclaim; absent on kernels without them
  std::optional<std::uint64_t> zram;  ///< pool of zram and zswap; absent where nothing tells it
  std::uint64_t other = 0;         ///< huge pages, balloon, ZFS data buffers, pages in flight, ...
  std::uint64_t unattributed = 0;  ///< in use, but in no category; GTT where `gpu` is absent
};

/// The facts of a pass, in the kernel's own units.
struct MemoryFacts {
  KeyedNumbers meminfo;                            ///< kB
  KeyedNumbers vmstat;                             ///< events since boot; nr_* are pages
  std::optional<std::uint64_t> zram_bytes;         ///< sum of mem_used_total
  std::optional<std::uint64_t> arc_bytes;          ///< ZFS ARC (arcstats size)
  std::optional<std::uint64_t> arc_scatter_bytes;  ///< ZFS data in pages (abdstats)
  std::optional<std::uint64_t> free_huge_blocks;
  std::uint64_t page_bytes = 0;
};

/// Splits the RAM in use into its kinds. LRU lists are used, since each page is on one list, so
/// that nothing counts twice. nullopt if a line of meminfo or vmstat could not be read: a part
/// that is not known must not turn up as unattributed.
std::optional<MemoryUse> memory_use(const MemoryFacts& facts);

Families to_families(const MemoryFacts& facts);

std::span<const MetricInfo> memory_metrics();

/// Memory of the host. Sources "procfs", and "zfs" where ZFS is loaded.
std::unique_ptr<Collector> make_memory_collector(const CollectorContext& context);

}  // namespace apu
