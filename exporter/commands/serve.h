#pragma once

#include "exporter/options.h"

namespace apu {

/// How a command ended.
struct Outcome {
  int exit_code = 0;
  bool clean = true;  ///< no thread is stuck: the process may be left in the ordinary way
};

/// Serves HTTP until SIGTERM or SIGINT, which the caller has blocked.
Outcome serve(const Options& options, std::span<const CollectorSpec> known);

}  // namespace apu
