#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "exporter/clock.h"
#include "exporter/collector.h"
#include "exporter/replay.h"
#include "exporter/roots.h"
#include "exporter/sources.h"
#include "exporter/store.h"
#include "tests/support/collector_series.h"

namespace apu {

/// What collectors are made from to read the host that stands below a directory. Its clock stands
/// at the host's `time`, where it has one.
class CollectorHost {
 public:
  explicit CollectorHost(const std::filesystem::path& root) {
    roots.rootfs = root;
    if (const auto time = read_fixture_time(root / "time")) {
      clock->set(*time);
    }
  }

  [[nodiscard]] CollectorContext context(const std::string& collector = "test") const {
    return {make_roots(roots),
            clock,
            SourceReporter(board, collector),
            store,
            kernel_log,
            state_file,
            seats,
            checks};
  }

  /// The value of a series of the source board: apu_source_available{source="procfs"}.
  [[nodiscard]] std::optional<double> source(std::string_view series) const {
    return value_of(board->families(), series);
  }

  [[nodiscard]] std::optional<double> parse_errors(const std::string& source_name) const {
    return source("apu_parse_errors_total{source=\"" + source_name + "\"}");
  }

  PathOptions roots;
  StateFile state_file;
  SeatOptions seats;
  CheckOptions checks;
  std::shared_ptr<FixedClock> clock = std::make_shared<FixedClock>(from_unix_seconds(1.8e9));
  std::shared_ptr<SourceBoard> board = std::make_shared<SourceBoard>();
  std::shared_ptr<Store> store = std::make_shared<Store>();
  std::string kernel_log = "auto";
};

}  // namespace apu
