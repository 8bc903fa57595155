#!/usr/bin/python3
"""A reader in true uninterruptible sleep: a FUSE file (direct_io) whose read never returns.

After SIGTERM the stuck thread stays, and the process's leader as a zombie, until the FUSE daemon is
killed: nothing here waits for that process. What must hold: the port is free at once.
"""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import exporter as apu  # noqa: E402

HANGFS = os.environ.get("APU_HANGFS")


class HangingMount:
    """A fixture behind hangfs, in which proc/pressure/memory hangs once hang() was called."""

    def __enter__(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="apu-fuse-"))
        self.host = self.directory / "host"
        self.host.mkdir()
        self.daemon = subprocess.Popen(
            [HANGFS, str(apu.FIXTURES / "strix_halo_healthy"), "/proc/pressure/memory", str(self.host)],
            start_new_session=True)
        apu.wait_for(self.host.joinpath("time").exists, "the mount stands")
        return self

    def hang(self):
        (self.directory / "hang").touch()

    def __exit__(self, *_):
        self.daemon.kill()  # frees whoever reads
        self.daemon.wait()
        subprocess.run(["umount", "--lazy", str(self.host)], check=False)
        shutil.rmtree(self.directory, ignore_errors=True)


def state_of(pid, thread):
    try:
        stat = pathlib.Path(f"/proc/{pid}/task/{thread}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return "gone"
    return stat[stat.rindex(")") + 2]


def thread_states(pid):
    return {thread: state_of(pid, thread) for thread in apu.thread_ids(pid)}


class UninterruptibleSleep(unittest.TestCase):
    def test_a_stuck_thread_keeps_neither_the_port_nor_the_others(self):
        with HangingMount() as mount:
            with apu.Exporter(f"--path.rootfs={mount.host}",
                              "--collector.pressure.period=200ms") as exporter:
                try:
                    self.check_with_a_stuck_thread(mount, exporter)
                finally:
                    mount.daemon.kill()  # before anything waits for the exporter to end
                exporter.process.wait(timeout=apu.DEADLINE)

    def check_with_a_stuck_thread(self, mount, exporter):
        exporter.wait_ready()
        mount.hang()
        exporter.wait_sample('apu_collector_overdue{collector="pressure"}', lambda v: v == 1)
        self.check_it_answers(exporter)
        self.check_after_sigterm(exporter)

    def check_it_answers(self, exporter):
        threads = len(apu.thread_ids(exporter.process.pid))
        for _ in range(50):
            self.assertIn("apu_memory_size_bytes", exporter.samples())
        self.assertEqual(len(apu.thread_ids(exporter.process.pid)), threads)

    def check_after_sigterm(self, exporter):
        pid = exporter.process.pid
        address = exporter.url.removeprefix("http://")
        exporter.process.send_signal(signal.SIGTERM)
        apu.wait_for(lambda: sorted(thread_states(pid).values()) == ["D", "Z"],
                     "only a thread in D and a zombie leader remain")
        with apu.Exporter(f"--web.listen-address={address}",
                          f"--path.rootfs={apu.FIXTURES / 'no_psi'}") as second:
            self.assertEqual(apu.http_get(f"http://{address}/-/healthy").status, 200)
            self.assertEqual(second.stop()[0], 0)


if __name__ == "__main__":
    if not HANGFS:
        apu.cannot_run("hangfs was not built: libfuse3-dev is not installed")
    if not os.access("/dev/fuse", os.W_OK) or os.geteuid() != 0:
        apu.cannot_run("mounting a FUSE file system needs root and /dev/fuse")
    unittest.main()
