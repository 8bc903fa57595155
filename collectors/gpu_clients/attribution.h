#pragma once

#include "collectors/gpu_clients/client.h"
#include "collectors/gpu_clients/gpu_clients.h"
#include "collectors/gpu_clients/holders.h"

namespace apu {

/// Gives each client to one of its holders, and sums them up.
///
/// On kernels that leave out locked objects a client that shows less than before has let go of
/// memory only as far as the GPU's memory in use fell, or else the sum would be more than that.
class Attribution {
 public:
  /// `used`: memory in use on all GPUs. `complete`: no process is hidden from us, or closed to us.
  GpuClientsFacts attribute(const GpuHolders::Map& holders, const ClientReadings& readings,
                            const GpuPools& used, bool complete);

 private:
  using Clients = std::map<ClientKey, ClientReading>;

  Clients keep_what_is_held(const Clients& clients, const GpuPools& used);
  [[nodiscard]] PoolBytes to_memory(const ClientKey& key, const ClientReading& reading,
                                    const GpuPools& released) const;

  std::map<ClientKey, PoolBytes> held_;  // as last known
  GpuPools unowned_;                     // of the pass before
};

}  // namespace apu
