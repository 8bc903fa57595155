#include "collectors/kernel_log/kernel_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "collectors/kernel_log/auto_source.h"
#include "collectors/kernel_log/journal_source.h"
#include "collectors/kernel_log/saved_state.h"
#include "collectors/kernel_log/state_file.h"
#include "collectors/kernel_log/stream.h"
#include "collectors/kworkers.h"
#include "collectors/parsers/boot_time.h"
#include "exporter/file_root.h"
#include "exporter/log.h"
#include "exporter/store.h"
#include "exporter/text.h"

namespace apu {
namespace {

/// The journal of this boot, or of its newest one where procfs does not tell which this is.
OpenJournal journal_opener(const CollectorContext& context, const JournalPlace& place) {
  std::string boot;
  if (const auto id = FileRoot(context.roots.procfs).read("sys/kernel/random/boot_id")) {
    boot = first_line(*id);
    std::erase(boot, '-');
  }
  return [place, boot](const JournalQuery& wanted) {
    JournalQuery query = wanted;
    query.place = place;
    query.boot = boot;
    return make_journal_source(std::move(query));
  };
}

std::unique_ptr<LogSource> make_whole_journal_source(const CollectorContext& context,
                                                     const JournalPlace& place) {
  JournalQuery wanted;
  wanted.kernel = wanted.managers = wanted.journald = true;
  return journal_opener(context, place)(wanted);
}

JournalPlace journal_place(const SourceRoots& roots) {
  // The two directories of a host are one journal.
  return roots.journals.size() == 1 ? JournalPlace{roots.journals.front(), false}
                                    : JournalPlace{roots.rootfs, true};
}

bool has_journal(const SourceRoots& roots) {
  std::error_code error;
  return std::any_of(
      roots.journals.begin(), roots.journals.end(),
      [&](const std::filesystem::path& path) { return std::filesystem::exists(path, error); });
}

/// Live hosts have kmsg and a journal. A fixture has its log in a file, or what it has of the two;
/// where it has none, kmsg says that there is no log.
std::unique_ptr<LogSource> make_default_source(const CollectorContext& context) {
  const SourceRoots& roots = context.roots;
  if (roots.fixture && FileRoot(roots.rootfs).exists("kernel.log")) {
    return make_file_source(roots.fixture_log, context.clock);
  }
  if (roots.fixture && !has_journal(roots)) {
    return make_kmsg_source(roots.kmsg);
  }
  return make_auto_source(make_kmsg_source(roots.kmsg),
                          journal_opener(context, journal_place(roots)));
}

std::unique_ptr<LogSource> make_source(const CollectorContext& context) {
  const std::string& choice = context.kernel_log;
  if (choice == "auto") {
    return make_default_source(context);
  }
  if (choice == "kmsg") {
    return make_kmsg_source(context.roots.kmsg);
  }
  if (choice == "journal") {
    return make_whole_journal_source(context, journal_place(context.roots));
  }
  if (choice == "-") {
    return make_stdin_source(context.clock);
  }
  std::error_code error;
  if (std::filesystem::is_directory(choice, error)) {
    return make_whole_journal_source(context, {choice, false});
  }
  return std::filesystem::is_character_file(choice, error)
             ? make_kmsg_source(choice)
             : make_file_source(choice, context.clock);
}

/// Empty where the kernel does not tell: then no state can be kept.
std::string read_boot_id(const CollectorContext& context) {
  const auto text = FileRoot(context.roots.procfs).read("sys/kernel/random/boot_id");
  return text ? std::string(trim(first_line(*text))) : std::string();
}

/// By the configuration that distributions install beside the kernel.
std::optional<bool> read_built_with_reports(const CollectorContext& context) {
  const auto release = FileRoot(context.roots.procfs).read("sys/kernel/osrelease");
  if (!release) {
    return std::nullopt;
  }
  const FileRoot rootfs(context.roots.rootfs);
  const std::string_view name = trim(first_line(*release));
  for (const std::string& file :
       {fmt::format("boot/config-{}", name), fmt::format("usr/lib/modules/{}/config", name)}) {
    if (const auto config = rootfs.read(file)) {
      return config_has_hog_reports(*config);
    }
  }
  return std::nullopt;
}

std::optional<StateSaver> make_saver(const StateFile& file) {
  return file.write && !file.path.empty() ? std::optional<StateSaver>(file.path) : std::nullopt;
}

/// What the exporter saw of this boot before it was started anew.
std::optional<SavedState> saved_state(const StateFile& file, const std::string& boot_id) {
  if (file.path.empty()) {
    return std::nullopt;
  }
  auto state = load_state(file.path);
  if (!state) {
    if (state.error().kind != ErrorKind::kNotFound) {
      log::warn("The state file is not used", {{"err", state.error().message}});
    }
    return std::nullopt;
  }
  if (boot_id.empty() || state->boot_id != boot_id) {
    log::warn("The state file is of another boot and is not used", {{"file", file.path.string()}});
    return std::nullopt;
  }
  return *std::move(state);
}

class KernelLogCollector : public Collector {
 public:
  explicit KernelLogCollector(const CollectorContext& context)
      : clock_(context.clock),
        store_(context.store),
        sources_(context.sources),
        sysfs_(context.roots.sysfs),
        built_with_reports_(read_built_with_reports(context)),
        boot_id_(read_boot_id(context)),
        saver_(make_saver(context.state_file)),
        stream_(make_source(context), context.sources, boot_time_reader(context),
                saved_state(context.state_file, boot_id_)) {}

