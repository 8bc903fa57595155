#include "tests/support/wait.h"

#include <filesystem>
#include <fstream>
#include <string>

namespace apu {

int threads_named(std::string_view name) {
  int count = 0;
  std::error_code error;
  std::filesystem::directory_iterator task("/proc/self/task", error);
  while (!error && task != std::filesystem::directory_iterator()) {
    std::string comm;
    std::getline(std::ifstream(task->path() / "comm"), comm);
    count += comm == name ? 1 : 0;
    task.increment(error);
  }
  return count;
}

}  // namespace apu
