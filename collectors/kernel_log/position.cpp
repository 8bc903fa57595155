#include "collectors/kernel_log/position.h"

#include <algorithm>
#include <utility>

namespace apu {
namespace {

/// Moves `at` to `stamp` if that is not smaller, and counts what stands there.
template <typename Stamp>
void pass_stamp(std::optional<Stamp>& at, const Stamp& stamp, std::uint64_t& count) {
  if (!at || *at < stamp) {
    at = stamp;
    count = 1;
  } else if (*at == stamp) {
    ++count;
  }
}

/// Whether `stamp` is past `at`, of which stamp `count` records were read and `seen` met again.
template <typename Stamp>
bool is_past(const Stamp& at, const Stamp& stamp, std::uint64_t count, std::uint64_t& seen) {
  return stamp != at ? at < stamp : ++seen > count;
}

}  // namespace

void LogPosition::pass(const LogRecord& record, std::optional<TimePoint> time) {
  StreamPosition& at = record.origin == Origin::kKernel ? kernel : others;
  at.sequence = std::max(at.sequence, record.sequence);
  if (record.since_boot) {
    pass_stamp(at.since_boot, *record.since_boot, at.at_stamp);
    at.time = std::max(at.time, time);
  } else if (time) {
    pass_stamp(at.time, *time, at.at_stamp);
  }
}

bool PositionFilter::is_after(const LogRecord& record, std::optional<TimePoint> time) {
  const bool of_kernel = record.origin == Origin::kKernel;
  const StreamPosition& at = of_kernel ? position_.kernel : position_.others;
  std::uint64_t& seen = of_kernel ? kernel_at_stamp_ : others_at_stamp_;
  if (record.sequence && at.sequence) {
    const bool after = *record.sequence > *at.sequence;
    if (!std::exchange(gap_known_, true) && after) {
      gap_ = *record.sequence - *at.sequence - 1;
    }
    return after;
  }
  bool after = true;
  if (record.since_boot && at.since_boot) {
    after = is_past(*at.since_boot, *record.since_boot, at.at_stamp, seen);
  } else if (time && at.time) {
    after = is_past(*at.time, *time, at.at_stamp, seen);
  }
  filled_ += after && of_kernel && at.sequence ? 1 : 0;
  return after;
}

}  // namespace apu
