#pragma once

#include <functional>
#include <string_view>

namespace apu {

/// Runs `body` in a detached thread named `name` (15 bytes of it). Nothing ever joins it, so
/// `body` shares ownership of all it touches. Signals must be blocked by the caller before.
void start_detached_thread(std::string_view name, std::function<void()> body);

/// Names the calling thread, as `ps -L` and /proc/PID/task/TID/comm show it.
void set_thread_name(std::string_view name);

/// Gives the calling thread, and those it starts, a descriptor table of their own that holds only
/// stdin, stdout and stderr. A thread in uninterruptible sleep outlives SIGKILL; with a shared
/// table it would keep our port bound. close_range(2) does it in one call where seccomp profiles
/// forbid unshare(2). On failure it logs once and goes on with the shared table.
void own_descriptor_table();

/// Opens /dev/null where stdin, stdout or stderr is closed, so that no socket gets their number and
/// our log lines; and allows as many descriptors as the hard limit does. Once, at the start.
void prepare_descriptors();

/// Makes threads that are started from now on use small stacks: we run a hundred, most idle.
void use_small_thread_stacks();

}  // namespace apu
