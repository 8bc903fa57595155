#include "collectors/gpu_gem.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "collectors/parsers/gpu_devices.h"
#include "collectors/report.h"
#include "exporter/file_root.h"
#include "exporter/text.h"

namespace apu {
namespace {

using prometheus::MetricType;

constexpr MetricInfo kBytes{
    "apu_gpu_gem_bytes", MetricType::Gauge, "gpu,placement",
    "Size of graphics clients' objects by where they lie, unknown if locked at that moment; one "
    "that "
    "several share counts for each, KFD's memory for none (debugfs dri/*/amdgpu_gem_info)"};
constexpr MetricInfo kObjects{
    "apu_gpu_gem_objects", MetricType::Gauge, "gpu,placement",
    "Objects of graphics clients by where they lie; absent where none lies (debugfs "
    "dri/*/amdgpu_gem_info)"};
constexpr MetricInfo kClients{"apu_gpu_gem_clients", MetricType::Gauge, "gpu",
                              "Open files of the GPU, of which a process may have several (debugfs "
                              "dri/*/amdgpu_gem_info)"};
constexpr std::array kMetrics{kBytes, kObjects, kClients};

struct PlacementName {
  GemPlacement placement;
  std::string_view word;  ///< as the kernel prints it, without padding
  std::string_view label;
};

// A word stands before one that it begins with.
constexpr std::array<PlacementName, kGemPlacements> kPlacementNames{{
    {GemPlacement::kVisibleVram, "VRAM VISIBLE", "visible_vram"},
    {GemPlacement::kVram, "VRAM", "vram"},
    {GemPlacement::kGtt, "GTT", "gtt"},
    {GemPlacement::kCpu, "CPU", "cpu"},
    {GemPlacement::kGds, "GDS", "gds"},
    {GemPlacement::kGws, "GWS", "gws"},
    {GemPlacement::kOa, "OA", "oa"},
    {GemPlacement::kPreemptible, "PREEMPTIBLE", "preemptible"},
    {GemPlacement::kDoorbell, "DOORBELL", "doorbell"},
    {GemPlacement::kMmioRemap, "MMIO REMAP", "mmio_remap"},
    {GemPlacement::kNone, "NONE", "none"},
    {GemPlacement::kUnknown, "UNKNOWN", "unknown"},
}};

constexpr std::string_view kBlanks = " \t";

// --- parse

constexpr std::string_view kHead = "pid ";
constexpr std::string_view kCommand = " command ";

bool starts_with_blank(std::string_view text) {
  return !text.empty() && kBlanks.find(text.front()) != std::string_view::npos;
}

/// Removes the pid and what stands around it from a client's line.
std::optional<std::int64_t> take_pid(std::string_view& line) {
  constexpr size_t kWidth = 8;  // a name cannot hold a whole line that is so wide
  const size_t end = line.find(kCommand);
  if (!line.starts_with(kHead) || end == std::string_view::npos || end < kHead.size() + kWidth) {
    return std::nullopt;
  }
  const auto pid = parse_number<std::int64_t>(trim(line.substr(kHead.size(), end - kHead.size())));
  line.remove_prefix(end + kCommand.size());
  return pid && *pid >= 0 ? pid : std::nullopt;
}

bool is_object(std::string_view line) {
  return starts_with_blank(line) && trim(line).starts_with("0x");
}

/// Removes "0x0000002a:" of at least eight digits.
bool consume_handle(std::string_view& text) {
  constexpr size_t kDigits = 8;
  if (!consume(text, "0x")) {
    return false;
  }
  const size_t digits = text.find_first_not_of("0123456789abcdef");
  if (digits == std::string_view::npos || digits < kDigits) {
    return false;
  }
  text.remove_prefix(digits);
  return consume(text, ":");
}

/// Removes the number of bytes and the word behind it.
std::optional<std::uint64_t> take_size(std::string_view& text) {
  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 48U;  // no address space has more
  if (!starts_with_blank(text)) {
    return std::nullopt;
  }
  text = trim(text);
  const auto size = take_unsigned(text);
  return size && *size <= kMostBytes && consume(text, " byte") ? size : std::nullopt;
}

std::optional<GemPlacement> parse_placement(std::string_view text) {
  if (!starts_with_blank(text)) {
    return std::nullopt;
  }
  text = trim(text);
  for (const PlacementName& name : kPlacementNames) {
    std::string_view rest = text;
    if (consume(rest, name.word) && (rest.empty() || starts_with_blank(rest))) {
      return name.placement;
    }
  }
  return std::nullopt;
}

struct GemObject {
  std::uint64_t bytes = 0;
  GemPlacement placement = GemPlacement::kUnknown;
};

std::optional<GemObject> parse_object(std::string_view line) {
  std::string_view rest = trim(line);
  const auto bytes = consume_handle(rest) ? take_size(rest) : std::nullopt;
  const auto placement = parse_placement(rest);
  return bytes && placement ? std::optional(GemObject{*bytes, *placement}) : std::nullopt;
}

void add(GemUses& uses, const GemObject& object) {
  uses[object.placement].objects += 1;
  uses[object.placement].bytes += object.bytes;
}

// --- collect

class GpuGemCollector : public Collector {
 public:
  explicit GpuGemCollector(const CollectorContext& context)
      : debugfs_(context.roots.debugfs), sysfs_(context.roots.sysfs), sources_(context.sources) {}

