#!/usr/bin/python3
"""No collector opens a file that can hang for ever or that acts when it is read.

The exporter runs once under strace on a copy of a fixture that has all these files. They are plain
files here, so that one that is opened is seen, and not waited for.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import exporter as apu  # noqa: E402

FIXTURE = "strix_halo_thrash"
PCI = "0000:c5:00.0"
PID = "41204"

# Readers wait for the process's memory map: these are for the helper process alone, and the first
# two are all that it reads.
PROCESS = ("cmdline", "environ", "maps", "smaps", "smaps_rollup", "numa_maps", "mem", "pagemap",
           "task/{pid}/maps", "task/{pid}/smaps", "task/{pid}/cmdline", "task/{pid}/environ")
# The driver's worker reads the process's memory while it holds locks.
KFD = ("sdma_29772", "stats_29772/cu_occupancy", "context_1/sdma_29772")
# Wait for locks or registers.
DEBUG = ("kfd/mqds", "kfd/hqds", "kfd/rls", "kfd/hang_hws", "ttm/page_pool_shrink", "ttm/tt_shrink",
         "dma_buf/bufinfo")
# Wait for every process's buffers, or for the list of open files; evict, test, reset; touch registers or the memory of the device.
DEVICE = ("amdgpu_vm_info", "amdgpu_evict_vram", "amdgpu_evict_gtt", "amdgpu_test_ib",
          "amdgpu_benchmark", "amdgpu_preempt_ib", "amdgpu_gpu_recover", "amdgpu_regs",
          "amdgpu_regs2", "amdgpu_regs_didt", "amdgpu_regs_pcie", "amdgpu_regs_smc", "amdgpu_wave",
          "amdgpu_gpr", "amdgpu_gca_config", "amdgpu_vram", "amdgpu_iomem", "amdgpu_sensors",
          "amdgpu_fence_info", "amdgpu_sa_info", "amdgpu_gem_info", "amdgpu_ring_gfx_0.0.0")
# Wake the device, or ask its firmware; and what makes a device, or lets one go.
SYSFS = (f"bus/pci/devices/{PCI}/gpu_metrics", f"bus/pci/devices/{PCI}/mem_busy_percent",
         f"bus/pci/devices/{PCI}/pcie_bw", f"bus/pci/devices/{PCI}/config",
         f"bus/pci/devices/{PCI}/rom", f"bus/pci/devices/{PCI}/hwmon/hwmon4/power1_input",
         f"bus/pci/devices/{PCI}/hwmon/hwmon4/freq1_input",
         f"bus/pci/devices/{PCI}/pp_dpm_sclk", "class/zram-control/hot_add")


def dangerous_files(host):
    processes = [path.name for path in (host / "proc").iterdir() if path.name.isdigit()]
    for pid in processes:
        yield from (host / "proc" / pid / name.format(pid=pid) for name in PROCESS)
    for entry in (host / "sys/class/kfd/kfd/proc").iterdir():
        yield from (entry / name for name in KFD)
    debug = host / "sys/kernel/debug"
    yield from (debug / name for name in DEBUG)
    for device in (PCI, "1", "128"):
        yield from (debug / "dri" / device / name for name in DEVICE)
    yield from (host / "sys" / name for name in SYSFS)
    yield host / "dev/kfd"
    yield host / "dev/dri/renderD128"


def make(file):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("0\n")


CALLS = "open,openat,openat2,creat,readlink,readlinkat,execve"


def opened_files(log):
    """The paths in a log of strace, those of directories and of what failed to open too."""
    call = re.compile(rf'\b(?:{CALLS.replace(",", "|")})\((?:[^",]+, )?"((?:[^"\\]|\\.)*)"')
    return [match[1] for match in call.finditer(log)]


def part_helpers(log):
    """A log in two: what the exporter itself did, and what its readers of files did that may hang."""
    lines = log.splitlines(keepends=True)
    helpers = {line.split()[0] for line in lines if "execve(" in line and "--guarded-reader" in line}
    own = [line for line in lines if line.split()[0] not in helpers]
    return "".join(own), "".join(line for line in lines if line.split()[0] in helpers)


def trace(command, **keywords):
    """Runs a command to its end; what it printed, and the log of its calls."""
    with tempfile.TemporaryDirectory() as directory:
        log = pathlib.Path(directory) / "trace"
        done = subprocess.run(["strace", "--follow-forks", "-s", "4096", "-e", "trace=" + CALLS,
                               "-o", log, *command],
                              capture_output=True, text=True, errors="replace", timeout=120,
                              check=False, **keywords)
        return done, log.read_text(errors="replace")


def resolved(paths):
    """The files themselves: the links of sysfs lead to one by several names."""
    return {pathlib.Path(path).resolve() for path in paths}


class DangerousFiles(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with apu.fixture_copy(FIXTURE) as host:
            cls.dangerous = list(dangerous_files(host))
            for file in cls.dangerous:
                make(file)
            cls.dangerous = resolved(cls.dangerous)
            cls.exporter, log = trace([apu.BINARY, "--once", f"--path.rootfs={host}"],
                                      env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"})  # not in ptrace
            own, helpers = part_helpers(log)
            cls.opened = resolved(opened_files(own))
            cls.opened_by_helpers = resolved(opened_files(helpers))
            cls.host = host.resolve()

    def test_every_collector_ran(self):
        self.assertEqual(self.exporter.returncode, 0, self.exporter.stderr)
        for series in ("apu_gpu_memory_used_bytes{", "apu_gpu_busy_ratio{", "apu_kfd_processes 4",
                       "apu_kfd_memory_limit_bytes{", "apu_ttm_pool_bytes "):
            self.assertIn(f"\n{series}", self.exporter.stdout)

    def test_the_trace_shows_what_is_opened(self):
        read = {path.relative_to(self.host).as_posix() for path in self.opened
                if path.is_relative_to(self.host)}
        for file in ("proc/meminfo", f"proc/{PID}/stat", f"sys/class/kfd/kfd/proc/{PID}/vram_29772",
                     "sys/kernel/debug/kfd/mem_limit",
                     f"sys/devices/pci0000:00/0000:00:08.1/{PCI}/gpu_busy_percent"):
            self.assertIn(file, read)

    def test_none_of_them_is_opened(self):
        self.assertEqual(self.opened & self.dangerous, set())

    def test_the_helper_opens_none_but_what_it_is_for(self):
        process = self.host / "proc" / PID
        self.assertLessEqual({process / "cmdline", process / "environ"}, self.opened_by_helpers)
        self.assertEqual({path.name for path in self.opened_by_helpers & self.dangerous},
                         {"cmdline", "environ"})

    def test_only_the_collector_of_graphics_clients_opens_their_list(self):
        with apu.fixture_copy(FIXTURE) as host:
            dangerous = list(dangerous_files(host))
            for file in dangerous:
                make(file)
            _, log = trace([apu.BINARY, "--once", "--collector.gpu_gem", f"--path.rootfs={host}"],
                           env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"})
            opened = opened_files(part_helpers(log)[0])
            gem_info = host / "sys/kernel/debug/dri" / PCI / "amdgpu_gem_info"
            self.assertEqual(resolved(opened) & resolved(dangerous), {gem_info.resolve()})

    def test_one_that_is_opened_would_be_seen(self):
        with apu.fixture_copy(FIXTURE) as host:
            file = host / "sys/class/drm/card1/device/hwmon/hwmon4/power1_input"
            make(file)
            _, log = trace(["cat", file])
            self.assertIn(file.resolve(), resolved(opened_files(log)))

    def test_nothing_is_listed_below_debugfs(self):
        debug = self.host / "sys/kernel/debug"
        directories = {debug, debug / "kfd", debug / "ttm", debug / "dri", debug / "dri" / PCI}
        self.assertEqual(self.opened & directories, set())


if __name__ == "__main__":
    apu.need_programs("strace")
    if trace(["true"])[0].returncode != 0:
        apu.cannot_run("strace may not trace a process")
    unittest.main()