  Result<Snapshot> collect() override {
    auto log = stream_.caught_up();
    for (const LogSourceState& source : stream_.source_states()) {
      sources_.note(source.name, source.status);
    }
    if (!log) {
      return log.error();
    }
    KernelLogFacts facts;
    if (saver_ && !boot_id_.empty()) {
      saver_->save({boot_id_, log->position, log->state});
    }
    facts.log = std::move(log->state);
    facts.hog_threshold_us = read_parameter("cpu_intensive_thresh_us");
    facts.hog_warning_threshold = read_parameter("cpu_intensive_warning_thresh");
    facts.per_cpu_kworker_cores = per_cpu_kworker_cores();
    facts.built_with_reports = built_with_reports_;
    facts.driver_module = driver_module();
    note_report_availability(facts);
    Families families = to_families(facts, clock_->now());
    return Snapshot{std::move(facts), std::move(families)};
  }

 private:
  static std::function<std::optional<TimePoint>()> boot_time_reader(
      const CollectorContext& context) {
    return [procfs = FileRoot(context.roots.procfs)]() -> std::optional<TimePoint> {
      const auto boot_time = read_boot_time(procfs);  // the host collector reports its errors
      return boot_time ? std::optional(*boot_time) : std::nullopt;
    };
  }

  [[nodiscard]] std::optional<std::uint64_t> read_parameter(const std::string& name) const {
    const std::string file = "module/workqueue/parameters/" + name;
    const auto text = sysfs_.read(file);
    if (!text) {
      return std::nullopt;
    }
    const auto value = parse_number<std::uint64_t>(first_line(*text));
    if (!value) {
      sources_.parse_error("workqueue_report", fmt::format("{}:1: no number in '{}'", file, *text));
    }
    return value;
  }

  [[nodiscard]] std::optional<double> per_cpu_kworker_cores() const {
    const auto facts = fresh_facts<KworkersFacts>(*store_, "kworkers", KworkerTotals::kWindow);
    return facts ? facts->per_cpu_cores : std::nullopt;
  }

  /// A module that is built in has a folder for its parameters, but no size.
  [[nodiscard]] std::optional<std::string> driver_module() const {
    if (!sysfs_.exists("module/amdgpu")) {
      return std::nullopt;
    }
    return sysfs_.exists("module/amdgpu/coresize") ? "amdgpu" : "";
  }

  void note_report_availability(const KernelLogFacts& facts) const {
    if (reports_hogs(facts)) {
      sources_.available("workqueue_report");
    } else {
      sources_.unavailable("workqueue_report", ErrorKind::kUnsupported);
    }
  }

  std::shared_ptr<const Clock> clock_;
  std::shared_ptr<const Store> store_;
  SourceReporter sources_;
  FileRoot sysfs_;
  std::optional<bool> built_with_reports_;
  std::string boot_id_;
  std::optional<StateSaver> saver_;
  KernelLogStream stream_;
};

}  // namespace

bool reports_hogs(const KernelLogFacts& facts) {
  if (facts.hog_threshold_us == 0U) {
    return false;  // the mechanism is switched off
  }
  if (facts.hog_warning_threshold) {
    return *facts.hog_warning_threshold > 0;
  }
  return !facts.log.hogs().empty() || facts.built_with_reports.value_or(false);
}

bool config_has_hog_reports(std::string_view config) {
  bool found = false;
  for_each_line(config, [&](std::string_view line) {
    found = found || line == "CONFIG_WQ_CPU_INTENSIVE_REPORT=y";
  });
  return found;
}

std::optional<double> live_hog_rate(const KernelLogFacts& facts, const HogSeries& series,
                                    TimePoint now) {
  constexpr double kMicrosPerSecond = 1e6;
  const auto rate = series.rate(hog_rule(facts), now);
  if (!rate || !facts.per_cpu_kworker_cores || facts.hog_threshold_us.value_or(0) == 0) {
    return rate;
  }
  const double threshold_seconds = static_cast<double>(*facts.hog_threshold_us) / kMicrosPerSecond;
  return std::min(*rate, *facts.per_cpu_kworker_cores / threshold_seconds);
}

HogRule hog_rule(const KernelLogFacts& facts) {
  const auto& threshold = facts.hog_warning_threshold;
  if (threshold && *threshold > 0) {
    return HogRule{threshold};
  }
  std::vector<std::uint64_t> printed;
  for (const auto& [key, series] : facts.log.hogs()) {
    const auto counts = series.printed();
    printed.insert(printed.end(), counts.begin(), counts.end());
  }
  // A kernel that counts hogs but has no T is of the time before T, if its counts do not say more.
  return facts.hog_threshold_us && !threshold ? guess_hog_rule(printed, HogRule{std::nullopt})
                                              : guess_hog_rule(printed);
}

std::unique_ptr<Collector> make_kernel_log_collector(const CollectorContext& context) {
  return std::make_unique<KernelLogCollector>(context);
}

}  // namespace apu
