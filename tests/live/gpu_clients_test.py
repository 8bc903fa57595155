#!/usr/bin/python3
"""fdinfo that never answers: it costs its own process alone, and leaves nobody behind."""
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import exporter as apu  # noqa: E402

HANGFS = os.environ.get("APU_HANGFS")
ALONE = ("--collector.disable-defaults", "--collector.gpu_clients", "--collector.gpu_clients.period=300ms")
TIMEOUTS = 'apu_guarded_read_timeouts_total{file="fdinfo"}'
BLOCKED = 'apu_source_unavailable_info{source="fdinfo",reason="blocked"}'
DENIED = 'apu_source_unavailable_info{source="fdinfo",reason="permission_denied"}'
PASSES = 'apu_collector_passes_total{collector="gpu_clients",outcome="ok"}'
OLD, CARD = "0000:c5:00.0", "0000:03:00.0"


def gtt(gpu):
    return f'apu_gpu_client_memory_bytes{{gpu="{gpu}",pool="gtt"}}'


def new_fdinfo(client, gtt_kib, gpu=OLD):
    """As kernels print it that keep sums."""
    return (f"pos:\t0\nflags:\t02100002\nmnt_id:\t27\nino:\t614\ndrm-driver:\tamdgpu\ndrm-client-id:\t{client}\n"
            f"drm-pdev:\t{gpu}\npasid:\t32771\ndrm-total-vram:\t64 KiB\ndrm-shared-vram:\t0\n"
            f"drm-resident-vram:\t64 KiB\ndrm-total-gtt:\t{gtt_kib} KiB\ndrm-resident-gtt:\t{gtt_kib} KiB\n"
            f"drm-memory-vram:\t64 KiB\ndrm-memory-gtt:\t{gtt_kib} KiB\n")


def fdinfo(client, gtt_kib, gpu=OLD):
    """As kernels print it that take locks for it."""
    return (f"pos:\t0\nflags:\t02100002\nmnt_id:\t27\nino:\t614\ndrm-driver:\tamdgpu\ndrm-client-id:\t{client}\n"
            f"drm-pdev:\t{gpu}\npasid:\t32771\ndrm-memory-vram:\t64 KiB\ndrm-memory-gtt: \t{gtt_kib} KiB\n"
            "drm-memory-cpu: \t0 KiB\n")


class FakeProcesses:
    """Processes below host/proc."""

    def __init__(self, host, layout=fdinfo):
        self.proc = host / "proc"
        self.layout = layout
        (self.proc / "2").mkdir(exist_ok=True)
        (self.proc / "2/stat").write_text("2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 2 0 0 0\n")

    def add(self, pid, client, gtt_kib, gpu=OLD, node="renderD128"):
        directory = self.proc / str(pid)
        (directory / "fd").mkdir(parents=True)
        (directory / "fdinfo").mkdir()
        (directory / "stat").write_text(
            f"{pid} (llama-server) S 1 {pid} {pid} 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 {pid} 0 0 0\n")
        (directory / "fd" / "7").symlink_to(f"/dev/dri/{node}")
        self.say(pid, client, gtt_kib, gpu)

    def say(self, pid, client, gtt_kib, gpu=OLD):
        new = self.proc / str(pid) / "fdinfo" / "new"
        new.write_text(self.layout(client, gtt_kib, gpu))
        os.replace(new, new.with_name("7"))

    def hang(self, pid):
        apu.replace_by_fifo(self.proc / str(pid) / "fdinfo/7")


def children_of(pid):
    children = []
    for task in apu.thread_ids(pid):
        children += pathlib.Path(f"/proc/{pid}/task/{task}/children").read_text().split()
    return [int(child) for child in children]


def reader_of(exporter):
    """The process id of the reader, which is the only child."""
    def only_child():
        children = children_of(exporter.process.pid)
        return len(children) == 1 and children[0]
    return int(apu.wait_for(only_child, "the reader runs"))


def is_gone(pid):
    return not os.path.exists(f"/proc/{pid}/exe")  # or a zombie of somebody else's


