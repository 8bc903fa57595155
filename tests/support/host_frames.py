"""Hosts as the exporter reads them, of a description: each frame of a replay is one, with its own time.

A Host has what changes, its processes, its log and its cgroups; all else is linked from a fixture.
Time passes by Host.run(seconds, {process: Doing}); Frames.add(host) writes what is then to be seen.
"""
import dataclasses
import itertools
import os
import pathlib
import tempfile

import exporter as apu

TICKS = 100  # a second: USER_HZ
GPU, GPU_ID, NODE = "0000:c5:00.0", 29772, "renderD128"  # of the fixtures
KFD_PROC = "sys/class/kfd/kfd/proc"
KERNEL_THREAD = 0x00208040  # PF_KTHREAD and what else a worker has
MIB = 1 << 20
IN_MEMORY = pathlib.Path("/dev/shm")


# --- what processes do


@dataclasses.dataclass(frozen=True)
class ThreadDoing:
    """What one thread does, a second."""
    user: float = 0  # cores
    system: float = 0  # cores
    voluntary: float = 0
    involuntary: float = 0
    waits_to_run: float = 0  # of a second
    state: str = "S"
    wchan: str = "0"
    syscall: str = "running"


@dataclasses.dataclass(frozen=True)
class Doing:
    """What a process does for a while, a second; threads that are not named sleep."""
    threads: dict = dataclasses.field(default_factory=dict)  # by number; 0 is the main thread
    resident: float = 0  # bytes
    reads: float = 0  # bytes
    gpu: float = 0  # bytes
    faults: float = 0
    evicted: float = 0  # seconds that its queues are evicted


# --- processes


@dataclasses.dataclass
class Thread:
    user: float = 0.0
    system: float = 0.0
    waited: float = 0.0
    voluntary: float = 0.0
    involuntary: float = 0.0
    doing: ThreadDoing = ThreadDoing()

    def run(self, seconds, doing):
        self.doing = doing
        self.user += doing.user * seconds
        self.system += doing.system * seconds
        self.waited += doing.waits_to_run * seconds
        self.voluntary += doing.voluntary * seconds
        self.involuntary += doing.involuntary * seconds


class Process:
    """A process; `start` in seconds since boot. With a `unit` it is in that cgroup, else in the root."""

    def __init__(self, pid, start, command="llama-server", unit=None, threads=3, arguments=("llama-server",), on_gpu=True):
        self.pid, self.start, self.command, self.unit, self.on_gpu = pid, start, command, unit, on_gpu
        self.arguments = arguments
        self.threads = [Thread() for _ in range(threads)]
        self.anon, self.file, self.swapped, self.read, self.gpu = 4.0 * MIB, 0.0, 0.0, 0.0, 0.0
        self.faults = self.evicted = 0.0

    def run(self, seconds, doing):
        for number, thread in enumerate(self.threads):
            thread.run(seconds, doing.threads.get(number, ThreadDoing()))
        self.anon += doing.resident * seconds
        self.read += doing.reads * seconds
        self.gpu += doing.gpu * seconds
        self.faults += doing.faults * seconds
        self.evicted += doing.evicted * seconds


def stat_line(number, process, state, user, system, start, flags=4194304, parent=1):
    """A line of /proc/PID/stat or of a thread's."""
    fields = [parent, process.pid, process.pid, 0, -1, flags, int(process.faults), 0, 0, 0, int(user * TICKS),
              int(system * TICKS), 0, 0, 20, 0, len(process.threads), 0, int(start * TICKS)]
    return f"{number} ({process.command}) {state} " + " ".join(map(str, fields + [0] * 30)) + "\n"


def status_text(number, process, thread):
    kib = {"VmLck": 0, "VmRSS": process.anon + process.file, "RssAnon": process.anon, "RssFile": process.file,
           "RssShmem": 0, "VmSwap": process.swapped}
    memory = "".join(f"{name}:\t{int(value) // 1024:8} kB\n" for name, value in kib.items())
    return (f"Name:\t{process.command}\nState:\t{thread.doing.state}\nTgid:\t{process.pid}\nPid:\t{number}\n{memory}"
            f"Threads:\t{len(process.threads)}\nvoluntary_ctxt_switches:\t{int(thread.voluntary)}\n"
            f"nonvoluntary_ctxt_switches:\t{int(thread.involuntary)}\n")


