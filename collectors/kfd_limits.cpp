#include "collectors/kfd_limits.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "collectors/parsers/driver_number.h"
#include "collectors/parsers/gpu_devices.h"
#include "collectors/report.h"
#include "exporter/file_root.h"
#include "exporter/text.h"

namespace apu {
namespace {

using prometheus::MetricType;

constexpr MetricInfo kLimit{
    "apu_kfd_memory_limit_bytes", MetricType::Gauge, "kind",
    "KFD refuses memory over this; system counts all that it charges, ttm what lies in GTT "
    "(debugfs kfd/mem_limit)"};
constexpr MetricInfo kUsed{
    "apu_kfd_memory_used_bytes", MetricType::Gauge, "kind",
    "Memory that KFD has charged, SVM ranges by their full size; may pass the limit with "
    "no_system_mem_limit, and fall below 0 by KFD's own errors (debugfs kfd/mem_limit)"};
constexpr MetricInfo kPool{"apu_ttm_pool_bytes", MetricType::Gauge, "",
                           "Free pages that TTM keeps for GPUs and no process holds (debugfs "
                           "ttm/page_pool)"};
constexpr MetricInfo kGttSize{
    "apu_gtt_manager_size_bytes", MetricType::Gauge, "gpu",
    "Size of GTT as its manager has it; a cross-check of apu_gpu_memory_size_bytes (debugfs "
    "dri/*/amdgpu_gtt_mm)"};
constexpr MetricInfo kGttUsed{
    "apu_gtt_manager_used_bytes", MetricType::Gauge, "gpu",
    "Use of GTT as its manager has it; a cross-check of apu_gpu_memory_used_bytes (debugfs "
    "dri/*/amdgpu_gtt_mm)"};
constexpr std::array kMetrics{kLimit, kUsed, kPool, kGttSize, kGttUsed};

constexpr double kMib = 1048576;

// --- parse

/// Parses "70894M out of 124456M".
std::optional<KfdMemoryAccount> parse_account(std::string_view text) {
  constexpr std::uint64_t kMostMib = std::uint64_t{1} << 43U;  // 2^63 bytes: what is above wrapped
  constexpr std::string_view kBetween = "M out of ";
  const size_t between = text.find(kBetween);
  if (between == std::string_view::npos || !text.ends_with('M')) {
    return std::nullopt;
  }
  const auto used = parse_number<std::int64_t>(text.substr(0, between));
  std::string_view rest = text.substr(between + kBetween.size());
  rest.remove_suffix(1);
  const auto limit = parse_number<std::uint64_t>(rest);
  const auto most = static_cast<std::int64_t>(kMostMib);
  if (!used || !limit || *limit >= kMostMib || *used >= most || *used <= -most) {
    return std::nullopt;
  }
  return KfdMemoryAccount{*used, *limit};
}

/// Parses the rest of a total line, "     128 of 29360128".
std::optional<TtmPagePool> parse_total(std::string_view text) {
  const auto fields = split_fields(text);
  if (fields.size() != 3 || fields[1] != "of") {
    return std::nullopt;
  }
  const auto pages = parse_bare_number(fields[0]);
  const auto limit = parse_bare_number(fields[2]);
  return pages && limit ? std::optional(TtmPagePool{*pages, *limit}) : std::nullopt;
}

/// The number after `key` in a line of amdgpu_gtt_mm.
std::optional<std::uint64_t> number_after(std::string_view line, std::string_view key) {
  const size_t start = line.find(key);
  if (start == std::string_view::npos) {
    return std::nullopt;
  }
  std::string_view rest = line.substr(start + key.size());
  return take_unsigned(rest);
}

/// `number` of units as bytes; nullopt if there is none, or it does not fit.
std::optional<std::uint64_t> to_bytes(const std::optional<std::uint64_t>& number,
                                      std::uint64_t unit_bytes) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 63U;
  return number && *number < kMost / unit_bytes ? std::optional(*number * unit_bytes)
                                                : std::nullopt;
}

/// A line of the layouts before 5.19.
std::optional<GttManager> parse_pages_line(std::string_view line, std::uint64_t page_bytes) {
  constexpr std::uint64_t kMegabyte = 1048576;
  const auto size = to_bytes(number_after(line, "man size:"), page_bytes);
  const auto in_pages = to_bytes(number_after(line, "gtt used:"), page_bytes);
  const auto used = in_pages ? in_pages : to_bytes(number_after(line, "usage:"), kMegabyte);
  return size && used ? std::optional(GttManager{*size, *used}) : std::nullopt;
}

// --- map

void add_account(MetricWriter& metrics, std::string_view kind,
                 const std::optional<KfdMemoryAccount>& account) {
  if (account) {
    metrics.set(kLimit, {kind}, static_cast<double>(account->limit_mib) * kMib);
    metrics.set(kUsed, {kind}, static_cast<double>(account->used_mib) * kMib);
  }
}

// --- collect

class KfdLimitsCollector : public Collector {
 public:
  explicit KfdLimitsCollector(const CollectorContext& context)
      : debugfs_(context.roots.debugfs), sysfs_(context.roots.sysfs), sources_(context.sources) {}

  Result<Snapshot> collect() override {
    KfdLimitsFacts facts;
    facts.page_bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    const Status problem = read_mem_limit(facts);
    sources_.note(kSource, problem);
    read_page_pool(facts);
    read_gtt(facts);
    if (problem && !facts.page_pool) {
      return *problem;
    }
    Families families = to_families(facts);
    return Snapshot{std::move(facts), std::move(families)};
  }

