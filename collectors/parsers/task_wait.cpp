#include "collectors/parsers/task_wait.h"

#include <algorithm>
#include <array>
#include <utility>

#include "exporter/text.h"

namespace apu {
namespace {

/// A function's name: the whole of it, or what it begins with where that ends in '*'.
using Pattern = std::string_view;

// The functions of the driver and its caller below the restore worker's locks.
constexpr std::array kKfd{Pattern("kfd_*"), Pattern("svm_range_*"), Pattern("amdgpu_amdkfd_*"),
                          Pattern("amdgpu_hmm_*"), Pattern("svm_migrate_*")};

// mm/vmscan.c, mm/compaction.c, mm/memcontrol.c; what waits for the mmap_lock.
constexpr std::array kMemory{Pattern("shrink_*"),
                             Pattern("throttle_direct_reclaim"),
                             Pattern("reclaim_throttle"),
                             Pattern("try_to_free_*"),
                             Pattern("do_try_to_free_pages"),
                             Pattern("congestion_wait"),
                             Pattern("wait_iff_congested"),
                             Pattern("isolate_migratepages*"),
                             Pattern("compact_*"),
                             Pattern("mem_cgroup_*"),
                             Pattern("__mem_cgroup_*"),
                             Pattern("__alloc_pages*"),
                             Pattern("__access_remote_vm"),
                             Pattern("access_remote_vm"),
                             Pattern("lock_mm_and_find_vma"),
                             Pattern("do_user_addr_fault"),
                             Pattern("exc_page_fault"),
                             Pattern("vm_mmap_pgoff"),
                             Pattern("__vm_munmap"),
                             Pattern("do_mprotect_pkey"),
                             Pattern("do_madvise*"),
                             Pattern("rwsem_*"),
                             Pattern("migration_entry_wait*"),
                             Pattern("down_read*"),
                             Pattern("down_write*")};

// mm/filemap.c, block/, the file systems that hold models, fs/fuse/.
constexpr std::array kIo{Pattern("io_schedule*"),
                         Pattern("folio_wait_*"),
                         Pattern("__folio_lock*"),
                         Pattern("folio_lock*"),
                         Pattern("wait_on_page_*"),
                         Pattern("__lock_page*"),
                         Pattern("filemap_*"),
                         Pattern("swap_readpage*"),
                         Pattern("swap_read_folio*"),
                         Pattern("submit_bio_wait"),
                         Pattern("blk_*"),
                         Pattern("bio_*"),
                         Pattern("blkdev_*"),
                         Pattern("rq_qos_wait"),
                         Pattern("wbt_wait"),
                         Pattern("bit_wait_io"),
                         Pattern("balance_dirty_pages"),
                         Pattern("__iomap_dio_rw"),  // direct I/O waits without io_schedule
                         Pattern("iomap_*"),
                         Pattern("__blockdev_direct_IO"),
                         Pattern("dio_*"),
                         Pattern("md_*"),
                         Pattern("raid5_*"),
                         Pattern("ext4_*"),
                         Pattern("f2fs_*"),
                         Pattern("squashfs_*"),
                         Pattern("bcachefs_*"),
                         Pattern("netfs_*"),
                         Pattern("nfs4_*"),
                         Pattern("ceph_*"),
                         Pattern("cifs_*"),
                         Pattern("smb2_*"),
                         Pattern("p9_*"),
                         Pattern("v9fs_*"),
                         Pattern("jbd2_*"),
                         Pattern("xfs_*"),
                         Pattern("btrfs_*"),
                         Pattern("zio_wait"),
                         Pattern("cv_wait_common"),
                         Pattern("nfs_*"),
                         Pattern("rpc_wait_bit_killable"),
                         Pattern("request_wait_answer"),
                         Pattern("fuse_*"),
                         Pattern("nvme_*")};

bool matches(Pattern pattern, std::string_view name) {
  if (pattern.ends_with('*')) {
    pattern.remove_suffix(1);
    return name.starts_with(pattern);
  }
  return name == pattern;
}

template <size_t N>
bool any_matches(const std::array<Pattern, N>& patterns, std::string_view name) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](Pattern pattern) { return matches(pattern, name); });
}

/// Whether it is an ioctl of /dev/kfd: those have the type 'K' in bits 15 to 8 of the command.
bool is_kfd_ioctl(const BlockedSyscall& syscall) {
  constexpr std::int64_t kIoctl = 16;  // x86-64, where these GPUs are
  constexpr std::uint64_t kTypeMask = 0xff00;
  constexpr std::uint64_t kKfdType = 0x4b00;
  return syscall.number == kIoctl && (syscall.argument & kTypeMask) == kKfdType;
}

std::optional<std::uint64_t> parse_hex(std::string_view text) {
  constexpr int kBase = 16;
  if (!consume(text, "0x")) {
    return std::nullopt;
  }
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value, kBase);
  return parsed.ec == std::errc{} && parsed.ptr == end ? std::optional(value) : std::nullopt;
}

}  // namespace

std::string_view to_label(TaskWait wait) {
  constexpr std::array<std::string_view, 4> kLabels{"kfd", "memory", "io", "other"};
  return kLabels.at(static_cast<size_t>(wait));
}

std::optional<BlockedSyscall> parse_syscall(std::string_view text) {
  constexpr size_t kOutside = 3;
  constexpr size_t kInside = 9;
  const auto fields = split_fields(first_line(text));
  const auto number = fields.empty() ? std::nullopt : parse_number<std::int64_t>(fields[0]);
  if (!number || fields.size() != (*number == -1 ? kOutside : kInside)) {
    return std::nullopt;
  }
  if (*number == -1) {
    return BlockedSyscall{};
  }
  const auto argument = parse_hex(fields[2]);
  return argument ? std::optional(BlockedSyscall{*number, *argument}) : std::nullopt;
}

TaskWait classify_wait(std::string_view wchan, const std::optional<BlockedSyscall>& syscall) {
  const std::string_view name = trim(first_line(wchan));
  if ((syscall && is_kfd_ioctl(*syscall)) || any_matches(kKfd, name)) {
    return TaskWait::kKfd;
  }
  if (any_matches(kMemory, name)) {
    return TaskWait::kMemory;
  }
  return any_matches(kIo, name) ? TaskWait::kIo : TaskWait::kOther;
}

}  // namespace apu