def schedstat_text(thread):
    run = thread.user + thread.system
    return f"{int(run * 1e9)} {int(thread.waited * 1e9)} {int(thread.voluntary + thread.involuntary) + 1}\n"


def io_text(process):
    return (f"rchar: {int(process.read)}\nwchar: 0\nsyscr: 0\nsyscw: 0\nread_bytes: {int(process.read)}\n"
            "write_bytes: 0\ncancelled_write_bytes: 0\n")


# --- files


def write(file, text):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def write_threads(directory, process):
    for number, thread in enumerate(process.threads):
        tid = process.pid + number
        task = directory / "task" / str(tid)
        write(task / "stat", stat_line(tid, process, thread.doing.state, thread.user, thread.system,
                                       process.start + number / TICKS))
        write(task / "status", status_text(tid, process, thread))
        write(task / "schedstat", schedstat_text(thread))
        write(task / "wchan", thread.doing.wchan)
        write(task / "syscall", thread.doing.syscall + "\n")


def write_process(root, process):
    """/proc/PID, its descriptors on the GPU included."""
    directory = root / "proc" / str(process.pid)
    main = process.threads[0]
    user, system = (sum(getattr(thread, mode) for thread in process.threads) for mode in ("user", "system"))
    write(directory / "stat", stat_line(process.pid, process, main.doing.state, user, system, process.start))
    write(directory / "status", status_text(process.pid, process, main))
    write(directory / "io", io_text(process))
    write(directory / "cgroup", f"0::/{process.unit or ''}\n")
    write(directory / "cmdline", "".join(argument + "\0" for argument in process.arguments))
    write(directory / "environ", "")
    write_threads(directory, process)
    (directory / "fd").mkdir()
    (directory / "fdinfo").mkdir()
    if process.on_gpu:
        write_client(directory, process)
        write_kfd_process(root, process)


def write_client(directory, process):
    """Its descriptors of /dev/kfd and of the render node, with what it holds there."""
    for number, target in (("5", "/dev/kfd"), ("7", f"/dev/dri/{NODE}")):
        (directory / "fd" / number).symlink_to(target)
    plain = "pos:\t0\nflags:\t02100002\nmnt_id:\t27\nino:\t614\n"
    gtt = int(process.gpu) // 1024
    write(directory / "fdinfo/5", plain)
    write(directory / "fdinfo/7", plain + f"drm-driver:\tamdgpu\ndrm-client-id:\t{process.pid}\ndrm-pdev:\t{GPU}\n"
          f"pasid:\t32788\ndrm-total-vram:\t64 KiB\ndrm-resident-vram:\t64 KiB\ndrm-total-gtt:\t{gtt} KiB\n"
          f"drm-resident-gtt:\t{gtt} KiB\ndrm-memory-vram:\t64 KiB\ndrm-memory-gtt: \t{gtt} KiB\n")


def write_kfd_process(root, process):
    """/sys/class/kfd/kfd/proc/PID with one compute queue."""
    directory = root / KFD_PROC / str(process.pid)
    write(directory / "pasid", "32788")
    write(directory / f"vram_{GPU_ID}", f"{int(process.gpu)}\n")
    write(directory / f"stats_{GPU_ID}/evicted_ms", f"{int(process.evicted * 1000)}\n")
    for name, value in (("gpuid", GPU_ID), ("size", 2977), ("type", 2)):
        write(directory / "queues/0" / name, str(value))


def write_cgroup(root, unit, processes, memory):
    """The cgroup of a unit, with its processes and its memory's files."""
    directory = root / "sys/fs/cgroup" / unit
    write(directory / "cgroup.procs", "".join(f"{process.pid}\n" for process in processes))
    for name, value in memory.items():
        write(directory / name, f"{value}\n")


def write_kworker(root, kworker):
    write(root / "proc" / str(kworker.pid) / "stat",
          stat_line(kworker.pid, kworker, "I", kworker.threads[0].user, kworker.threads[0].system, kworker.start,
                    KERNEL_THREAD, parent=2))


def link_rest(base, target, left_out):
    """Links what `base` has and `target` has not; folders of the paths `left_out` stay as they are."""
    for entry in sorted(base.iterdir()):
        mine = target / entry.name
        if mine in left_out:
            continue
        if not os.path.lexists(mine):
            mine.symlink_to(entry.absolute())
        elif mine.is_dir() and not mine.is_symlink():
            link_rest(entry, mine, left_out)


