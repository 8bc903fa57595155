#pragma once

#include <filesystem>
#include <optional>
#include <vector>

namespace apu {

/// The `--path.*` options as given.
struct PathOptions {
  std::filesystem::path rootfs = "/";
  std::optional<std::filesystem::path> procfs;
  std::optional<std::filesystem::path> sysfs;
  std::optional<std::filesystem::path> debugfs;
  std::optional<std::filesystem::path> cgroupfs;
  std::optional<std::filesystem::path> kmsg;
  std::optional<std::filesystem::path> journal;
};

/// Where a host's interfaces stand. A host, live or a fixture, is a directory R laid out as one:
/// R/proc, R/sys, R/sys/kernel/debug, R/sys/fs/cgroup, R/dev/kmsg, R/var/log/journal and
/// R/run/log/journal. A fixture may also hold R/kernel.log (its kernel log) and R/time (its
/// clock, Unix seconds).
struct SourceRoots {
  std::filesystem::path rootfs;
  std::filesystem::path procfs;
  std::filesystem::path sysfs;
  std::filesystem::path debugfs;
  std::filesystem::path cgroupfs;
  std::filesystem::path kmsg;
  std::vector<std::filesystem::path> journals;
  std::filesystem::path fixture_log;   ///< R/kernel.log
  std::filesystem::path fixture_time;  ///< R/time
  bool fixture = false;                ///< R is not "/": no D-Bus, and kernel.log and time count
};

SourceRoots make_roots(const PathOptions& options);

}  // namespace apu
