#pragma once

#include <string_view>

namespace apu {

/// The argument by which this program is told to be the helper of a guarded reader.
constexpr std::string_view kGuardedReaderOption = "--guarded-reader";

/// What it does then: reads the files that requests on stdin name, one after the other, and writes
/// an answer to stdout as soon as it has one. Ends with stdin, and with the thread that started it:
/// a read that hangs would outlive both. Returns the exit code.
int run_guarded_reader();

}  // namespace apu
