#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/parsers/problem.h"
#include "exporter/collector.h"

namespace apu {

/// One line of a pressure file.
struct PressureLine {
  double avg10 = 0;            ///< percent of the last 10 s, 0..100
  double avg60 = 0;            ///< percent, 0..100
  double avg300 = 0;           ///< percent, 0..100
  std::uint64_t total_us = 0;  ///< microseconds since boot, monotonic
};

/// One pressure file. A line that the kernel does not print is nullopt: no `full` for cpu before
/// 5.13, no `some` for irq.
struct Pressure {
  std::optional<PressureLine> some;
  std::optional<PressureLine> full;
  Problems problems;
};

/// Parses /proc/pressure/{cpu,memory,io,irq} and the *.pressure files of a cgroup.
///
/// Source: psi_show in kernel/sched/psi.c, Linux 4.20 and later.
/// Shape:  a "some" line, then a "full" line, where the kernel prints them.
/// Units:  avg* are percent; total is microseconds.
/// Problem: a known line that lacks a field or has one that is no number, or is there twice; a
///         file with neither line. Unknown lines and fields are skipped.
Pressure parse_pressure(std::string_view text);

struct NamedPressure {
  std::string resource;  ///< cpu, memory, io, irq
  Pressure pressure;
};

/// The facts of a pass.
struct PressureFacts {
  std::vector<NamedPressure> resources;  ///< those that could be read
};

Families to_families(const PressureFacts& facts);

std::span<const MetricInfo> pressure_metrics();

/// PSI of the host. Source "psi": absent with psi=0 or without CONFIG_PSI.
std::unique_ptr<Collector> make_pressure_collector(const CollectorContext& context);

}  // namespace apu
