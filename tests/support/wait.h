#pragma once

#include <chrono>
#include <string_view>
#include <thread>

namespace apu {

/// How long a test waits for what must happen, before it gives up; and what a call that must
/// "return at once" may take on a busy machine.
constexpr std::chrono::seconds kLongWait{10};

/// Waits until `condition()` holds, kLongWait at most; returns whether it does.
template <typename Condition>
bool eventually(Condition condition) {
  const auto deadline = std::chrono::steady_clock::now() + kLongWait;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

/// How long `action()` takes.
template <typename Action>
std::chrono::steady_clock::duration time_of(Action action) {
  const auto start = std::chrono::steady_clock::now();
  action();
  return std::chrono::steady_clock::now() - start;
}

/// The number of threads of this process that are called `name`.
int threads_named(std::string_view name);

}  // namespace apu
