#pragma once

namespace apu {

/// `apu_exporter analyze FILE...`: reads saved logs and prints what happened. `argv[0]` is the
/// command's name. Returns the exit code: 0 no fault, 1 a fault, 2 a file that cannot be read, or
/// bad usage.
int analyze_command(int argc, const char* const* argv);

}  // namespace apu
