#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/parsers/gpu_devices.h"
#include "collectors/parsers/problem.h"
#include "exporter/file_root.h"
#include "exporter/sources.h"

namespace apu {

/// A GPU in KFD's topology.
struct KfdGpuNode {
  std::uint32_t gpu_id = 0;  ///< KFD's name of the GPU, in file names and in SMI events
  std::string pci_address;   ///< of domain and location_id; empty where they are not told
  std::optional<std::uint32_t> render_minor;
  std::string gfx_target;  ///< "gfx1151"; empty where it is not told
};

/// "gfx1151" for 110501: major * 10000 + minor * 100 + step, the last two as hexadecimal digits.
/// Empty for 0, which nodes without a GPU have, and for what cannot be a version.
std::string gfx_target_name(std::uint64_t version);

/// Whether a GPU of this target shares memory with the CPU. nullopt where the target is not known,
/// or names both kinds (gfx942 is the MI300A and the MI300X).
std::optional<bool> has_unified_memory(std::string_view gfx_target);

/// Parses gpu_id of a topology node: 0 for a CPU.
///
/// Source: node_show in drivers/gpu/drm/amd/amdkfd/kfd_topology.c.
std::optional<std::uint32_t> parse_kfd_gpu_id(std::string_view text);

/// Parses /sys/class/kfd/kfd/topology/nodes/<n>/properties.
///
/// Source: node_show in drivers/gpu/drm/amd/amdkfd/kfd_topology.c.
/// Shape:  "key number" lines.
/// Problem: a line without a number.
KfdGpuNode parse_kfd_node(std::uint32_t gpu_id, std::string_view properties, Problems& problems);

/// The GPUs of KFD's topology. Kept while generation_id stays, as reading them takes KFD's
/// topology lock. Below class/kfd/kfd/topology only generation_id, gpu_id and properties are read.
class KfdTopology {
 public:
  KfdTopology(FileRoot sysfs, SourceReporter sources)
      : sysfs_(std::move(sysfs)), sources_(std::move(sources)) {}

  /// The nodes now. Empty without KFD. A partition has its device's PCI address. A node that the
  /// reader's device cgroup denies is left out; what cannot be read counts as a parse error of
  /// source "kfd".
  const std::vector<KfdGpuNode>& refresh();

 private:
  bool read_nodes();
  bool read_node(const std::string& directory);

  FileRoot sysfs_;
  SourceReporter sources_;
  std::optional<std::string> generation_;  // of nodes_; nullopt: read them anew
  std::vector<KfdGpuNode> nodes_;
};

/// The node of a GPU: by PCI address, else by render node. nullptr if there is none.
const KfdGpuNode* find_node(const std::vector<KfdGpuNode>& nodes, const GpuDevice& device);

/// The node with this gpu_id. nullptr if there is none.
const KfdGpuNode* find_node(const std::vector<KfdGpuNode>& nodes, std::uint32_t gpu_id);

}  // namespace apu
