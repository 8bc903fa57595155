#include "exporter/clock.h"

namespace apu {

double to_unix_seconds(TimePoint time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

TimePoint from_unix_seconds(double seconds) {
  return TimePoint{
      std::chrono::duration_cast<TimePoint::duration>(std::chrono::duration<double>(seconds))};
}

}  // namespace apu
