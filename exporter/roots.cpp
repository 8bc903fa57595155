#include "exporter/roots.h"

namespace apu {

SourceRoots make_roots(const PathOptions& options) {
  const std::filesystem::path& root = options.rootfs;
  SourceRoots roots;
  roots.rootfs = root;
  roots.procfs = options.procfs.value_or(root / "proc");
  roots.sysfs = options.sysfs.value_or(root / "sys");
  roots.debugfs = options.debugfs.value_or(roots.sysfs / "kernel/debug");
  roots.cgroupfs = options.cgroupfs.value_or(roots.sysfs / "fs/cgroup");
  roots.kmsg = options.kmsg.value_or(root / "dev/kmsg");
  if (options.journal) {
    roots.journals = {*options.journal};
  } else {
    roots.journals = {root / "var/log/journal", root / "run/log/journal"};
  }
  roots.fixture_log = root / "kernel.log";
  roots.fixture_time = root / "time";
  roots.fixture = root != "/";
  return roots;
}

}  // namespace apu