  Result<Snapshot> collect() override {
    const auto devices = read_gpu_devices(sysfs_);
    if (!devices) {
      sources_.unavailable(kSource, devices.error().kind);
      return devices.error();
    }
    GpuGemFacts facts;
    Status problem;
    for (const GpuDevice& device : *devices) {
      if (Status failed = read_gpu(facts, device)) {
        problem = std::move(failed);
      }
    }
    sources_.note(kSource, problem);
    if (problem && facts.gpus.empty()) {
      return *problem;
    }
    Families families = to_families(facts);
    return Snapshot{std::move(facts), std::move(families)};
  }

 private:
  Status read_gpu(GpuGemFacts& facts, const GpuDevice& device) const {
    Status problem;
    for (const std::string& directory : device.debug_directories()) {
      problem = read_file(facts, device, directory + "/amdgpu_gem_info");
      if (!problem || problem->kind != ErrorKind::kNotFound) {
        break;
      }
    }
    return problem;
  }

  Status read_file(GpuGemFacts& facts, const GpuDevice& device, const std::string& file) const {
    GemInfoReader reader;
    Status problem =
        debugfs_.for_each_line(file, [&](std::string_view line) { reader.take(line); });
    if (!problem) {
      facts.gpus.push_back({device.pci_address, reader.finish()});
      report_problems(sources_, kSource, file, facts.gpus.back().info.problems);
    }
    return problem;
  }

  static constexpr const char* kSource = "gem_info";

  FileRoot debugfs_;
  FileRoot sysfs_;
  SourceReporter sources_;
};

}  // namespace

void GemInfoReader::take(std::string_view line) {
  ++line_number_;
  const bool in_name = open_name_line_ != 0;
  std::string_view rest = line;
  if (in_name && line.ends_with(':') && !take_pid(rest)) {
    info_.clients.back().comm.append("\n").append(line.substr(0, line.size() - 1));
    open_name_line_ = 0;
  } else if (line.starts_with(kHead)) {
    end_name();
    begin_client(line);
  } else if (is_object(line)) {
    end_name();
    take_object(line);
  }
}

void GemInfoReader::begin_client(std::string_view line) {
  GemClient client;
  std::string_view name = line;
  client.pid = take_pid(name);
  if (!client.pid) {
    add_problem(line_number_, "no client in", line);
  } else if (name.ends_with(':')) {
    client.comm = name.substr(0, name.size() - 1);
  } else {
    client.comm = name;
    open_name_line_ = line_number_;
  }
  info_.clients.push_back(std::move(client));
}

void GemInfoReader::end_name() {
  if (open_name_line_ != 0) {
    add_problem(open_name_line_, "no end of the name", info_.clients.back().comm);
    open_name_line_ = 0;
  }
}

void GemInfoReader::take_object(std::string_view line) {
  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 63U;
  const auto object = parse_object(line);
  if (!object) {
    add_problem(line_number_, "no object in", line);
  } else if (info_.clients.empty()) {
    add_problem(line_number_, "no client has", line);
  } else if (info_.total[object->placement].bytes > kMostBytes - object->bytes) {
    add_problem(line_number_, "too large a sum with", line);
  } else {
    add(info_.clients.back().uses, *object);
    add(info_.total, *object);
  }
}

void GemInfoReader::add_problem(int line_number, std::string_view what, std::string_view line) {
  constexpr size_t kShownBytes = 100;
  info_.problems.push_back(
      {line_number, fmt::format("{} '{}'", what, line.substr(0, kShownBytes))});
}

GemInfo GemInfoReader::finish() {
  end_name();
  return std::move(info_);
}

GemInfo parse_gem_info(std::string_view text) {
  GemInfoReader reader;
  for_each_line(text, [&](std::string_view line) { reader.take(line); });
  return reader.finish();
}

Families to_families(const GpuGemFacts& facts) {
  MetricWriter metrics;
  for (const GpuGem& gpu : facts.gpus) {
    for (const PlacementName& name : kPlacementNames) {
      const GemUse& use = gpu.info.total[name.placement];
      if (use.objects > 0) {
        metrics.set(kBytes, {gpu.gpu, name.label}, static_cast<double>(use.bytes));
        metrics.set(kObjects, {gpu.gpu, name.label}, static_cast<double>(use.objects));
      }
    }
    metrics.set(kClients, {gpu.gpu}, static_cast<double>(gpu.info.clients.size()));
  }
  return metrics.take();
}

std::span<const MetricInfo> gpu_gem_metrics() {
  return kMetrics;
}

std::unique_ptr<Collector> make_gpu_gem_collector(const CollectorContext& context) {
  return std::make_unique<GpuGemCollector>(context);
}

}  // namespace apu
