#pragma once

#include <map>
#include <string>
#include <vector>

#include "collectors/gpu_clients/client.h"
#include "collectors/gpu_clients/holders.h"
#include "collectors/parsers/fdinfo.h"
#include "exporter/file_root.h"
#include "exporter/guarded_reader.h"
#include "exporter/sources.h"

namespace apu {

/// Reads what clients of a GPU hold, from the descriptors of their holders.
///
/// Each client is read once in a pass, through one descriptor; after a sweep through each, to see
/// which client it is of. A file is read directly only if its node's last one told that the kernel
/// prints it without a lock (Fdinfo::lock_free), and otherwise by the guarded reader.
class ClientReader {
 public:
  ClientReader(FileRoot procfs, SourceReporter sources, GuardedReaderSettings settings);

  /// Reads the clients of `holders`, and notes in them which descriptor is of which client and what
  /// could not be read. A client that is known and could not be read has no memory in the result.
  /// `sweep`: of all nodes, else not of those that were another driver's.
  ClientReadings read(GpuHolders& holders, bool sweep);

  /// Whether a file was denied, or did not answer, in the last pass.
  [[nodiscard]] bool denied() const { return denied_; }

  [[nodiscard]] bool blocked() const { return blocked_; }

  /// The process that reads what may hang, -1 without one.
  [[nodiscard]] pid_t helper() const { return guarded_.helper(); }

 private:
  /// What the last file of a node told.
  enum class Node { kForeign, kGuarded, kLockFree };

  struct Pick {
    GpuHolder* holder;
    GpuDescriptor* descriptor;
  };

  std::vector<Pick> pick(GpuHolders::Map& holders, const ClientReadings& readings,
                         bool sweep) const;
  void read_round(const std::vector<Pick>& picks, ClientReadings& readings);
  void take(const Pick& pick, const Result<std::string>& text, ClientReadings& readings);
  void take_error(const Pick& pick, const Error& error, ClientReadings& readings);
  void take_client(const Pick& pick, const Fdinfo& info, ClientReadings& readings);
  void take_silence(const Pick& pick) const;
  [[nodiscard]] bool is_node(const std::string& node, Node what) const;

  FileRoot procfs_;
  SourceReporter sources_;
  GuardedReader guarded_;
  std::map<std::string, Node> nodes_;
  bool denied_ = false;
  bool blocked_ = false;
};

}  // namespace apu
