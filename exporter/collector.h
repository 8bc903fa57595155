#pragma once

#include <any>
#include <chrono>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "exporter/clock.h"
#include "exporter/metric.h"
#include "exporter/result.h"
#include "exporter/roots.h"
#include "exporter/sources.h"

namespace apu {

class Store;

/// What one pass found. Immutable once it is in the store.
struct Snapshot {
  std::any facts;  ///< the collector's own struct, in the kernel's terms; what derived ones read
  Families families;
};

/// One pass reads, parses and maps; what must survive a pass (a cursor, counts) is a member.
class Collector {
 public:
  virtual ~Collector() = default;

  /// One pass: everything, or the reason there is nothing. May block for ever. Called from one
  /// thread, never from a scrape.
  virtual Result<Snapshot> collect() = 0;
};

/// Where the kernel log's counts are kept for the next start of the exporter.
struct StateFile {
  std::filesystem::path path;  ///< empty: nowhere
  bool write = false;          ///< else it is read only
};

/// Which cgroups are seats.
struct SeatOptions {
  std::vector<std::string> patterns;  ///< --seat.pattern; empty: the defaults
  unsigned max = 64;                  ///< --seat.max
};

/// What the checks of seats let pass.
struct CheckOptions {
  std::vector<std::string> allow_mmap;  ///< --check.allow-mmap: patterns of seats' names
};

/// All that a collector is made from.
struct CollectorContext {
  SourceRoots roots;
  std::shared_ptr<const Clock> clock;
  SourceReporter sources;
  std::shared_ptr<const Store> store;  ///< the newest facts of the others, for derived collectors
  std::string kernel_log;              ///< --kernel-log
  StateFile state_file;                ///< --state.file
  SeatOptions seats;
  CheckOptions checks;
};

/// How a scrape treats a collector whose snapshot is over a second old.
enum class OnScrape {
  kUseNewest,  ///< takes the newest snapshot as it is
  kRefresh,    ///< asks for a pass and waits for it, 20 ms at most: cheap reads that cannot block
};

/// One row of the table in collectors/registry.cpp.
struct CollectorSpec {
  std::string_view name;  ///< label value and flag: --collector.NAME
  bool enabled_by_default;
  std::chrono::milliseconds period;
  std::chrono::milliseconds deadline;  ///< past it a pass is overdue; nothing is killed
  OnScrape on_scrape;
  std::string_view summary;  ///< one line for --help and README.md
  std::span<const MetricInfo> metrics;
  std::unique_ptr<Collector> (*make)(const CollectorContext&);
  /// 0 for collectors that need no other. One that takes facts has a higher stage than all whose
  /// facts it takes: where every collector makes one pass, it makes its pass after theirs.
  unsigned stage = 0;
};

}  // namespace apu
