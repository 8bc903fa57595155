// The parsers of files below /proc and /sys, and of options.

#include <cstdint>
#include <string_view>

#include "collectors/cgroup/cgroup_memory.h"
#include "collectors/cgroup/cgroup_mount.h"
#include "collectors/kfd_limits.h"
#include "collectors/kworkers.h"
#include "collectors/parsers/boot_time.h"
#include "collectors/parsers/buddyinfo.h"
#include "collectors/parsers/driver_number.h"
#include "collectors/parsers/fdinfo.h"
#include "collectors/parsers/keyed_numbers.h"
#include "collectors/parsers/kfd_topology.h"
#include "collectors/parsers/pid_stat.h"
#include "collectors/parsers/tcp_listeners.h"
#include "collectors/parsers/zram.h"
#include "collectors/pressure.h"
#include "collectors/seats/place.h"
#include "collectors/swap.h"
#include "exporter/duration.h"
#include "exporter/listen_address.h"
#include "exporter/text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast)
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static_cast<void>(apu::parse_pressure(text));
  static_cast<void>(apu::parse_swaps(text));
  static_cast<void>(apu::parse_kworker_name(text));
  static_cast<void>(apu::parse_boot_time(text));
  static_cast<void>(apu::parse_buddyinfo(text));
  static_cast<void>(apu::parse_fdinfo(text));
  static_cast<void>(apu::parse_vmstat(text));
  static_cast<void>(apu::parse_meminfo(text));
  static_cast<void>(apu::parse_kstat(text));
  static_cast<void>(apu::parse_pid_stat(text));
  static_cast<void>(apu::parse_zram_memory_used(text));
  static_cast<void>(apu::parse_fdinfo(text));
  static_cast<void>(apu::parse_driver_number(text));
  static_cast<void>(apu::parse_pci_id(text));
  apu::Problems problems;
  static_cast<void>(apu::parse_kfd_node(1, text, problems));
  static_cast<void>(apu::parse_tcp_listener(text, 1, problems));
  static_cast<void>(apu::parse_socket_link(text));
  static_cast<void>(apu::parse_kfd_mem_limit(text));
  static_cast<void>(apu::parse_ttm_page_pool(text));
  constexpr std::uint64_t kPageBytes = 4096;
  static_cast<void>(apu::parse_gtt_mm(text, kPageBytes));
  static_cast<void>(apu::parse_memory_limit(text));
  static_cast<void>(apu::parse_cgroup_mount(text));
  static_cast<void>(apu::parse_proc_cgroup(text));
  static_cast<void>(apu::parse_seat_place(text).name("command"));
  static_cast<void>(apu::parse_listen_address(text));
  static_cast<void>(apu::parse_duration(text));
  static_cast<void>(apu::to_valid_utf8(text));
  return 0;
}
