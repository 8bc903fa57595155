#include "collectors/gpu.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "collectors/parsers/driver_number.h"
#include "collectors/parsers/kfd_topology.h"
#include "exporter/file_root.h"
#include "exporter/text.h"

namespace apu {
namespace {

using prometheus::MetricType;

constexpr MetricInfo kInfo{
    "apu_gpu_info", MetricType::Gauge, "gpu,card,pci_id,gfx_target,unified_memory",
    "1, with the GPU's DRM card, PCI vendor and device, gfx target, and whether it shares memory "
    "with the CPU (/sys/class/drm, /sys/class/kfd/kfd/topology)"};
constexpr MetricInfo kSize{
    "apu_gpu_memory_size_bytes", MetricType::Gauge, "gpu,pool",
    "Size of the GPU's memory pool; gtt is system memory, and on an APU where models lie "
    "(/sys/class/drm/card*/device/mem_info_*_total)"};
constexpr MetricInfo kUsed{
    "apu_gpu_memory_used_bytes", MetricType::Gauge, "gpu,pool",
    "Buffers that are in the GPU's memory pool now; gtt counts neither userptr nor SVM memory "
    "(/sys/class/drm/card*/device/mem_info_*_used)"};
constexpr MetricInfo kUserptr{
    "apu_gpu_userptr_bound_bytes", MetricType::Gauge, "gpu",
    "Memory of processes that the GPU has bound as userptr buffers; falls and rises as they are "
    "evicted and restored (/sys/class/drm/card*/device/mem_info_preempt_used)"};
constexpr MetricInfo kSuspended{
    "apu_gpu_suspended", MetricType::Gauge, "gpu",
    "1 while the GPU is suspended at run time, or on its way there or back; nothing that would "
    "wake it is read then (/sys/class/drm/card*/device/power/runtime_status)"};
constexpr MetricInfo kParameters{
    "apu_gpu_parameters_info", MetricType::Gauge,
    "gttsize,vramlimit,ttm_pages_limit,ttm_page_pool_size,no_system_mem_limit,noretry,"
    "debug_evictions,svm_default_granularity",
    "1, with parameters of the driver as the kernel shows them, empty where one cannot be read "
    "(/sys/module/amdgpu/parameters, /sys/module/ttm/parameters)"};
constexpr MetricInfo kPagesLimit{
    "apu_ttm_pages_limit_bytes", MetricType::Gauge, "",
    "System memory that all GPUs may hold (/sys/module/ttm/parameters/pages_limit)"};
constexpr std::array kMetrics{kInfo, kSize, kUsed, kUserptr, kSuspended, kParameters, kPagesLimit};

// --- map

std::string_view to_label(const std::optional<bool>& unified) {
  return !unified ? "unknown" : *unified ? "true" : "false";
}

void add_gpu(MetricWriter& metrics, const Gpu& gpu) {
  const std::string& address = gpu.device.pci_address;
  metrics.set(
      kInfo,
      {address, gpu.device.card, gpu.device.pci_id, gpu.gfx_target, to_label(gpu.unified_memory)},
      1);
  const std::pair<std::string_view, const GpuMemoryPool*> pools[] = {
      {"vram", &gpu.vram}, {"visible_vram", &gpu.visible_vram}, {"gtt", &gpu.gtt}};
  for (const auto& [name, pool] : pools) {
    metrics.set(kSize, {address, name}, pool->size_bytes);
    metrics.set(kUsed, {address, name}, pool->used_bytes);
  }
  metrics.set(kUserptr, {address}, gpu.userptr_bound_bytes);
  metrics.set(kSuspended, {address}, gpu.suspended);
}

bool any_told(const GpuParameters& told) {
  for (const std::string* value :
       {&told.gttsize, &told.vramlimit, &told.ttm_pages_limit, &told.ttm_page_pool_size,
        &told.no_system_mem_limit, &told.noretry, &told.debug_evictions,
        &told.svm_default_granularity}) {
    if (!value->empty()) {
      return true;
    }
  }
  return false;
}

// --- collect

class GpuCollector : public Collector {
 public:
  explicit GpuCollector(const CollectorContext& context)
      : sysfs_(context.roots.sysfs),
        sources_(context.sources),
        topology_(sysfs_, context.sources) {}

  Result<Snapshot> collect() override {
    const auto devices = read_gpu_devices(sysfs_);
    if (!devices) {
      sources_.unavailable(kSource, devices.error().kind);
      return devices.error();
    }
    problem_.reset();
    const auto& nodes = topology_.refresh();
    GpuFacts facts;
    facts.page_bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    for (const GpuDevice& device : *devices) {
      facts.gpus.push_back(read_gpu(device, find_node(nodes, device)));
    }
    read_parameters(facts);
    sources_.note(kSource, problem_);
    Families families = to_families(facts);
    return Snapshot{std::move(facts), std::move(families)};
  }

