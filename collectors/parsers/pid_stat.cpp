#include "collectors/parsers/pid_stat.h"

#include <fmt/format.h>
#include <unistd.h>

#include <vector>

#include "exporter/text.h"

namespace apu {
namespace {

// Numbers as proc(5) gives them; those after the name start with 3, the state.
constexpr size_t kFirstAfterName = 3;

/// Reads numbered fields and remembers whether one was missing or no number.
class Fields {
 public:
  explicit Fields(std::string_view after_name) : fields_(split_fields(after_name)) {}

  std::uint64_t number(size_t field) {
    const size_t index = field - kFirstAfterName;
    const auto value = index < fields_.size() ? parse_number<std::uint64_t>(fields_[index])
                                              : std::optional<std::uint64_t>();
    complete_ = complete_ && value.has_value();
    return value.value_or(0);
  }

  char state() {
    complete_ = complete_ && !fields_.empty() && fields_[0].size() == 1;
    return complete_ ? fields_[0][0] : '?';
  }

  [[nodiscard]] bool complete() const { return complete_; }

 private:
  std::vector<std::string_view> fields_;
  bool complete_ = true;
};

Error malformed(std::string_view text) {
  constexpr size_t kShown = 120;
  return {ErrorKind::kMalformed,
          fmt::format("stat:1: not a process's stat: '{}'", cut_text(text, kShown))};
}

}  // namespace

bool is_kernel_thread(const PidStat& stat) {
  constexpr std::uint64_t kKernelThread = 0x00200000;  // PF_KTHREAD
  return (stat.flags & kKernelThread) != 0;
}

bool leader_has_ended(const PidStat& stat) {
  return stat.state == 'Z' || stat.state == 'X' || stat.state == 'x';
}

bool has_ended(const PidStat& stat) {
  return leader_has_ended(stat) && stat.threads <= 1;
}

Result<PidStat> parse_pid_stat(std::string_view text) {
  // The name may hold a newline, so only the last one ends the line.
  const std::string_view line = text.substr(0, text.size() - (text.ends_with('\n') ? 1 : 0));
  const size_t open = line.find(" (");
  const size_t close = line.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open + 2) {
    return malformed(text);
  }
  const auto pid = parse_number<std::int64_t>(line.substr(0, open));
  Fields fields(line.substr(close + 1));
  PidStat stat;
  stat.comm = std::string(line.substr(open + 2, close - open - 2));
  stat.state = fields.state();
  stat.parent = static_cast<std::int64_t>(fields.number(4));
  stat.flags = fields.number(9);
  stat.minor_faults = fields.number(10);
  stat.major_faults = fields.number(12);
  stat.user_ticks = fields.number(14);
  stat.system_ticks = fields.number(15);
  stat.threads = fields.number(20);
  stat.start_ticks = fields.number(22);
  stat.virtual_bytes = fields.number(23);
  stat.resident_pages = fields.number(24);
  constexpr std::uint64_t kLatestStart = 1ULL << 53U;  // ticks; no host is up for so long
  if (!pid || !fields.complete() || stat.start_ticks > kLatestStart) {
    return malformed(text);
  }
  stat.pid = *pid;
  return stat;
}

Result<PidStat> read_pid_stat(const FileRoot& procfs, std::string_view directory) {
  const auto text = procfs.read(fmt::format("{}/stat", directory));
  return text ? parse_pid_stat(*text) : Result<PidStat>(text.error());
}

double ticks_per_second() {
  static const auto kTicks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  return kTicks;
}

}  // namespace apu
