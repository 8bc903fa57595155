#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "collectors/gpu_clients/client.h"
#include "collectors/parsers/drm_minors.h"
#include "exporter/file_root.h"
#include "exporter/guarded_reader.h"

namespace apu {

/// A descriptor of a DRM device, whose driver may be amdgpu.
struct GpuDescriptor {
  std::string number;               ///< as in /proc/<pid>/fd/<number>
  std::uint32_t minor = 0;          ///< of the device
  bool amdgpu = false;              ///< sysfs says so; else it does not tell
  std::optional<ClientKey> client;  ///< once it was read
  bool foreign = false;             ///< its file told of another driver since the last sweep
  bool verified = false;            ///< it was read since the last sweep: numbers are used again
  bool tried = false;               ///< in this pass
};

/// A process that holds descriptors of a GPU, or is known to KFD.
struct GpuHolder {
  ProcessIdentity process;
  std::string comm;
  bool kfd = false;           ///< has a directory in /sys/class/kfd/kfd/proc
  bool leader_ended = false;  ///< and other threads live: /proc shows no descriptors
  bool listed = false;        ///< its descriptors could be listed
  bool changed = false;       ///< a descriptor is not what it was: look again
  unsigned unread = 0;        ///< descriptors of clients that are not known, and could not be read
  std::vector<GpuDescriptor> descriptors;
};

/// Which processes hold descriptors of AMD's GPUs. Those of other drivers, by sysfs, are none.
/// Looks at all processes in a sweep, and between sweeps at those that KFD knows and those that
/// were found, whose lists are kept: for a process that is new, that KFD knows and that holds none
/// yet, or where something changed, it is read again.
///
/// Source: links of /proc/<pid>/fd, the device numbers of what they lead to, /proc/<pid>/stat. None
/// waits for a lock of the process.
class GpuHolders {
 public:
  using Map = std::map<std::int64_t, GpuHolder>;  ///< by process id

  explicit GpuHolders(FileRoot procfs) : procfs_(std::move(procfs)) {}

  using KfdProcesses = std::map<std::int64_t, ProcessIdentity>;  ///< by process id

  /// Begins a pass. `kfd`: the processes that KFD knows. Errors: where /proc cannot be listed.
  Status update(const KfdProcesses& kfd, const DrmMinors& minors, bool sweep);

  /// Lists the descriptors anew of the processes that changed.
  void look_again();

  /// Whether the descriptors of some process could not be listed for want of permission.
  [[nodiscard]] bool denied() const { return !denied_.empty(); }

  [[nodiscard]] Map& all() { return holders_; }

 private:
  struct Links {
    bool kfd = false;  // holds /dev/kfd
    std::vector<GpuDescriptor> descriptors;
  };

  Status sweep(const KfdProcesses& kfd);
  void add(std::int64_t pid, const KfdProcesses& kfd, std::optional<Links> links, Map& before);
  void refresh(std::int64_t pid, const KfdProcesses& kfd);
  bool identify(GpuHolder& holder, const KfdProcesses& kfd);
  std::optional<Links> list(std::int64_t pid);
  void note_denied(std::int64_t pid);
  static void take(GpuHolder& holder, std::optional<Links> links);

  FileRoot procfs_;
  DrmMinors minors_;
  Map holders_;
  std::set<std::int64_t> denied_;
};

}  // namespace apu
