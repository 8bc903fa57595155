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
/// which client it is of. All by the guarded reader: that the kernel printed one file without a
/// lock is no proof for the next.
class ClientReader {
 public:
  ClientReader(FileRoot procfs, SourceReporter sources, GuardedReaderSettings settings);

  /// Reads the clients of `holders`, and notes in them which descriptor is of which client and what
  /// could not be read. A client that is known and could not be read has no memory in the result.
  ClientReadings read(GpuHolders& holders);

  /// Whether a file was denied, or did not answer, in the last pass.
  [[nodiscard]] bool denied() const { return denied_; }

  [[nodiscard]] bool blocked() const { return blocked_; }

  /// The process that reads what may hang, -1 without one.
  [[nodiscard]] pid_t helper() const { return guarded_.helper(); }

 private:
  struct Pick {
    GpuHolder* holder;
    GpuDescriptor* descriptor;
  };

  static std::vector<Pick> pick(GpuHolders::Map& holders, const ClientReadings& readings);
  void read_round(const std::vector<Pick>& picks, ClientReadings& readings);
  void take(const Pick& pick, const Result<std::string>& text, ClientReadings& readings);
  void take_error(const Pick& pick, const Error& error, ClientReadings& readings);
  void take_client(const Pick& pick, const Fdinfo& info, ClientReadings& readings);
  static void take_silence(const Pick& pick);

  FileRoot procfs_;
  SourceReporter sources_;
  GuardedReader guarded_;
  bool denied_ = false;
  bool blocked_ = false;
};

}  // namespace apu
