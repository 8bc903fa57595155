// What a pass of seat_tasks costs, beside the floor: to read the same files, and no more. The seats
// are processes of this machine, with threads that sleep, so that the kernel's share is the real
// one. The time is CPU time of this thread.

#include <benchmark/benchmark.h>
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/cgroup/cgroup.h"
#include "collectors/parsers/pid_stat.h"
#include "collectors/seat_tasks/seat_tasks.h"
#include "exporter/store.h"

namespace {

constexpr const char* kProc = "/proc";

void* sleep_for_ever(void* /*nothing*/) {
  while (true) {
    ::pause();
  }
}

/// The child's side: so many threads, until the parent ends.
[[noreturn]] void be_a_server(int threads) {
  constexpr size_t kStack = 64 << 10;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstacksize(&attributes, kStack);
  for (int i = 1; i < threads; ++i) {
    pthread_t thread{};
    if (::pthread_create(&thread, &attributes, sleep_for_ever, nullptr) != 0) {
      ::_exit(1);
    }
  }
  sleep_for_ever(nullptr);
  ::_exit(0);
}

std::vector<std::string> tasks_of(pid_t pid) {
  const auto names = apu::FileRoot(kProc).list(fmt::format("{}/task", pid));
  return names ? *names : std::vector<std::string>();
}

/// A seat for each of `count` processes with so many threads.
class Seats {
 public:
  Seats(int count, int threads) : threads_(threads) {
    for (int i = 0; i < count; ++i) {
      const pid_t pid = ::fork();
      if (pid == 0) {
        be_a_server(threads);
      }
      pids_.push_back(pid);
    }
    for (const pid_t pid : pids_) {
      while (tasks_of(pid).size() < static_cast<size_t>(threads) &&
             ::waitpid(pid, nullptr, WNOHANG) == 0) {
        ::usleep(1000);
      }
    }
  }

  ~Seats() {
    for (const pid_t pid : pids_) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
  }

  Seats(const Seats&) = delete;
  Seats& operator=(const Seats&) = delete;

  [[nodiscard]] std::shared_ptr<apu::SeatIndex> index() const {
    auto index = std::make_shared<apu::SeatIndex>();
    for (const pid_t pid : pids_) {
      const auto stat = apu::read_pid_stat(apu::FileRoot(kProc), std::to_string(pid));
      apu::Seat seat;
      seat.name = fmt::format("seat-{}", pid);
      seat.processes.push_back({{pid, stat ? stat->start_ticks : 0}, "bench", "/", true});
      index->seats.push_back(std::move(seat));
    }
    return index;
  }

  [[nodiscard]] const std::vector<pid_t>& pids() const { return pids_; }

  [[nodiscard]] double threads() const { return static_cast<double>(pids_.size()) * threads_; }

 private:
  int threads_;
  std::vector<pid_t> pids_;
};

double cpu_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

template <typename Action>
void measure(benchmark::State& state, Action action) {
  action();
  for ([[maybe_unused]] auto _ : state) {
    const double start = cpu_seconds();
    action();
    state.SetIterationTime(cpu_seconds() - start);
  }
}

void read_to_the_end(const std::string& path) {
  std::array<char, 16384> piece;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  while (::read(fd, piece.data(), piece.size()) > 0) {
  }
  ::close(fd);
}

void read_process(pid_t pid) {
  const std::string directory = fmt::format("{}/{}", kProc, pid);
  for (const char* file : {"stat", "status", "io"}) {
    read_to_the_end(fmt::format("{}/{}", directory, file));
  }
  DIR* const tasks = ::opendir((directory + "/task").c_str());
  while (const dirent* entry = ::readdir(tasks)) {
    if (entry->d_name[0] == '.') {
      continue;
    }
    for (const char* file : {"stat", "status", "schedstat"}) {
      read_to_the_end(fmt::format("{}/task/{}/{}", directory, entry->d_name, file));
    }
  }
  ::closedir(tasks);
}

void floor(benchmark::State& state, int count, int threads) {
  const Seats seats(count, threads);
  measure(state, [&] {
    read_to_the_end(fmt::format("{}/stat", kProc));
    for (const pid_t pid : seats.pids()) {
      read_process(pid);
    }
  });
}

void pass(benchmark::State& state, int count, int threads) {
  const Seats seats(count, threads);
  apu::CgroupFacts facts;
  facts.index = seats.index();
  const auto clock = std::make_shared<apu::FixedClock>(std::chrono::system_clock::now());
  const auto store = std::make_shared<apu::Store>();
  store->put("cgroup", {std::make_shared<const apu::Snapshot>(apu::Snapshot{facts, {}}),
                        clock->now(), std::chrono::steady_clock::now()});
  const apu::SourceReporter sources(std::make_shared<apu::SourceBoard>(), "seat_tasks");
  const auto collector = apu::make_seat_tasks_collector(
      {apu::make_roots({}), clock, sources, store, "auto", {}, {}, {}});
  const auto action = [&] {
    clock->set(clock->now() + std::chrono::seconds(5));  // as many samples are kept as are in use
    const auto snapshot = collector->collect();
    double seen = 0;
    for (const auto& [seat, processes] :
         std::any_cast<apu::SeatTasksFacts>(&snapshot->facts)->seats) {
      const auto& last = processes.front().activity.last;
      seen += last ? static_cast<double>(last->cpu.size()) : threads;
    }
    if (seen != seats.threads()) {
      state.SkipWithError("not what is there");
    }
  };
  for (int i = 0; i < 15; ++i) {
    action();  // a minute of samples
  }
  measure(state, action);
}

void register_all() {
  const auto add = [](const char* name, auto function, int count, int threads) {
    benchmark::RegisterBenchmark(name, function, count, threads)
        ->UseManualTime()
        ->Unit(benchmark::kMicrosecond);
  };
  add("8_seats_70_threads/floor", floor, 8, 70);
  add("8_seats_70_threads/pass", pass, 8, 70);
  add("20_seats_150_threads/floor", floor, 20, 150);
  add("20_seats_150_threads/pass", pass, 20, 150);
}

}  // namespace

int main(int argc, char** argv) {
  register_all();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