 private:
  Status read_mem_limit(KfdLimitsFacts& facts) const {
    constexpr const char* kFile = "kfd/mem_limit";
    const auto text = debugfs_.read(kFile);
    if (!text) {
      return text.error();
    }
    facts.mem_limit = parse_kfd_mem_limit(*text);
    report_problems(sources_, kSource, kFile, facts.mem_limit->problems);
    return std::nullopt;
  }

  void read_page_pool(KfdLimitsFacts& facts) const {
    const auto text = debugfs_.read("ttm/page_pool");
    if (!text) {
      return;  // kfd/mem_limit needs no less, so its reason says why
    }
    const auto pool = parse_ttm_page_pool(*text);
    if (pool) {
      facts.page_pool = *pool;
    } else {
      sources_.parse_error(kSource, "ttm/" + pool.error().message);
    }
  }

  void read_gtt(KfdLimitsFacts& facts) const {
    const auto devices = read_gpu_devices(sysfs_);
    if (!devices) {
      return;
    }
    for (const GpuDevice& device : *devices) {
      for (const std::string& directory : device.debug_directories()) {
        const std::string file = directory + "/amdgpu_gtt_mm";
        if (const auto text = debugfs_.read(file)) {
          add_gtt(facts, device, file, *text);
          break;
        }
      }
    }
  }

  void add_gtt(KfdLimitsFacts& facts, const GpuDevice& device, const std::string& file,
               std::string_view text) const {
    const auto manager = parse_gtt_mm(text, facts.page_bytes);
    if (manager) {
      facts.gtt.push_back({device.pci_address, *manager});
    } else {
      sources_.parse_error(kSource, fmt::format("{}: {}", file, manager.error().message));
    }
  }

  static constexpr const char* kSource = "debugfs";

  FileRoot debugfs_;
  FileRoot sysfs_;
  SourceReporter sources_;
};

}  // namespace

KfdMemLimit parse_kfd_mem_limit(std::string_view text) {
  KfdMemLimit limits;
  int line_number = 0;
  for_each_line(text, [&](std::string_view line) {
    ++line_number;
    std::string_view rest = line;
    const bool system = consume(rest, "System mem used ");
    if (!system && !consume(rest, "TTM mem used ")) {
      return;
    }
    auto& target = system ? limits.system : limits.ttm;
    const auto account = parse_account(rest);
    if (!account || target) {
      limits.problems.push_back({line_number, fmt::format("malformed or repeated '{}'", line)});
    } else {
      target = account;
    }
  });
  if ((!limits.system || !limits.ttm) && limits.problems.empty()) {
    limits.problems.push_back({line_number, "not both a 'System' and a 'TTM' line"});
  }
  return limits;
}

Result<TtmPagePool> parse_ttm_page_pool(std::string_view text) {
  std::optional<TtmPagePool> sum;
  Status problem;
  int line_number = 0;
  for_each_line(text, [&](std::string_view line) {
    ++line_number;
    std::string_view rest = line;
    if (!consume(rest, "total")) {
      return;
    }
    rest = trim(rest);
    const auto total = consume(rest, ":") ? parse_total(rest) : std::nullopt;
    if (!total) {
      problem = Error{ErrorKind::kMalformed,
                      fmt::format("page_pool:{}: no total in '{}'", line_number, line)};
      return;
    }
    sum = TtmPagePool{sum.value_or(TtmPagePool{}).pages + total->pages,
                      sum.value_or(TtmPagePool{}).limit_pages + total->limit_pages};
  });
  if (problem) {
    return *problem;
  }
  if (!sum) {
    return Error{ErrorKind::kMalformed, "page_pool:1: no total line"};
  }
  return *sum;
}

Result<GttManager> parse_gtt_mm(std::string_view text, std::uint64_t page_bytes) {
  std::optional<std::uint64_t> size;
  std::optional<std::uint64_t> used;
  std::optional<GttManager> in_pages;
  for_each_line(text, [&](std::string_view line) {
    std::string_view rest = trim(line);
    if (consume(rest, "size:")) {
      size = parse_bare_number(trim(rest));
    } else if (consume(rest, "usage:")) {
      used = parse_bare_number(trim(rest));
    } else if (rest.starts_with("man size:")) {
      in_pages = parse_pages_line(rest, page_bytes);
    }
  });
  if (size && used) {
    return GttManager{*size, *used};
  }
  if (in_pages) {
    return *in_pages;
  }
  return Error{ErrorKind::kMalformed, "no size and use of GTT"};
}

Families to_families(const KfdLimitsFacts& facts) {
  MetricWriter metrics;
  if (facts.mem_limit) {
    add_account(metrics, "system", facts.mem_limit->system);
    add_account(metrics, "ttm", facts.mem_limit->ttm);
  }
  if (facts.page_pool) {
    metrics.set(
        kPool, static_cast<double>(facts.page_pool->pages) * static_cast<double>(facts.page_bytes));
  }
  for (const GpuGtt& gtt : facts.gtt) {
    metrics.set(kGttSize, {gtt.gpu}, static_cast<double>(gtt.manager.size_bytes));
    metrics.set(kGttUsed, {gtt.gpu}, static_cast<double>(gtt.manager.used_bytes));
  }
  return metrics.take();
}

std::span<const MetricInfo> kfd_limits_metrics() {
  return kMetrics;
}

std::unique_ptr<Collector> make_kfd_limits_collector(const CollectorContext& context) {
  return std::make_unique<KfdLimitsCollector>(context);
}

}  // namespace apu