class Hanging(unittest.TestCase):
    def check_that_it_costs_itself_alone(self, exporter, say):
        """Of two GPUs one has a process that hangs. `say` sets what the other GPU's process holds."""
        exporter.wait_sample(TIMEOUTS, lambda value: value == 1)
        exporter.wait_sample(BLOCKED, lambda value: value == 1)
        for gtt_kib in (500, 600):
            say(gtt_kib)
            exporter.wait_sample(gtt(CARD), lambda value, k=gtt_kib: value == k * 1024, "the others are fresh")
            self.assertNotIn(gtt(OLD), exporter.samples())
        self.assertEqual(exporter.samples()[TIMEOUTS], 1)
        self.assertEqual(exporter.samples()["apu_gpu_unread_clients"], 1)
        self.assertEqual(exporter.samples()[f'apu_gpu_clients{{gpu="{OLD}"}}'], 2)
        named = [line for line in exporter.log if "does not answer" in line]
        self.assertEqual(len(named), 1, exporter.log)
        self.assertIn("/proc/200/fdinfo/7", named[0])

    def check_that_scrapes_are_answered(self, exporter):
        times = []
        for _ in range(50):
            start = time.monotonic()
            self.assertEqual(exporter.get().status, 200)
            times.append(time.monotonic() - start)
        self.assertLess(sorted(times)[len(times) // 2], 0.05)
        self.assertLess(max(times), 2)

    def test_a_fifo(self):
        with apu.fixture_copy("no_psi") as host:
            processes = FakeProcesses(host)
            processes.add(100, 1, 100)
            processes.add(200, 2, 20)
            processes.add(300, 3, 3, CARD, "renderD129")
            with apu.Exporter(f"--path.rootfs={host}", *ALONE) as exporter:
                exporter.wait_sample(gtt(OLD), lambda value: value == 120 * 1024)
                reader = reader_of(exporter)
                processes.hang(200)
                self.check_that_scrapes_are_answered(exporter)  # while a pass waits
                self.check_that_it_costs_itself_alone(exporter,
                                                      lambda kib: processes.say(300, 3, kib, CARD))
                self.assertNotEqual(reader_of(exporter), reader)
                self.assertTrue(is_gone(reader))
                code, seconds = exporter.stop()
                self.assertEqual(code, 0)
                self.assertLess(seconds, 5)

    def test_a_stop_while_a_file_hangs(self):
        with apu.fixture_copy("no_psi") as host:
            processes = FakeProcesses(host)
            for pid in range(200, 210):
                processes.add(pid, pid, 20)
                processes.hang(pid)
            with apu.Exporter(f"--path.rootfs={host}", *ALONE) as exporter:
                reader = reader_of(exporter)
                code, seconds = exporter.stop()
                self.assertEqual(code, 0)
                self.assertLess(seconds, 5)
                apu.wait_for(lambda: is_gone(reader), "the reader ends")

    def test_a_kill_while_a_file_hangs(self):
        """The reader waits in the file, and sees no end of its input."""
        with apu.fixture_copy("no_psi") as host:
            processes = FakeProcesses(host)
            processes.add(200, 2, 20)
            processes.hang(200)
            with apu.Exporter(f"--path.rootfs={host}", *ALONE) as exporter:
                reader = reader_of(exporter)
                exporter.process.kill()
                exporter.process.wait()
                apu.wait_for(lambda: is_gone(reader), "the reader ends")

    def test_one_seat_of_many_on_a_kernel_without_locks(self):
        """That the others' files tell of no lock makes the one that hangs no safer to read."""
        with apu.fixture_copy("no_psi") as host:
            processes = FakeProcesses(host, new_fdinfo)
            groups = host / "sys/fs/cgroup"
            groups.mkdir(parents=True, exist_ok=True)
            (groups / "cgroup.controllers").write_text("memory\n")
            (groups / "memory.stat").write_text("anon 1\n")
            for pid in range(100, 106):
                processes.add(pid, pid, 10)
                (host / f"proc/{pid}/cgroup").write_text(f"0::/system.slice/seat{pid}.service\n")
                unit = groups / f"system.slice/seat{pid}.service"
                unit.mkdir(parents=True)
                (unit / "cgroup.procs").write_text(f"{pid}\n")
            processes.hang(103)
            seats = ("--collector.cgroup", "--collector.cgroup.period=200ms", "--collector.seats",
                     "--collector.seats.period=200ms")
            with apu.Exporter(f"--path.rootfs={host}", *ALONE, *seats) as exporter:
                exporter.wait_sample(TIMEOUTS, lambda value: value == 1)
                for gtt_kib in (20, 30, 40):
                    for pid in (100, 101, 102, 104, 105):
                        processes.say(pid, pid, gtt_kib)
                    for pid in (100, 101, 102, 104, 105):
                        exporter.wait_sample(
                            f'apu_seat_gpu_memory_bytes{{seat="seat{pid}",gpu="{OLD}",pool="gtt"}}',
                            lambda value, k=gtt_kib: value == k * 1024, "the others are fresh")
                samples = exporter.samples()
                self.assertEqual(samples['apu_seat_gpu_clients_unread{seat="seat103"}'], 1)
                self.assertEqual(samples['apu_seat_gpu_clients_unread{seat="seat100"}'], 0)
                self.assertNotIn(f'apu_seat_gpu_memory_bytes{{seat="seat103",gpu="{OLD}",pool="gtt"}}', samples)
                self.assertEqual(samples[BLOCKED], 1)
                self.assertEqual(samples[TIMEOUTS], 1)
                named = [line for line in exporter.log if "does not answer" in line]
                self.assertEqual(len(named), 1, exporter.log)
                self.assertIn("/proc/103/fdinfo/7", named[0])

    @unittest.skipUnless(HANGFS and os.access("/dev/fuse", os.W_OK) and os.geteuid() == 0,
                         "needs hangfs, root and /dev/fuse")
    def test_readers_that_not_even_sigkill_ends(self):
        """direct_io: once a signal has come, the reader is in uninterruptible sleep for good."""
        with apu.fixture_copy("no_psi") as host:
            processes = FakeProcesses(host)
            processes.add(100, 1, 100)
            processes.add(200, 2, 20)
            processes.add(300, 3, 3, CARD, "renderD129")
            mount = host.parent / "mount"
            mount.mkdir()
            daemon = subprocess.Popen([HANGFS, str(host), "/proc/200/fdinfo/7", str(mount)],
                                      start_new_session=True)
            try:
                apu.wait_for((mount / "proc/100/stat").exists, "the mount stands")
                with apu.Exporter(f"--path.rootfs={mount}", *ALONE) as exporter:
                    try:
                        self.check_with_a_stuck_reader(host, processes, exporter)
                    finally:
                        daemon.kill()  # before anything waits for the end of stderr, which the reader has
            finally:
                daemon.kill()
                daemon.wait()
                subprocess.run(["umount", "--lazy", str(mount)], check=False)

    def check_with_a_stuck_reader(self, host, processes, exporter):
        exporter.wait_sample(gtt(OLD), lambda value: value == 120 * 1024)
        (host.parent / "hang").touch()
        self.check_that_it_costs_itself_alone(exporter, lambda kib: processes.say(300, 3, kib, CARD))
        self.check_that_scrapes_are_answered(exporter)
        self.assertEqual(len(children_of(exporter.process.pid)), 2)  # one is stuck
        start = time.monotonic()
        exporter.process.send_signal(signal.SIGTERM)
        self.assertEqual(exporter.process.wait(timeout=apu.DEADLINE), 0)
        self.assertLess(time.monotonic() - start, 5)


class Reader(unittest.TestCase):
    def setUp(self):
        copy = apu.fixture_copy("no_psi")
        self.host = copy.__enter__()
        self.addCleanup(copy.__exit__, None, None, None)
        FakeProcesses(self.host).add(100, 1, 100)

    def exporter(self):
        return apu.Exporter(f"--path.rootfs={self.host}", *ALONE)

    def test_it_has_nothing_of_ours_but_stderr(self):
        with self.exporter() as exporter:
            exporter.wait_ready()
            reader = reader_of(exporter)
            links = {fd: os.readlink(f"/proc/{reader}/fd/{fd}") for fd in os.listdir(f"/proc/{reader}/fd")}
            self.assertEqual(set(links), {"0", "1", "2"}, links)
            self.assertTrue(links["0"].startswith("pipe:") and links["1"].startswith("pipe:"), links)
            status = pathlib.Path(f"/proc/{reader}/status").read_text()
            self.assertIn("Name:\tapu-reader\n", status)
            self.assertEqual(int(re.search(r"Threads:\s*(\d+)", status)[1]), 1)

    def test_one_that_is_killed_is_replaced(self):
        with self.exporter() as exporter:
            exporter.wait_sample(gtt(OLD), lambda value: value == 100 * 1024)
            reader = reader_of(exporter)
            os.kill(reader, signal.SIGKILL)
            apu.wait_for(lambda: reader_of(exporter) != reader, "there is a new one")
            exporter.wait_sample(gtt(OLD), lambda value: value == 100 * 1024)
            self.assertEqual(exporter.samples()[TIMEOUTS], 0)

    def test_one_that_stands_still_is_replaced(self):
        with self.exporter() as exporter:
            exporter.wait_sample(gtt(OLD), lambda value: value == 100 * 1024)
            os.kill(reader_of(exporter), signal.SIGSTOP)
            exporter.wait_sample(TIMEOUTS, lambda value: value == 1)


class ThisHost(unittest.TestCase):
    def test_processes_of_others_are_permission_denied_and_nothing_is_claimed(self):
        if os.geteuid() != 0:
            self.skipTest("needs root, to become another user")
        command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", apu.BINARY, "--once",
                   "--collector.disable-defaults", "--collector.gpu_clients"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        samples = apu.parse_samples(done.stdout)
        self.assertEqual(samples[DENIED], 1, done.stdout)
        self.assertFalse([s for s in samples if s.startswith("apu_gpu_clients")])

    def test_two_capabilities_are_enough(self):
        if os.geteuid() != 0:
            self.skipTest("needs root, to become another user")
        capabilities = "+sys_ptrace,+dac_read_search"
        command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", f"--inh-caps={capabilities}",
                   f"--ambient-caps={capabilities}", apu.BINARY, "--once", "--collector.disable-defaults",
                   "--collector.gpu_clients"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        samples = apu.parse_samples(done.stdout)
        self.assertEqual(samples['apu_source_available{source="fdinfo"}'], 1, done.stdout + done.stderr)

    def test_it_reads_nothing_but_links_stat_and_fdinfo(self):
        """Never cmdline, environ, maps, smaps: those wait for the lock of a process under attack."""
        apu.need_programs("strace")
        host = apu.FIXTURES / "strix_halo_healthy"
        done = subprocess.run(["strace", "-f", "-e", "trace=open,openat", apu.BINARY, "--once", *ALONE[:2],
                               f"--path.rootfs={host}"], capture_output=True, text=True, timeout=60, check=False)
        opened = set(re.findall(rf'"{host}/proc/\d+/(\w+)', done.stderr))
        self.assertEqual(opened, {"stat", "fd", "fdinfo"})


if __name__ == "__main__":
    unittest.main()