# --- the host


class Host:
    """A host of `fixture` without its processes, cgroups and log; `boot` in Unix seconds is the fixture's."""

    def __init__(self, fixture="strix_halo_healthy"):
        self.base = apu.FIXTURES / fixture
        self.boot = int(next(line for line in (self.base / "proc/stat").read_text().splitlines()
                             if line.startswith("btime")).split()[1])
        self.uptime = 86400.0  # seconds since boot
        self.processes, self.kworkers = [], []
        self.units = {}  # path of the cgroup: {file of the memory controller: value}
        self.files = {}  # any other: {path: text}
        self._log, self._sequence = ["Linux version 6.14.0-36-generic (builder) #1 SMP"], itertools.count()

    @property
    def time(self):
        """Unix seconds."""
        return self.boot + self.uptime

    def add_seat(self, name, **keywords):
        """A unit with one process, started now, and the process."""
        process = Process(3000 + 20 * len(self.processes), keywords.pop("start", self.uptime),
                          unit=f"system.slice/{name}.service", **keywords)
        self.processes.append(process)
        self.units.setdefault(process.unit, {"memory.current": 1 << 30, "memory.max": "max", "memory.low": 0,
                                             "memory.min": 0, "memory.high": "max",
                                             "memory.stat": "anon 536870912\nfile 268435456"})
        return process

    def add_kworker(self, workqueue, cpu=0):
        """A per-CPU worker that was last seen to work for that queue."""
        kworker = Process(100 + len(self.kworkers), 1.0, f"kworker/{cpu}:1+{workqueue}", threads=1, on_gpu=False)
        self.kworkers.append(kworker)
        return kworker

    def say(self, message, level=4):
        """A line of the kernel's log, now."""
        self._log.append((level, self.uptime, message))

    def run(self, seconds, doings):
        """Time passes; processes without a doing sleep."""
        self.uptime += seconds
        for process in self.processes + self.kworkers:
            process.run(seconds, doings.get(process, Doing()))

    def write(self, root):
        """Writes the host as it is now to a new folder; the log's lines since the last time only."""
        for process in self.processes:
            write_process(root, process)
        for kworker in self.kworkers:
            write_kworker(root, kworker)
        for unit, memory in self.units.items():
            write_cgroup(root, unit, [process for process in self.processes if process.unit == unit], memory)
        write(root / "sys/fs/cgroup/cgroup.controllers", "cpu io memory pids\n")
        write(root / "sys/fs/cgroup/memory.stat", "anon 8589934592\nfile 17179869184\n")
        (root / KFD_PROC).mkdir(parents=True, exist_ok=True)
        for path, text in self.files.items():
            write(root / path, text)
        write(root / "kernel.log", self._take_log())
        write(root / "time", f"{self.time}\n")
        processes = {root / "proc" / entry.name for entry in (self.base / "proc").iterdir()
                     if entry.name.isdigit() and entry.name not in ("1", "2")}
        link_rest(self.base, root, processes | {root / KFD_PROC, root / "sys/fs/cgroup"})

    def _take_log(self):
        lines = []
        for entry in self._log:
            level, seconds, text = entry if isinstance(entry, tuple) else (5, 0, entry)
            lines.append(f"{level},{next(self._sequence)},{int(seconds * 1e6)},-;{text}\n")
        self._log.clear()
        return "".join(lines)


class Frames:
    """Numbered hosts in a folder of their own, which --replay.frames plays."""

    def __init__(self):
        # Thousands of small files, which need no disk.
        self._folder = tempfile.TemporaryDirectory(prefix="apu-frames-", dir=IN_MEMORY if IN_MEMORY.is_dir() else None)
        self.folder = pathlib.Path(self._folder.name)
        self._numbers = itertools.count(1)

    def remove(self):
        self._folder.cleanup()

    def add(self, host):
        host.write(self.folder / f"{next(self._numbers):05}")

    def play(self, host, seconds, doings, step=5, each=None):
        """Lets time pass, a frame each `step` seconds; each() is called before each frame is written."""
        end = host.uptime + seconds
        while host.uptime < end:
            host.run(min(step, end - host.uptime), doings)
            if each is not None:
                each()
            self.add(host)