 private:
  Gpu read_gpu(const GpuDevice& device, const KfdGpuNode* node) {
    Gpu gpu;
    gpu.device = device;
    gpu.gfx_target = node == nullptr ? std::string() : node->gfx_target;
    gpu.unified_memory = has_unified_memory(gpu.gfx_target);
    gpu.suspended = read_runtime_suspended(sysfs_, device);
    const std::string prefix = device.directory() + "/mem_info_";
    gpu.vram = read_pool(prefix + "vram");
    gpu.visible_vram = read_pool(prefix + "vis_vram");
    gpu.gtt = read_pool(prefix + "gtt");
    gpu.userptr_bound_bytes = read_number(prefix + "preempt_used");
    return gpu;
  }

  GpuMemoryPool read_pool(const std::string& prefix) {
    GpuMemoryPool pool{read_number(prefix + "_total"), read_number(prefix + "_used")};
    const auto used = pool.used_bytes;
    if (drop_impossible(pool)) {
      sources_.parse_error(kSource, fmt::format("{}_used:1: {} bytes in use of {}", prefix, *used,
                                                *pool.size_bytes));
    }
    return pool;
  }

  std::optional<std::uint64_t> read_number(const std::string& file) {
    const auto text = sysfs_.read(file);
    if (!text) {
      if (text.error().kind != ErrorKind::kNotFound) {  // else an older kernel, or it just left
        problem_ = text.error();
      }
      return std::nullopt;
    }
    const auto number = parse_driver_number(*text);
    if (!number) {
      sources_.parse_error(kSource, fmt::format("{}:1: no number in '{}'", file, *text));
    }
    return number;
  }

  /// A parameter as the kernel shows it. Empty if it cannot be read: some are for root alone.
  [[nodiscard]] std::string parameter(std::string_view module, std::string_view name) const {
    constexpr size_t kMaxLabel = 64;
    const auto text = sysfs_.read(fmt::format("module/{}/parameters/{}", module, name));
    return text ? std::string(trim(first_line(*text)).substr(0, kMaxLabel)) : std::string();
  }

  void read_parameters(GpuFacts& facts) {
    // The driver of the amdgpu-dkms package brings its own TTM.
    const std::string ttm = sysfs_.exists("module/amdttm") ? "amdttm" : "ttm";
    facts.parameters = {parameter("amdgpu", "gttsize"),
                        parameter("amdgpu", "vramlimit"),
                        parameter(ttm, "pages_limit"),
                        parameter(ttm, "page_pool_size"),
                        parameter("amdgpu", "no_system_mem_limit"),
                        parameter("amdgpu", "noretry"),
                        parameter("amdgpu", "debug_evictions"),
                        parameter("amdgpu", "svm_default_granularity")};
    facts.ttm_pages_limit = read_number(fmt::format("module/{}/parameters/pages_limit", ttm));
  }

  static constexpr const char* kSource = "amdgpu";

  FileRoot sysfs_;
  SourceReporter sources_;
  KfdTopology topology_;
  Status problem_;  // why a file of this pass could not be read, the last one
};

}  // namespace

bool drop_impossible(GpuMemoryPool& pool) {
  const bool impossible = pool.size_bytes && pool.used_bytes && *pool.used_bytes > *pool.size_bytes;
  if (impossible) {
    pool.used_bytes.reset();
  }
  return impossible;
}

Families to_families(const GpuFacts& facts) {
  MetricWriter metrics;
  for (const Gpu& gpu : facts.gpus) {
    add_gpu(metrics, gpu);
  }
  const GpuParameters& told = facts.parameters;
  if (any_told(told)) {
    metrics.set(kParameters,
                {told.gttsize, told.vramlimit, told.ttm_pages_limit, told.ttm_page_pool_size,
                 told.no_system_mem_limit, told.noretry, told.debug_evictions,
                 told.svm_default_granularity},
                1);
  }
  if (facts.ttm_pages_limit) {
    metrics.set(kPagesLimit, static_cast<double>(*facts.ttm_pages_limit) *
                                 static_cast<double>(facts.page_bytes));
  }
  return metrics.take();
}

std::span<const MetricInfo> gpu_metrics() {
  return kMetrics;
}

std::unique_ptr<Collector> make_gpu_collector(const CollectorContext& context) {
  return std::make_unique<GpuCollector>(context);
}

}  // namespace apu
