#pragma once

#include <cstdint>
#include <map>

#include "collectors/kfd_history.h"
#include "exporter/file_root.h"
#include "exporter/guarded_reader.h"
#include "exporter/result.h"

namespace apu {

/// Whether /proc shows every process of the host: its process 2 is kthreadd, which neither a
/// process namespace nor hidepid lets one see. nullopt if so; kUnsupported in a namespace of one's
/// own, or why that could not be read.
Status check_host_processes(const FileRoot& procfs);

/// Sets the state of a KFD entry's process, its name and its start, by /proc/<pid>/stat.
/// Errors: kMalformed; the state stays kUnknown.
Status read_kfd_process_state(const FileRoot& procfs, KfdProcess& process);

/// The living processes that KFD knows, told from strangers that have the ids of those that ended
/// while the GPU still holds their memory. Each collector that needs them has its own.
class KfdOwners {
 public:
  KfdOwners(FileRoot procfs, FileRoot sysfs)
      : procfs_(std::move(procfs)), sysfs_(std::move(sysfs)) {}

  struct Found {
    std::map<std::int64_t, ProcessIdentity> living;  ///< by process id
    /// Every entry's process is told: living or ended. Not where /proc hides the host's processes:
    /// its ids are others' there, and none is used.
    bool complete = false;
  };

  /// One pass. None where there is no KFD.
  Found update();

 private:
  FileRoot procfs_;
  FileRoot sysfs_;
  KfdOrphans orphans_;
};

}  // namespace apu
