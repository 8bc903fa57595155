#include "collectors/driver/driver.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <utility>

#include "collectors/driver/build_id.h"
#include "collectors/driver/dynamic_debug.h"
#include "exporter/file_root.h"
#include "exporter/input.h"
#include "exporter/text.h"

namespace apu {
namespace {

using prometheus::MetricType;

constexpr MetricInfo kDiffers{
    "apu_driver_differs_from_disk", MetricType::Gauge, "",
    "1 if the amdgpu module that runs is not the one on the disk, else 0; absent where it is built "
    "in or has no build id (/sys/module/amdgpu/notes, /lib/modules)"};
constexpr MetricInfo kDebug{
    "apu_kfd_debug_messages_enabled", MetricType::Gauge, "",
    "Debug messages of KFD that are switched on, each of which floods the log in a storm "
    "(/proc/dynamic_debug/control)"};
constexpr std::array kMetrics{kDiffers, kDebug};

constexpr std::string_view kModule = "amdgpu";

std::string reason_text(const Error& error) {
  return std::string(to_label(error.kind)) + ": " + error.message;
}

/// A file as it was when it was read.
struct FileVersion {
  std::filesystem::path path;
  std::filesystem::file_time_type time;
  std::uintmax_t bytes = 0;
  std::string wanted;  // the id that was searched for

  bool operator==(const FileVersion&) const = default;
};

class DriverCollector : public Collector {
 public:
  explicit DriverCollector(const CollectorContext& context)
      : rootfs_(context.roots.rootfs),
        procfs_(context.roots.procfs),
        sysfs_(context.roots.sysfs),
        sources_(context.sources) {}

  Result<Snapshot> collect() override {
    DriverFacts facts;
    const auto same = compare_with_disk();
    if (same) {
      facts.is_on_disk = *same;
    } else {
      facts.is_on_disk_unknown = same.error().message;
    }
    const auto messages = count_debug_messages();
    if (messages) {
      facts.kfd_debug_messages = *messages;
    } else {
      facts.kfd_debug_unknown = reason_text(messages.error());
    }
    Families families = to_families(facts);
    return Snapshot{std::move(facts), std::move(families)};
  }

 private:
  Result<bool> compare_with_disk() {
    const auto note = sysfs_.read(fmt::format("module/{}/notes/.note.gnu.build-id", kModule));
    if (!note) {
      return Error{note.error().kind, "the driver is no module here, or has no build id"};
    }
    const auto id = parse_build_id_note(*note);
    if (!id) {
      sources_.parse_error("sysfs", "module/amdgpu/notes/.note.gnu.build-id:1: no build id");
      return Error{ErrorKind::kMalformed, "the module's build id cannot be read"};
    }
    const auto file = find_file();
    return file ? compare(*file, *id) : Result<bool>(file.error());
  }

  [[nodiscard]] Result<std::filesystem::path> find_file() const {
    const auto release = procfs_.read("sys/kernel/osrelease");
    if (!release) {
      return release.error();
    }
    const std::filesystem::path directory =
        std::filesystem::path("lib/modules") / trim(first_line(*release));
    std::optional<std::string> file;
    const Status error = rootfs_.for_each_line(
        (directory / "modules.dep").string(),
        [&](std::string_view line) { file = file ? file : find_module_file(line, kModule); });
    if (error || !file) {
      return Error{ErrorKind::kNotFound,
                   fmt::format("/{} has no modules.dep with {}", directory.string(), kModule)};
    }
    // Old ones have absolute paths.
    return rootfs_.path_of(file->starts_with('/') ? file->substr(1) : (directory / *file).string());
  }

  Result<bool> compare(const std::filesystem::path& path, const std::string& id) {
    std::error_code error;
    FileVersion version{path, std::filesystem::last_write_time(path, error), 0, id};
    version.bytes = error ? 0 : std::filesystem::file_size(path, error);
    if (error) {
      return Error{ErrorKind::kUnknown, fmt::format("{}: {}", path.string(), error.message())};
    }
    if (!compared_ || version != compared_version_) {
      compared_ = search(path, id);
      compared_version_ = std::move(version);
    }
    return *compared_;
  }

  static Result<bool> search(const std::filesystem::path& path, const std::string& id) {
    BuildIdSearch search(id);
    if (const Status error =
            read_input(path.string(), [&](std::string_view bytes) { search.feed(bytes); })) {
      return *error;
    }
    if (const auto found = search.found()) {
      return *found;
    }
    return Error{ErrorKind::kUnsupported, path.string() + " has no build id"};
  }

  Result<std::uint64_t> count_debug_messages() {
    constexpr std::string_view kFile = "dynamic_debug/control";
    std::uint64_t number = 0;
    std::uint64_t count = 0;
    const Status error = procfs_.for_each_line(kFile, [&](std::string_view line) {
      ++number;
      const auto prints = prints_kfd_debug(line);
      if (prints) {
        count += *prints ? 1 : 0;
      } else {
        sources_.parse_error("procfs",
                             fmt::format("{}:{}: {}", kFile, number, prints.error().message));
      }
    });
    return error ? Result<std::uint64_t>(*error) : count;
  }

  FileRoot rootfs_;
  FileRoot procfs_;
  FileRoot sysfs_;
  SourceReporter sources_;
  std::optional<Result<bool>> compared_;
  FileVersion compared_version_;
};

}  // namespace

std::optional<std::string> find_module_file(std::string_view modules_dep, std::string_view module) {
  std::optional<std::string> found;
  for_each_line(modules_dep, [&](std::string_view line) {
    const std::string_view path = line.substr(0, line.find(':'));
    const std::string_view name = path.substr(path.rfind('/') + 1);
    if (path.size() < line.size() && name.starts_with(std::string(module) + ".ko")) {
      found = path;
    }
  });
  return found;
}

Families to_families(const DriverFacts& facts) {
  MetricWriter metrics;
  if (facts.is_on_disk) {
    metrics.set(kDiffers, *facts.is_on_disk ? 0 : 1);
  }
  metrics.set(kDebug, facts.kfd_debug_messages);
  return metrics.take();
}

std::span<const MetricInfo> driver_metrics() {
  return kMetrics;
}

std::unique_ptr<Collector> make_driver_collector(const CollectorContext& context) {
  return std::make_unique<DriverCollector>(context);
}

}  // namespace apu
