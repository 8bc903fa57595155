#include "collectors/kernel_log/journal_batch.h"

#include <unistd.h>

#include <cerrno>
#include <utility>

namespace apu {
namespace {

constexpr size_t kFullBytes = size_t{32} << 10;
constexpr unsigned kFullSteps = 4096;
constexpr std::chrono::seconds kFullAge{1};
constexpr unsigned kStepsPerLook = 16;  // at the clock

}  // namespace

void JournalBatch::add_record(const LogRecord& record) {
  flush_lines();
  append_record(bytes_, record);
}

void JournalBatch::add_trouble(std::string_view what) {
  flush_lines();
  append_trouble(bytes_, what);
}

void JournalBatch::flush_lines() {
  if (plain_lines_ > 0) {
    append_plain_lines(bytes_, std::exchange(plain_lines_, 0));
  }
}

bool JournalBatch::count_step() {
  ++steps_;
  return bytes_.size() >= kFullBytes || steps_ >= kFullSteps ||
         (steps_ % kStepsPerLook == 0 && Steady::now() - begun_ > kFullAge);
}

bool JournalBatch::commit(const JournalPosition& kernel, const JournalPosition& other) {
  flush_lines();
  append_checkpoint(bytes_, kernel, other);
  steps_ = 0;
  begun_ = Steady::now();
  return write_bytes();
}

bool JournalBatch::answer(std::uint64_t sync, const Status& problem) {
  append_answer(bytes_, sync, problem);
  return write_bytes();
}

bool JournalBatch::write_bytes() {
  std::string_view rest = bytes_;
  while (!rest.empty()) {
    const ssize_t count = ::write(descriptor_, rest.data(), rest.size());
    if (count < 0 && errno != EINTR) {
      return false;
    }
    rest.remove_prefix(count > 0 ? static_cast<size_t>(count) : 0);
  }
  bytes_.clear();
  return true;
}

}  // namespace apu
