#pragma once

#include <string>

#include "tests/support/temp_tree.h"

namespace apu {

/// Adds a card to the sysfs of `tree`, linked as the kernel does it. Returns the directory of its
/// device, where its attributes stand.
inline std::string add_card(const TempTree& tree, int number, const std::string& pci_address,
                            const std::string& driver = "amdgpu",
                            const std::string& vendor = "0x1002") {
  const std::string below = "devices/pci0000:00/" + pci_address;
  const std::string device = "sys/" + below;
  const std::string card = "card" + std::to_string(number);
  const std::string node = "renderD" + std::to_string(128 + number);
  tree.write(device + "/vendor", vendor + "\n");
  tree.write(device + "/device", "0x1586\n");
  tree.link(device + "/driver", "../../../bus/pci/drivers/" + driver);
  for (const std::string& name : {card, node}) {
    tree.link(device + "/drm/" + name + "/device", "../../../" + pci_address);
    tree.link("sys/class/drm/" + name, "../../" + below + "/drm/" + name);
  }
  return device;
}

/// Adds a GPU node to KFD's topology.
inline void add_kfd_node(const TempTree& tree, int number, int gpu_id,
                         const std::string& properties) {
  const std::string node = "sys/class/kfd/kfd/topology/nodes/" + std::to_string(number);
  tree.write(node + "/gpu_id", std::to_string(gpu_id) + "\n");
  tree.write(node + "/properties", properties);
}

}  // namespace apu
