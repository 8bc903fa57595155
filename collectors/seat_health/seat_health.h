#pragma once

#include <memory>
#include <span>

#include "collectors/seat_health/prober.h"
#include "exporter/collector.h"
#include "exporter/http_client.h"

namespace apu {

std::span<const MetricInfo> seat_health_metrics();

/// Asks the llama-servers of seats on loopback: one GET of /health a pass, and of those that are
/// ready one of /slots. Off by default, since it talks to what it watches. A server that does not
/// answer costs the pass two seconds, as do all of them together. Source "seat_health": not
/// available for a host that is a recording, and where a process may not be looked at.
std::unique_ptr<Collector> make_seat_health_collector(const CollectorContext& context);

/// With another client, for tests; none where no server of this host may be asked.
std::unique_ptr<Collector> make_seat_health_collector(const CollectorContext& context,
                                                      std::unique_ptr<HttpClient> client);

}  // namespace apu
