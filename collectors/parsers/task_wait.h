#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace apu {

/// What a thread in disk sleep waits for.
enum class TaskWait {
  kKfd,     ///< KFD: an ioctl of it, or a function of it
  kMemory,  ///< reclaim, compaction, the mmap_lock
  kIo,      ///< storage, a page that is read
  kOther,   ///< anything else, and what cannot be told
};

/// Label value of apu_seat_blocked_threads.
std::string_view to_label(TaskWait wait);

/// The system call that a thread sleeps in.
struct BlockedSyscall {
  std::int64_t number = -1;    ///< -1: none, a page fault
  std::uint64_t argument = 0;  ///< the second one: of an ioctl its command
};

/// Parses /proc/<pid>/task/<tid>/syscall.
///
/// Source: proc_pid_syscall in fs/proc/base.c.
/// Shape:  "running"; "-1 0xSP 0xPC" outside of a system call; "NR 0xA0 ... 0xA5 0xSP 0xPC".
/// Errors: nullopt for "running", and for anything else.
std::optional<BlockedSyscall> parse_syscall(std::string_view text);

/// What a thread waits for by the function that it sleeps in (/proc/<pid>/task/<tid>/wchan, "0" or
/// empty where that is not told) and its system call. The kernel leaves the functions of locks out
/// of a wchan, so that it is their caller's.
TaskWait classify_wait(std::string_view wchan, const std::optional<BlockedSyscall>& syscall);

}  // namespace apu
