#include "collectors/memory.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "collectors/parsers/buddyinfo.h"
#include "collectors/parsers/zram.h"
#include "collectors/report.h"
#include "exporter/file_root.h"

namespace apu {
namespace {

using prometheus::MetricType;

constexpr MetricInfo kSize{"apu_memory_size_bytes", MetricType::Gauge, "",
                           "RAM that the kernel has; a GPU's carve-out is not in it (/proc/meminfo "
                           "MemTotal)"};
constexpr MetricInfo kAvailable{"apu_memory_available_bytes", MetricType::Gauge, "",
                                "RAM that new work could get without swapping (/proc/meminfo "
                                "MemAvailable)"};
constexpr MetricInfo kUsed{
    "apu_memory_used_bytes", MetricType::Gauge, "kind",
    "Where the RAM is; the kinds add up to MemTotal - MemFree (/proc/meminfo, /proc/vmstat)"};
constexpr MetricInfo kGpu{"apu_memory_gpu_bytes", MetricType::Gauge, "kind",
                          "System memory that the GPU's driver holds, on kernels that count it "
                          "(/proc/meminfo GPUActive, GPUReclaim)"};
constexpr MetricInfo kArc{"apu_memory_zfs_arc_bytes", MetricType::Gauge, "",
                          "Size of the ZFS ARC (/proc/spl/kstat/zfs/arcstats size)"};
constexpr MetricInfo kUnattributed{
    "apu_memory_unattributed_bytes", MetricType::Gauge, "",
    "RAM in use that no category of meminfo holds: GTT on kernels without GPUActive, driver "
    "pages; under 1 GiB is noise (/proc/meminfo, /proc/vmstat)"};
constexpr MetricInfo kMajorFaults{"apu_memory_major_faults_total", MetricType::Counter, "",
                                  "Page faults that read from storage or swap (/proc/vmstat "
                                  "pgmajfault)"};
constexpr MetricInfo kRefaults{
    "apu_memory_refaults_total", MetricType::Counter, "kind",
    "Pages read back soon after they were reclaimed (/proc/vmstat workingset_refault_*)"};
constexpr MetricInfo kScanned{"apu_memory_reclaim_scanned_pages_total", MetricType::Counter, "by",
                              "Pages that reclaim looked at (/proc/vmstat pgscan_*)"};
constexpr MetricInfo kStolen{
    "apu_memory_reclaim_stolen_pages_total", MetricType::Counter, "by",
    "Pages that reclaim took; one that the GPU has mapped stops queues (/proc/vmstat pgsteal_*)"};
constexpr MetricInfo kMigrated{
    "apu_memory_migrated_pages_total", MetricType::Counter, "",
    "Pages moved in RAM; one that the GPU has mapped stops queues (/proc/vmstat "
    "pgmigrate_success)"};
constexpr MetricInfo kThpSplits{"apu_memory_thp_splits_total", MetricType::Counter, "",
                                "Transparent huge pages split (/proc/vmstat thp_split_page)"};
constexpr MetricInfo kCompactions{"apu_memory_compaction_stalls_total", MetricType::Counter, "",
                                  "Allocations that had to compact memory first (/proc/vmstat "
                                  "compact_stall)"};
constexpr MetricInfo kHugeBlocks{
    "apu_memory_free_huge_blocks", MetricType::Gauge, "",
    "Free blocks of 2 MiB, a larger one counted as those it holds (/proc/buddyinfo)"};
constexpr std::array kMetrics{kSize,         kAvailable,   kUsed,        kGpu,       kArc,
                              kUnattributed, kMajorFaults, kRefaults,    kScanned,   kStolen,
                              kMigrated,     kThpSplits,   kCompactions, kHugeBlocks};

constexpr std::uint64_t kKib = 1024;

// --- the kinds

/// a - b, or 0 where b is larger: the counters are not read in one instant.
std::uint64_t minus(std::uint64_t a, std::uint64_t b) {
  return a > b ? a - b : 0;
}

/// Bytes of meminfo keys; a key that is not there counts 0, as the kernel has no such memory.
class Meminfo {
 public:
  explicit Meminfo(const KeyedNumbers& table) : table_(table) {}

  std::uint64_t operator()(std::string_view key) const { return table_.get_or_zero(key) * kKib; }

