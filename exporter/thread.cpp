#include "exporter/thread.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/close_range.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>

#include "exporter/log.h"

namespace apu {
namespace {

constexpr unsigned kFirstOwnDescriptor = 3;

}  // namespace

void start_detached_thread(std::string_view name, std::function<void()> body) {
  std::thread([name = std::string(name), body = std::move(body)] {
    set_thread_name(name);
    body();
  }).detach();
}

void set_thread_name(std::string_view name) {
  constexpr size_t kMaxName = 15;
  pthread_setname_np(pthread_self(), std::string(name.substr(0, kMaxName)).c_str());
}

void own_descriptor_table() {
  if (::close_range(kFirstOwnDescriptor, ~0U, CLOSE_RANGE_UNSHARE) == 0) {
    return;
  }
  const std::string reason = std::generic_category().message(errno);
  static std::once_flag logged;
  std::call_once(logged, [&] {
    log::warn("Threads share one descriptor table: a thread stuck in the kernel may keep the port",
              {{"err", reason}});
  });
}

void prepare_descriptors() {
  for (int standard = 0; standard < static_cast<int>(kFirstOwnDescriptor); ++standard) {
    if (::fcntl(standard, F_GETFD) < 0) {
      // Takes the lowest free number, which is this one. What is printed shall not seem to arrive.
      ::open("/dev/null", standard == STDOUT_FILENO ? O_RDONLY : O_RDWR);
    }
  }
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);  // may fail: the soft limit does for most
  }
}

void use_small_thread_stacks() {
  // The deepest stack measured (yaml-cpp and CLI11 run in main) is under 100 KiB; sanitizers
  // multiply frames, so they keep the default.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(APU_SANITIZED)
  constexpr size_t kSmallStackBytes = size_t{512} << 10;
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) {
    return;
  }
  pthread_attr_setstacksize(&attributes, kSmallStackBytes);
  pthread_setattr_default_np(&attributes);
  pthread_attr_destroy(&attributes);
#endif
}

}  // namespace apu

#ifdef __SANITIZE_THREAD__
// The thread sanitizer takes a process to have one descriptor table, and so two threads that use
// the same number in tables of their own to race for it. Its functions have names of their own.
extern "C" const char* __tsan_default_suppressions() {
  return "race:^__interceptor_open$\nrace:^__interceptor_open64$\n"
         "race:^__interceptor_opendir$\nrace:^__interceptor_closedir$\n"
         "race:^__interceptor_close$\nrace:^__interceptor___close$\n"
         "race:^__interceptor_eventfd$\nrace:^__interceptor_socket$\n"
         "race:^__interceptor_accept$\nrace:^__interceptor_accept4$\n";
}
#endif
