"""Seats of real processes on a machine without a GPU, whatever its cgroups are.

The host that the exporter reads is a folder: of each process that was put into a seat its /proc
directory has links to the real files, and the one file that says otherwise, `cgroup`.
"""
import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time

import exporter as apu
from seat_program import join_seat

PROGRAMS = pathlib.Path(__file__).with_name("seat_program.py")
KTHREADD = "2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 2 0 0 0\n"


class Program:
    """A process of a seat that runs one of seat_program.py."""

    def __init__(self, seat, name, *arguments):
        self.seat = seat
        # Its standard library alone, so that it starts as soon as it can.
        self.process = subprocess.Popen([sys.executable, "-B", "-S", PROGRAMS, name, *map(str, arguments)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        start_new_session=True)
        join_seat(seat, self.process.pid)

    @property
    def pid(self):
        return self.process.pid

    def said(self):
        """The next line that it says, which it may not have said yet."""
        return self.process.stdout.readline().strip()

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.said()

    def kill(self):
        """Ends it and all its children; that of one that has ended does nothing."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.process.wait()
        self.leave_seat()
        self.process.stdin.close()
        self.process.stdout.close()

    def stop(self):
        """Ends it by the end of its input."""
        self.process.stdin.close()
        self.process.wait(timeout=apu.DEADLINE)
        self.leave_seat()
        self.process.stdout.close()

    def leave_seat(self):
        """As the kernel, which has no ended process in a cgroup."""
        procs = self.seat / "cgroup.procs"
        if procs.exists():
            procs.write_text("".join(line for line in procs.read_text().splitlines(keepends=True)
                                     if os.path.exists(f"/proc/{line.strip()}")))


class LiveHost:
    """A host with the machine's time, and seats without processes to begin with."""

    def __init__(self):
        self._folder = tempfile.TemporaryDirectory(prefix="apu-seats-")
        self.path = pathlib.Path(self._folder.name) / "host"
        proc = self.path / "proc"
        (proc / "2").mkdir(parents=True)
        (proc / "2/stat").write_text(KTHREADD)
        (proc / "1").mkdir()
        (proc / "1/cgroup").write_text("0::/\n")
        (proc / "stat").symlink_to("/proc/stat")
        (self.path / "sys/class").mkdir(parents=True)
        self.cgroups = self.path / "sys/fs/cgroup"
        self.cgroups.mkdir(parents=True)
        (self.cgroups / "cgroup.controllers").write_text("memory\n")
        (self.cgroups / "memory.stat").write_text("anon 1\n")

    def seat(self, name):
        """The folder of a new seat's cgroup."""
        seat = self.cgroups / "system.slice" / f"{name}.service"
        seat.mkdir(parents=True)
        (seat / "cgroup.procs").touch()
        return seat

    def remove(self):
        self._folder.cleanup()


class Watch:
    """Scrapes an exporter all the time, and keeps what it told."""

    def __init__(self, exporter):
        self._exporter = exporter
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._history = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        while not self._stopped.is_set():
            samples = self._exporter.samples()
            with self._lock:
                self._history.append((time.monotonic(), samples))
            self._stopped.wait(0.05)

    def history(self):
        """All samples so far, oldest first."""
        with self._lock:
            return [samples for _, samples in self._history]

    def wait(self, condition, what):
        """Waits until condition(samples) holds of a scrape that began later, and returns these."""
        start = time.monotonic()

        def found():
            with self._lock:
                newest = self._history[-1] if self._history else (start, {})
            return newest[0] > start and condition(newest[1]) and newest[1]
        return apu.wait_for(found, what)

    def stop(self):
        self._stopped.set()
        self._thread.join(timeout=apu.DEADLINE)