 private:
  const KeyedNumbers& table_;
};

std::uint64_t kernel_bytes(const Meminfo& mem) {
  // vmalloc'ed stacks stand in both of the last two, so the larger holds the smaller.
  return mem("Slab") + minus(mem("KReclaimable"), mem("SReclaimable")) + mem("PageTables") +
         mem("SecPageTables") + mem("Percpu") + mem("ShadowCallStack") + mem("Bounce") +
         mem("WritebackTmp") + std::max(mem("VmallocUsed"), mem("KernelStack"));
}

std::optional<std::uint64_t> compressed_pool_bytes(const MemoryFacts& facts, const Meminfo& mem) {
  if (const auto pages = facts.vmstat.get("nr_zspages")) {
    return *pages * facts.page_bytes;
  }
  if (!facts.zram_bytes && !facts.meminfo.get("Zswap")) {
    return std::nullopt;
  }
  return facts.zram_bytes.value_or(0) + mem("Zswap");
}

std::optional<std::uint64_t> gpu_bytes(const MemoryFacts& facts, const Meminfo& mem) {
  return facts.meminfo.get("GPUActive") ? std::optional(mem("GPUActive") + mem("GPUReclaim"))
                                        : std::nullopt;
}

std::uint64_t huge_page_bytes(const MemoryFacts& facts, const Meminfo& mem) {
  return facts.meminfo.get("Hugetlb")
             ? mem("Hugetlb")
             : facts.meminfo.get_or_zero("HugePages_Total") * mem("Hugepagesize");
}

/// Pages of no category of their own: huge pages, balloon, bad RAM, pages off the LRU lists for a
/// moment, and data that ZFS keeps in bare pages.
std::uint64_t other_bytes(const MemoryFacts& facts, const Meminfo& mem) {
  const std::uint64_t isolated =
      facts.vmstat.get_or_zero("nr_isolated_anon") + facts.vmstat.get_or_zero("nr_isolated_file");
  return huge_page_bytes(facts, mem) + mem("Balloon") + mem("HardwareCorrupted") +
         isolated * facts.page_bytes + facts.arc_scatter_bytes.value_or(0);
}

/// Adds the Unevictable list, where locked pages are, to anon and file as far as the totals of
/// either show that they are there, and the rest to other.
void add_unevictable(MemoryUse& use, const Meminfo& mem) {
  const std::uint64_t unevictable = mem("Unevictable");
  const std::uint64_t all_anon = mem("AnonPages") + mem("Shmem");
  const std::uint64_t all_file = minus(mem("Cached"), mem("Shmem")) + mem("Buffers");
  const std::uint64_t anon = std::min(unevictable, minus(all_anon, use.anon));
  const std::uint64_t file = std::min(unevictable - anon, minus(all_file, use.file));
  use.anon += anon;
  use.file += file;
  use.other += unevictable - anon - file;
}

std::uint64_t sum_of(const MemoryUse& use) {
  return use.anon + use.file + use.kernel + use.gpu.value_or(0) + use.zram.value_or(0) + use.other;
}

/// Takes `excess` off the kinds, those with the most overlap among the kernel's counters first.
void take_off(MemoryUse& use, std::uint64_t excess) {
  std::uint64_t none = 0;
  for (std::uint64_t* kind : {&use.kernel, &use.other, &use.file, &use.anon,
                              use.zram ? &*use.zram : &none, use.gpu ? &*use.gpu : &none}) {
    const std::uint64_t taken = std::min(*kind, excess);
    *kind -= taken;
    excess -= taken;
  }
}

// --- map

void add_memory_use(MetricWriter& metrics, const MemoryUse& use) {
  const std::pair<std::string_view, std::optional<std::uint64_t>> kinds[] = {
      {"anon", use.anon},
      {"file", use.file},
      {"kernel", use.kernel},
      {"gpu", use.gpu},
      {"zram", use.zram},
      {"other", use.other},
      {"unattributed", use.unattributed}};
  for (const auto& [kind, bytes] : kinds) {
    metrics.set(kUsed, {kind}, bytes);
  }
  metrics.set(kUnattributed, static_cast<double>(use.unattributed));
}

void add_meminfo(MetricWriter& metrics, const MemoryFacts& facts) {
  const auto bytes = [&](std::string_view key) -> std::optional<double> {
    const auto kib = facts.meminfo.get(key);
    return kib ? std::optional(static_cast<double>(*kib * kKib)) : std::nullopt;
  };
  metrics.set(kSize, bytes("MemTotal"));
  metrics.set(kAvailable, bytes("MemAvailable"));
  metrics.set(kGpu, {"active"}, bytes("GPUActive"));
  metrics.set(kGpu, {"reclaim"}, bytes("GPUReclaim"));
}

/// The refaults of anonymous or file pages. Before 5.9 the kernel did not tell them apart, and
/// counted those of file pages alone.
std::optional<std::uint64_t> refaults(const KeyedNumbers& vmstat, std::string_view kind) {
  const auto split = vmstat.get(fmt::format("workingset_refault_{}", kind));
  return split || kind != "file" ? split : vmstat.get("workingset_refault");
}

void add_vmstat(MetricWriter& metrics, const KeyedNumbers& vmstat) {
  metrics.set(kMajorFaults, vmstat.get("pgmajfault"));
  for (const char* kind : {"anon", "file"}) {
    metrics.set(kRefaults, {kind}, refaults(vmstat, kind));
  }
  for (const char* by : {"kswapd", "direct", "khugepaged"}) {
    metrics.set(kScanned, {by}, vmstat.get(fmt::format("pgscan_{}", by)));
    metrics.set(kStolen, {by}, vmstat.get(fmt::format("pgsteal_{}", by)));
  }
  metrics.set(kMigrated, vmstat.get("pgmigrate_success"));
  metrics.set(kThpSplits, vmstat.get("thp_split_page"));
  metrics.set(kCompactions, vmstat.get("compact_stall"));
}

// --- collect

/// A file, and where its numbers go.
struct Table {
  const char* file;
  KeyedNumbers (*parse)(std::string_view text);
  KeyedNumbers* numbers;
};

class MemoryCollector : public Collector {
 public:
  explicit MemoryCollector(const CollectorContext& context)
      : procfs_(context.roots.procfs), sysfs_(context.roots.sysfs), sources_(context.sources) {}

