#pragma once

#include <cstdint>
#include <vector>

namespace apu {

/// What decides how much of a cgroup's memory is protected, of one level of the tree, in bytes.
struct ProtectionLevel {
  std::uint64_t usage = 0;    ///< memory.current of the cgroup on the way
  std::uint64_t setting = 0;  ///< memory.min or memory.low of it
  /// Sum of min(usage, setting) over it and its siblings.
  std::uint64_t siblings_protected = 0;
};

/// Bytes that reclaim leaves alone: the effective memory.min or memory.low of the last cgroup of
/// `path`, whose first is a child of the root. `recursive`: what a parent's protection leaves over
/// is shared among its children (mount option memory_recursiveprot, which systemd sets).
///
/// Source: page_counter_calculate_protection and effective_protection in mm/page_counter.c, in
/// mm/memcontrol.c before 6.11.
std::uint64_t effective_protection(const std::vector<ProtectionLevel>& path, bool recursive);

}  // namespace apu
