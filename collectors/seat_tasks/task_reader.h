#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "collectors/seat_tasks/sample.h"
#include "exporter/clock.h"
#include "exporter/file_root.h"
#include "exporter/sources.h"

namespace apu {

/// Reads what a process and its threads do, from files that take no lock of its memory: stat,
/// status, io, and of each thread stat, status, schedstat; of those in disk sleep wchan and
/// syscall.
///
/// Sources: "process_io" and "process_wait" (wchan, syscall), for which another user's process
/// wants CAP_SYS_PTRACE.
class TaskReader {
 public:
  /// Threads of a process that are looked at; a model server has tens.
  static constexpr size_t kMaxTasks = 1024;

  /// Threads of all seats, in equal shares, which are no smaller than kLeastTasks.
  static constexpr size_t kMaxTasksOfAll = 8192;
  static constexpr size_t kLeastTasks = 256;

  TaskReader(FileRoot procfs, SourceReporter sources)
      : procfs_(std::move(procfs)), sources_(std::move(sources)) {}

  /// Begins a pass over so many seats.
  void begin_pass(size_t seats);

  /// Begins with the next seat.
  void begin_seat() { tasks_left_ = tasks_of_seat_; }

  /// nullopt if it ended, or another process has its id by now.
  std::optional<ProcessSample> read(const ProcessIdentity& process, std::chrono::nanoseconds time);

  /// Ends a pass: says which sources could be read in it.
  void end_pass();

 private:
  std::optional<std::string> text_of(const std::string& file) const;
  std::optional<PidStat> stat_of(const std::string& directory) const;
  PidStatus status_of(const std::string& directory) const;
  void read_tasks(const std::string& directory, ProcessSample& sample);
  std::optional<TaskSample> read_task(const std::string& directory);
  TaskWait wait_of(const std::string& directory);

  FileRoot procfs_;
  SourceReporter sources_;
  Status io_problem_;
  Status wait_problem_;
  bool read_any_ = false;  // process in this pass
  size_t tasks_of_seat_ = kMaxTasksOfAll;
  size_t tasks_left_ = kMaxTasksOfAll;  // of this seat
};

}  // namespace apu
