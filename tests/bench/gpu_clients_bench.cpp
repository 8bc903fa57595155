// What a pass of gpu_clients costs on a host of 2,000 processes, of which 20 hold ten descriptors
// of a GPU each, beside the floor: to read the same files, and no more. The time is CPU time of
// this thread and of the helper. `clients` of a process: its ten descriptors are of so many.

#include <benchmark/benchmark.h>
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/gpu_clients/attribution.h"
#include "collectors/gpu_clients/client_reader.h"
#include "collectors/gpu_clients/gpu_clients.h"
#include "collectors/gpu_clients/holders.h"
#include "exporter/guarded_helper.h"

namespace {

constexpr int kProcesses = 2000;
constexpr int kHolders = 20;
constexpr int kDescriptors = 10;       // of the GPU
constexpr int kOtherDescriptors = 20;  // of each process
constexpr int kFirstPid = 1000;

std::string fdinfo(int client, bool lock_free) {
  std::string text = fmt::format(
      "pos:\t0\nflags:\t02100002\nmnt_id:\t27\nino:\t614\ndrm-driver:\tamdgpu\ndrm-client-id:\t{}\n"
      "drm-pdev:\t0000:c5:00.0\npasid:\t32790\n",
      client);
  if (lock_free) {
    for (const char* region : {"cpu", "gtt", "vram", "gds", "gws", "oa", "doorbell"}) {
      text += fmt::format(
          "drm-total-{0}:\t18466 MiB\ndrm-shared-{0}:\t0\ndrm-resident-{0}:\t18466 MiB\n"
          "drm-purgeable-{0}:\t0\n",
          region);
    }
  }
  return text +
         "drm-memory-vram:\t2208 KiB\ndrm-memory-gtt: \t18909184 KiB\ndrm-memory-cpu: \t0 KiB\n"
         "amd-evicted-vram:\t0 KiB\namd-requested-vram:\t2208 KiB\namd-requested-gtt:\t18909184 "
         "KiB\n";
}

/// The fake /proc.
class Host {
 public:
  Host(int clients, bool lock_free) {
    std::string name = (std::filesystem::temp_directory_path() / "apu-bench-XXXXXX").string();
    root_ = ::mkdtemp(name.data());
    for (int i = 0; i < kProcesses; ++i) {
      const int pid = kFirstPid + i;
      write(fmt::format("{}/stat", pid),
            fmt::format(
                "{0} (llama-server) S 1 {0} {0} 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 {0} 0 0 0\n",
                pid));
      for (int n = 0; n < kOtherDescriptors; ++n) {
        link(fmt::format("{}/fd/{}", pid, n), fmt::format("socket:[{}]", 1000 * pid + n));
      }
      for (int n = 0; i < kHolders && n < kDescriptors; ++n) {
        link(fmt::format("{}/fd/{}", pid, 20 + n), "/dev/dri/renderD128");
        write(fmt::format("{}/fdinfo/{}", pid, 20 + n),
              fdinfo(i * kDescriptors + n % clients, lock_free));
        fdinfo_files.push_back(root_ / fmt::format("{}/fdinfo/{}", pid, 20 + n));
      }
      if (i < kHolders) {
        kfd[pid] = {pid, static_cast<std::uint64_t>(pid)};
        stat_files.push_back(root_ / fmt::format("{}/stat", pid));
      }
    }
  }

  ~Host() { std::filesystem::remove_all(root_); }

  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return root_; }

  std::vector<std::string> fdinfo_files;
  std::vector<std::string> stat_files;
  apu::GpuHolders::KfdProcesses kfd;

 private:
  void write(const std::string& relative, const std::string& text) const {
    std::filesystem::create_directories((root_ / relative).parent_path());
    std::ofstream(root_ / relative) << text;
  }

  void link(const std::string& relative, const std::string& target) const {
    std::filesystem::create_directories((root_ / relative).parent_path());
    std::filesystem::create_symlink(target, root_ / relative);
  }

  std::filesystem::path root_;
};

/// Made once: to make one takes seconds.
const Host& host_of(int clients, bool lock_free) {
  static std::map<std::pair<int, bool>, Host> hosts;
  return hosts.try_emplace({clients, lock_free}, clients, lock_free).first->second;
}

