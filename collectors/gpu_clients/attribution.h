#pragma once

#include "collectors/gpu_clients/client.h"
#include "collectors/gpu_clients/gpu_clients.h"
#include "collectors/gpu_clients/holders.h"

namespace apu {

/// Gives each client to one of its holders, and sums them up.
class Attribution {
 public:
  /// `denied`: some process could not be looked at.
  GpuClientsFacts attribute(const GpuHolders::Map& holders, const ClientReadings& readings,
                            bool denied);

 private:
  GpuClient to_client(const ClientKey& key, const ClientReading& reading) const;

  ClientReadings last_;  // of the pass before
};

}  // namespace apu
