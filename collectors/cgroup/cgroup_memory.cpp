#include "collectors/cgroup/cgroup_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "collectors/cgroup/protection.h"
#include "collectors/parsers/keyed_numbers.h"
#include "collectors/report.h"
#include "exporter/text.h"

namespace apu {
namespace {

constexpr const char* kSource = "cgroup2";

// From here on it is no size, but a counter that fell below 0.
constexpr std::uint64_t kWrapped = std::uint64_t{1} << 63U;

/// nullopt where one is not known, or the sum is no number.
std::optional<std::uint64_t> sum_of(const std::optional<std::uint64_t>& a,
                                    const std::optional<std::uint64_t>& b) {
  constexpr auto kMost = std::numeric_limits<std::uint64_t>::max();
  return a && b && *b <= kMost - *a ? std::optional(*a + *b) : std::nullopt;
}

/// A number that "max" is greater than.
std::uint64_t bytes_of(const MemoryLimit& limit) {
  return limit.bytes.value_or(std::numeric_limits<std::uint64_t>::max());
}

}  // namespace

Result<MemoryLimit> parse_memory_limit(std::string_view text) {
  const std::string_view value = trim(first_line(text));
  if (!text.ends_with('\n')) {
    return Error{ErrorKind::kMalformed, fmt::format("no newline after '{}'", value)};
  }
  if (value == "max") {
    return MemoryLimit{};
  }
  const auto bytes = parse_number<std::uint64_t>(value);
  return bytes && *bytes < kWrapped
             ? Result<MemoryLimit>(MemoryLimit{bytes})
             : Error{ErrorKind::kMalformed, fmt::format("neither bytes nor 'max': '{}'", value)};
}

CgroupMemoryReader::CgroupMemoryReader(const CgroupTree& tree, SourceReporter sources)
    : tree_(tree), sources_(std::move(sources)) {}

void CgroupMemoryReader::begin_pass() {
  problem_.reset();
  limits_.clear();
  children_.clear();
}

Result<std::string> CgroupMemoryReader::read_file(const std::string& name) {
  auto text = tree_.read(name);
  if (!text && text.error().kind != ErrorKind::kNotFound) {
    problem_ = text.error();
  }
  return text;
}

/// Numbers by key. One that cannot be is left out and counted.
std::optional<KeyedNumbers> CgroupMemoryReader::read_numbers(const std::string& name) {
  const auto text = read_file(name);
  if (!text) {
    return std::nullopt;
  }
  // A line that was cut may have been cut inside its number.
  KeyedNumbers numbers = parse_vmstat(text->substr(0, text->rfind('\n') + 1));
  if (!text->ends_with('\n')) {
    numbers.problems.push_back({1, "it does not end with a line"});
  }
  std::erase_if(numbers.values, [&](const auto& entry) {
    const bool wrapped = entry.second >= kWrapped;
    if (wrapped) {
      numbers.problems.push_back({1, fmt::format("'{} {}'", entry.first, entry.second)});
    }
    return wrapped;
  });
  report_problems(sources_, kSource, name, numbers.problems);
  return numbers;
}

/// Each file is read once in a pass, however many cgroups' protection it has a part in.
const Result<MemoryLimit>& CgroupMemoryReader::limit_of(const std::string& path,
                                                        const std::string& file) {
  const std::string name = CgroupTree::file(path, file);
  const auto known = limits_.find(name);
  if (known != limits_.end()) {
    return known->second;
  }
  const auto text = read_file(name);
  auto limit = text ? parse_memory_limit(*text) : Result<MemoryLimit>(text.error());
  if (text && !limit) {
    sources_.parse_error(kSource, fmt::format("{}:1: {}", name, limit.error().message));
  }
  return limits_.emplace(name, std::move(limit)).first->second;
}

CgroupMemoryReader::Bytes CgroupMemoryReader::number_of(const std::string& path,
                                                        const std::string& file) {
  const auto& number = limit_of(path, file);
  return number ? number->bytes : std::nullopt;
}

void CgroupMemoryReader::read_limits(const std::string& path, CgroupMemory& memory) {
  constexpr std::pair<const char*, const char*> kFiles[] = {{"min", "memory.min"},
                                                            {"low", "memory.low"},
                                                            {"high", "memory.high"},
                                                            {"max", "memory.max"},
                                                            {"swap_max", "memory.swap.max"}};
  for (const auto& [name, file] : kFiles) {
    if (const auto& limit = limit_of(path, file)) {
      memory.limits[name] = *limit;
    }
  }
}

void CgroupMemoryReader::read_statistics(const std::string& path, CgroupMemory& memory) {
  if (const auto stat = read_numbers(CgroupTree::file(path, "memory.stat"))) {
    memory.file = stat->get("file");
    memory.file_mapped = stat->get("file_mapped");
    memory.shmem = stat->get("shmem");
    if (stat->problems.empty()) {
      memory.charges_gpu = stat->get("gpu_active") || stat->get("gpu_reclaim");
      memory.gpu_charged = stat->get_or_zero("gpu_active") + stat->get_or_zero("gpu_reclaim");
    }
  }
}

void CgroupMemoryReader::read_events(const std::string& path, CgroupMemory& memory) {
  if (const auto events = read_numbers(CgroupTree::file(path, "memory.events"))) {
    memory.events = {events->values.begin(), events->values.end()};
  }
}

void CgroupMemoryReader::read_pressure(const std::string& path, CgroupMemory& memory) const {
  for (const char* resource : {"cpu", "memory", "io"}) {
    const std::string name = CgroupTree::file(path, std::string(resource) + ".pressure");
    const auto text = tree_.read(name);
    if (text && !text->empty()) {
      memory.pressure.push_back({resource, parse_pressure(*text)});
      report_problems(sources_, kSource, name, memory.pressure.back().pressure.problems);
    }
  }
}

std::optional<CgroupMemory> CgroupMemoryReader::read(const std::string& path) {
  if (!tree_.exists(path)) {
    return std::nullopt;
  }
  CgroupMemory memory;
  memory.current = number_of(path, "memory.current");
  memory.swap_current = number_of(path, "memory.swap.current");
  read_limits(path, memory);
  read_statistics(path, memory);
  read_events(path, memory);
  read_pressure(path, memory);
  for (const char* kind : {"min", "low"}) {
    if (const auto bytes = protection_of(path, kind)) {
      memory.protected_bytes[kind] = *bytes;
    }
  }
  return memory;
}

/// How much of its memory a cgroup asks to protect; absent if that cannot be read.
CgroupMemoryReader::Bytes CgroupMemoryReader::asked_by(const std::string& path,
                                                       const std::string& kind) {
  const auto& usage = limit_of(path, "memory.current");
  const auto& setting = limit_of(path, "memory." + kind);
  if (usage && setting) {
    return std::min(bytes_of(*usage), bytes_of(*setting));
  }
  const auto has_no_file = [](const Result<MemoryLimit>& limit) {
    return !limit && limit.error().kind == ErrorKind::kNotFound;
  };
  // Without the files it has no memory controller, or has gone.
  return has_no_file(usage) || has_no_file(setting) ? Bytes(0) : std::nullopt;
}

CgroupMemoryReader::Bytes CgroupMemoryReader::asked_by_children(const std::string& parent,
                                                                const std::string& kind) {
  const auto known = children_.find({parent, kind});
  if (known != children_.end()) {
    return known->second;
  }
  Bytes sum = 0;
  for (const std::string& child : tree_.children(parent)) {
    const Bytes asked = asked_by(child, kind);
    sum = sum_of(sum, asked);
  }
  return children_[{parent, kind}] = sum;
}

CgroupMemoryReader::Bytes CgroupMemoryReader::protection_of(const std::string& path,
                                                            const std::string& kind) {
  std::vector<ProtectionLevel> levels;
  for (std::string at = path; at != "/"; at = CgroupTree::parent_of(at)) {
    const auto& usage = limit_of(at, "memory.current");
    const auto& setting = limit_of(at, "memory." + kind);
    const Bytes siblings = asked_by_children(CgroupTree::parent_of(at), kind);
    if (!usage || !setting || !siblings) {
      return std::nullopt;
    }
    levels.push_back({bytes_of(*usage), bytes_of(*setting), *siblings});
  }
  std::reverse(levels.begin(), levels.end());
  return effective_protection(levels, tree_.recursive_protection());
}

std::optional<std::uint64_t> CgroupMemoryReader::charged() {
  std::optional<std::uint64_t> sum;
  for (const std::string& child : tree_.children("/")) {
    const auto& current = limit_of(child, "memory.current");
    if (!current && current.error().kind == ErrorKind::kNotFound) {
      continue;  // it has no memory controller, or has gone
    }
    if (!current || !current->bytes) {
      return std::nullopt;  // a sum without it would look like memory that was freed
    }
    sum = sum_of(sum.value_or(0), current->bytes);
    if (!sum) {
      return std::nullopt;
    }
  }
  return sum;
}

CgroupMemory CgroupMemoryReader::read_root() {
  CgroupMemory memory;
  read_statistics("/", memory);
  return memory;
}

}  // namespace apu
