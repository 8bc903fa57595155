#include "collectors/swap.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "collectors/parsers/keyed_numbers.h"
#include "collectors/report.h"
#include "exporter/file_root.h"
#include "exporter/text.h"

namespace apu {
namespace {

using prometheus::MetricType;

constexpr MetricInfo kSize{"apu_swap_size_bytes", MetricType::Gauge, "device,kind",
                           "Size of the swap device (/proc/swaps)"};
constexpr MetricInfo kUsed{"apu_swap_used_bytes", MetricType::Gauge, "device,kind",
                           "Used part of the swap device (/proc/swaps)"};
constexpr MetricInfo kZram{"apu_zram_memory_used_bytes", MetricType::Gauge, "device",
                           "RAM that the zram device costs (/sys/block/zram*/mm_stat)"};
constexpr MetricInfo kIn{"apu_swap_in_bytes_total", MetricType::Counter, "",
                         "Read back from swap since boot (/proc/vmstat pswpin)"};
constexpr MetricInfo kOut{"apu_swap_out_bytes_total", MetricType::Counter, "",
                          "Written to swap since boot (/proc/vmstat pswpout)"};
constexpr MetricInfo kSwappiness{
    "apu_vm_swappiness", MetricType::Gauge, "",
    "Preference for reclaiming anonymous pages, 0 to 200; each page that the GPU has mapped and "
    "that is swapped out stops queues (/proc/sys/vm/swappiness)"};
constexpr std::array kMetrics{kSize, kUsed, kZram, kIn, kOut, kSwappiness};

constexpr double kKib = 1024;

// --- parse

bool is_zram_device(std::string_view path) {
  return consume(path, "/dev/zram") && parse_number<unsigned>(path).has_value();
}

std::optional<SwapKind> kind_of(std::string_view path, std::string_view type) {
  if (type == "file") {
    return SwapKind::kFile;
  }
  if (type != "partition") {
    return std::nullopt;
  }
  return is_zram_device(path) ? SwapKind::kZram : SwapKind::kPartition;
}

std::optional<SwapDevice> parse_row(std::string_view row) {
  constexpr size_t kColumns = 5;
  const auto fields = split_fields(row);
  if (fields.size() < kColumns) {
    return std::nullopt;
  }
  const auto kind = kind_of(fields[0], fields[1]);
  const auto size = parse_number<std::uint64_t>(fields[2]);
  const auto used = parse_number<std::uint64_t>(fields[3]);
  if (!kind || !size || !used) {
    return std::nullopt;
  }
  return SwapDevice{unescape_octal(fields[0]), *kind, *size, *used};
}

// --- map

std::string_view to_label(SwapKind kind) {
  switch (kind) {
    case SwapKind::kPartition:
      return "partition";
    case SwapKind::kFile:
      return "file";
    case SwapKind::kZram:
      break;
  }
  return "zram";
}

std::optional<double> to_bytes(const std::optional<std::uint64_t>& pages,
                               std::uint64_t page_bytes) {
  return pages ? std::optional(static_cast<double>(*pages) * static_cast<double>(page_bytes))
               : std::nullopt;
}

// --- collect

class SwapCollector : public Collector {
 public:
  explicit SwapCollector(const CollectorContext& context)
      : procfs_(context.roots.procfs), sysfs_(context.roots.sysfs), sources_(context.sources) {}

  Result<Snapshot> collect() override {
    SwapFacts facts;
    facts.page_bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    if (const Status error = read_vmstat(facts)) {
      sources_.unavailable("procfs", error->kind);
      return *error;
    }
    sources_.available("procfs");
    if (const Status error = read_devices(facts)) {
      return *error;
    }
    read_swappiness(facts);
    Families families = to_families(facts);
    return Snapshot{std::move(facts), std::move(families)};
  }

 private:
  Status read_vmstat(SwapFacts& facts) const {
    const auto text = procfs_.read("vmstat");
    if (!text) {
      return text.error();
    }
    const KeyedNumbers vmstat = parse_vmstat(*text);
    report_problems(sources_, "procfs", "vmstat", vmstat.problems);
    facts.swapped_in_pages = vmstat.get("pswpin");
    facts.swapped_out_pages = vmstat.get("pswpout");
    return std::nullopt;
  }

  Status read_devices(SwapFacts& facts) const {
    const auto text = procfs_.read("swaps");
    if (text) {
      Swaps swaps = parse_swaps(*text);
      report_problems(sources_, "procfs", "swaps", swaps.problems);
      facts.devices = std::move(swaps.devices);
    } else if (text.error().kind != ErrorKind::kNotFound) {
      return text.error();
    }
    auto zram = read_zram_usage(sysfs_);
    if (zram) {
      facts.zram = *std::move(zram);
    } else if (zram.error().kind == ErrorKind::kMalformed) {
      sources_.parse_error("sysfs", zram.error().message);
    } else if (zram.error().kind != ErrorKind::kNotFound) {
      return zram.error();
    }
    return std::nullopt;
  }

  void read_swappiness(SwapFacts& facts) const {
    const auto text = procfs_.read("sys/vm/swappiness");
    if (!text) {
      return;  // hidden in some containers
    }
    facts.swappiness = parse_number<std::uint64_t>(first_line(*text));
    if (!facts.swappiness) {
      sources_.parse_error("procfs", fmt::format("sys/vm/swappiness:1: no number in '{}'", *text));
    }
  }

  FileRoot procfs_;
  FileRoot sysfs_;
  SourceReporter sources_;
};

}  // namespace

Swaps parse_swaps(std::string_view text) {
  Swaps swaps;
  int line_number = 0;
  for_each_line(text, [&](std::string_view line) {
    if (++line_number == 1) {
      return;
    }
    if (auto device = parse_row(line)) {
      swaps.devices.push_back(*std::move(device));
    } else {
      swaps.problems.push_back({line_number, fmt::format("not a swap device: '{}'", line)});
    }
  });
  return swaps;
}

Families to_families(const SwapFacts& facts) {
  MetricWriter metrics;
  for (const SwapDevice& device : facts.devices) {
    const std::string_view kind = to_label(device.kind);
    metrics.set(kSize, {device.name, kind}, static_cast<double>(device.size_kib) * kKib);
    metrics.set(kUsed, {device.name, kind}, static_cast<double>(device.used_kib) * kKib);
  }
  for (const ZramUsage& zram : facts.zram) {
    metrics.set(kZram, {"/dev/" + zram.device}, static_cast<double>(zram.memory_used_bytes));
  }
  metrics.set(kIn, to_bytes(facts.swapped_in_pages, facts.page_bytes));
  metrics.set(kOut, to_bytes(facts.swapped_out_pages, facts.page_bytes));
  metrics.set(kSwappiness, facts.swappiness);
  return metrics.take();
}

std::span<const MetricInfo> swap_metrics() {
  return kMetrics;
}

std::unique_ptr<Collector> make_swap_collector(const CollectorContext& context) {
  return std::make_unique<SwapCollector>(context);
}

}  // namespace apu