double seconds_of(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// CPU seconds of this thread, and of a helper, if there is one.
double cpu_seconds(pid_t helper) {
  clockid_t clock{};
  const bool running = helper > 0 && ::clock_getcpuclockid(helper, &clock) == 0;
  return seconds_of(CLOCK_THREAD_CPUTIME_ID) + (running ? seconds_of(clock) : 0);
}

void read_to_the_end(const std::string& path) {
  std::array<char, 16384> piece;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  while (::read(fd, piece.data(), piece.size()) > 0) {
  }
  ::close(fd);
}

void read_links(const std::filesystem::path& directory) {
  std::array<char, 4096> target;
  DIR* const names = ::opendir(directory.c_str());
  while (const dirent* entry = ::readdir(names)) {
    benchmark::DoNotOptimize(
        ::readlinkat(::dirfd(names), entry->d_name, target.data(), target.size()));
  }
  ::closedir(names);
}

template <typename Action>
void measure(benchmark::State& state, Action action, const apu::ClientReader* reader = nullptr) {
  action();
  const auto helper = [&] { return reader != nullptr ? reader->helper() : -1; };
  for ([[maybe_unused]] auto _ : state) {
    const double start = cpu_seconds(helper());
    action();
    state.SetIterationTime(cpu_seconds(helper()) - start);
  }
}

void floor_of_a_pass(benchmark::State& state) {
  const Host& host = host_of(kDescriptors, true);
  measure(state, [&] {
    for (const auto* files : {&host.stat_files, &host.fdinfo_files}) {
      for (const std::string& file : *files) {
        read_to_the_end(file);
      }
    }
  });
}

void floor_of_a_sweep(benchmark::State& state) {
  const Host& host = host_of(kDescriptors, true);
  measure(state, [&] {
    for (int i = 0; i < kProcesses; ++i) {
      read_links(host.path() / std::to_string(kFirstPid + i) / "fd");
    }
    for (const auto* files : {&host.stat_files, &host.fdinfo_files}) {
      for (const std::string& file : *files) {
        read_to_the_end(file);
      }
    }
  });
}

void pass(benchmark::State& state, bool sweep, bool lock_free, int clients) {
  const Host& host = host_of(clients, lock_free);
  const apu::FileRoot procfs(host.path());
  apu::GpuHolders holders(procfs);
  apu::ClientReader reader(procfs,
                           apu::SourceReporter(std::make_shared<apu::SourceBoard>(), "bench"), {});
  apu::Attribution attribution;
  const apu::DrmMinors minors;
  (void)holders.update(host.kfd, minors, true);
  (void)reader.read(holders);
  const auto action = [&] {
    (void)holders.update(host.kfd, minors, sweep);
    const auto readings = reader.read(holders);
    const auto facts = attribution.attribute(holders.all(), readings, {}, true);
    if (facts.unread != 0 ||
        facts.gpus.at("0000:c5:00.0").clients != static_cast<unsigned>(kHolders * clients)) {
      state.SkipWithError("not what is there");
    }
    benchmark::DoNotOptimize(apu::to_families(facts));
  };
  measure(state, action, &reader);
}

void register_all() {
  const auto add = [](const char* name, auto function, auto... arguments) {
    benchmark::RegisterBenchmark(name, function, arguments...)
        ->UseManualTime()
        ->Unit(benchmark::kMicrosecond);
  };
  add("pass/floor", floor_of_a_pass);
  add("pass/new_layout/10_clients", pass, false, true, 10);
  add("pass/old_layout/10_clients", pass, false, false, 10);
  add("pass/new_layout/2_clients", pass, false, true, 2);
  add("pass/old_layout/2_clients", pass, false, false, 2);
  add("sweep/floor", floor_of_a_sweep);
  add("sweep/new_layout/10_clients", pass, true, true, 10);
  add("sweep/old_layout/10_clients", pass, true, false, 10);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && argv[1] == apu::kGuardedReaderOption) {
    return apu::run_guarded_reader();
  }
  register_all();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