  Result<Snapshot> collect() override {
    MemoryFacts facts;
    facts.page_bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    int missing = 0;
    for (const Table& table : {Table{"meminfo", &parse_meminfo, &facts.meminfo},
                               Table{"vmstat", &parse_vmstat, &facts.vmstat}}) {
      const auto text = procfs_.read(table.file);
      // A captured host may have one of the two; without both there is no procfs.
      if (!text && text.error().kind == ErrorKind::kNotFound && ++missing == 1) {
        continue;
      }
      if (!sources_.note("procfs", text)) {
        return text.error();
      }
      *table.numbers = table.parse(*text);
      report_problems(sources_, "procfs", table.file, table.numbers->problems);
    }
    read_optional(facts);
    Families families = to_families(facts);
    return Snapshot{std::move(facts), std::move(families)};
  }

 private:
  void read_optional(MemoryFacts& facts) const {
    facts.arc_bytes = read_kstat("arcstats", "size");
    facts.arc_scatter_bytes = read_kstat("abdstats", "scatter_data_size");
    if (const auto text = procfs_.read("buddyinfo")) {
      const Buddyinfo info = parse_buddyinfo(*text);
      report_problems(sources_, "procfs", "buddyinfo", info.problems);
      if (info.problems.empty()) {
        facts.free_huge_blocks = info.free_huge_blocks;
      }
    }
    if (const auto zram = read_zram_usage(sysfs_)) {  // the swap collector reports its errors
      facts.zram_bytes = 0;
      for (const ZramUsage& usage : *zram) {
        *facts.zram_bytes += usage.memory_used_bytes;
      }
    }
  }

  [[nodiscard]] std::optional<std::uint64_t> read_kstat(const std::string& name,
                                                        std::string_view key) const {
    const std::string file = "spl/kstat/zfs/" + name;
    const auto text = procfs_.read(file);
    if (!text && text.error().kind == ErrorKind::kNotFound) {
      return std::nullopt;  // no ZFS
    }
    if (!sources_.note("zfs", text)) {
      return std::nullopt;
    }
    const KeyedNumbers kstat = parse_kstat(*text);
    report_problems(sources_, "zfs", file, kstat.problems);
    return kstat.get(key);
  }

  FileRoot procfs_;
  FileRoot sysfs_;
  SourceReporter sources_;
};

}  // namespace

std::optional<MemoryUse> memory_use(const MemoryFacts& facts) {
  const auto total = facts.meminfo.get("MemTotal");
  const auto free = facts.meminfo.get("MemFree");
  if (!total || !free || !facts.meminfo.problems.empty() || !facts.vmstat.problems.empty()) {
    return std::nullopt;
  }
  const Meminfo mem(facts.meminfo);
  MemoryUse use;
  use.anon = mem("Active(anon)") + mem("Inactive(anon)");
  use.file = mem("Active(file)") + mem("Inactive(file)");
  use.kernel = kernel_bytes(mem);
  use.gpu = gpu_bytes(facts, mem);
  use.zram = compressed_pool_bytes(facts, mem);
  use.other = other_bytes(facts, mem);
  add_unevictable(use, mem);
  const std::uint64_t used = minus(*total, *free) * kKib;
  take_off(use, minus(sum_of(use), used));
  use.unattributed = minus(used, sum_of(use));
  return use;
}

Families to_families(const MemoryFacts& facts) {
  MetricWriter metrics;
  add_meminfo(metrics, facts);
  if (const auto use = memory_use(facts)) {
    add_memory_use(metrics, *use);
  }
  metrics.set(kArc, facts.arc_bytes);
  add_vmstat(metrics, facts.vmstat);
  metrics.set(kHugeBlocks, facts.free_huge_blocks);
  return metrics.take();
}

std::span<const MetricInfo> memory_metrics() {
  return kMetrics;
}

std::unique_ptr<Collector> make_memory_collector(const CollectorContext& context) {
  return std::make_unique<MemoryCollector>(context);
}

}  // namespace apu
