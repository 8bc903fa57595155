#!/usr/bin/python3
"""What the exporter tells of real processes in seats: each by the counts that it must have, and of
healthy ones that none is ever taken for one in trouble."""
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
import live_seats  # noqa: E402

HANGFS = os.environ.get("APU_HANGFS")
CAN_HANG = HANGFS and os.access("/dev/fuse", os.W_OK) and os.geteuid() == 0
FLAGS = ["--collector.disable-defaults"]
for collector, period in {"cgroup": "200ms", "seat_tasks": "400ms", "seats": "200ms"}.items():
    FLAGS += [f"--collector.{collector}", f"--collector.{collector}.period={period}"]
FAULTS = ("thrashing", "blocked", "stalled", "spinning", "io_starved")
MIB = 1 << 20


def name_of(seat):
    return seat.name.removesuffix(".service")


class Of:
    """The samples of one seat."""

    def __init__(self, seat, samples):
        self._seat, self._samples = seat, samples

    def __call__(self, name, **labels):
        """The value of apu_seat_NAME, or None."""
        text = "".join(f',{key}="{value}"' for key, value in labels.items())
        return self._samples.get(f'apu_seat_{name}{{seat="{name_of(self._seat)}"{text}}}')

    def at_least(self, value, name, **labels):
        return (self(name, **labels) or 0) >= value

    def cpu_seconds(self):
        return sum(self("cpu_seconds_total", mode=mode) or 0 for mode in ("user", "system"))

    def hottest(self, mode):
        return self("hottest_thread_cpu_ratio", mode=mode) or 0

    def state(self):
        found = [series for series, value in self._samples.items() if value == 1
                 and series.startswith(f'apu_seat_state{{seat="{name_of(self._seat)}"')]
        return re.search('state="(.*)"', found[0])[1] if found else None


class Fuse:
    """A file system with a file that does not answer."""

    def __init__(self, folder):
        self.mount, source = folder / "mount", folder / "source"
        source.mkdir()
        self.mount.mkdir()
        (source / "model").write_text("weights")
        (folder / "hang").touch()
        self.daemon = subprocess.Popen([HANGFS, str(source), "/model", str(self.mount)], start_new_session=True)
        apu.wait_for((self.mount / "model").exists, "the mount stands")

    def end(self):
        self.daemon.kill()
        self.daemon.wait()
        subprocess.run(["umount", "--lazy", str(self.mount)], check=False)


def has_direct_reads(path):
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_DIRECT))
    except OSError:
        return False
    return True


class States(unittest.TestCase):
    """One exporter for all tests, which is watched as long as they last."""

    @classmethod
    def setUpClass(cls):
        cls.host = live_seats.LiveHost()
        cls.addClassCleanup(cls.host.remove)
        # Beside the build: what is below /tmp may be memory, which has no direct reads.
        cls.model = pathlib.Path(apu.BINARY).with_name(f"seat_states_test.{os.getpid()}.model")
        cls.addClassCleanup(cls.model.unlink, missing_ok=True)
        with cls.model.open("wb") as file:
            file.write(os.urandom(MIB) * 16)
            os.fsync(file.fileno())
        cls.programs, cls.healthy = {}, []
        cls.exporter = apu.Exporter(f"--path.rootfs={cls.host.path}", *FLAGS)
        cls.addClassCleanup(cls.exporter.__exit__)
        cls.watch = live_seats.Watch(cls.exporter)
        cls.addClassCleanup(cls.watch.stop)
        cls.start_those_that_last()

    @classmethod
    def start_those_that_last(cls):
        """What tests of 30 s and more look at; they come last, and until then others do their work."""
        cls.fifo = cls.host.path / "fifo"
        os.mkfifo(cls.fifo)
        cls.waiting = cls.start("llama-waits-for-child", "wait_for_child", cls.fifo, healthy=False)
        if has_direct_reads(cls.model):
            cls.reading = cls.start("llama-reads-on", "read_on", cls.model)
        cls.start("llama-ticks", "tick")
        if CAN_HANG:
            fuse = Fuse(cls.host.path)
            cls.addClassCleanup(fuse.end)
            cls.hanging = cls.start("llama-hangs", "open_and_read", fuse.mount / "model", healthy=False)
            cls.addClassCleanup(fuse.daemon.kill)  # before anything waits for the reader's end
            pid = cls.hanging.pid
            apu.wait_for(lambda: "request_wait" in pathlib.Path(f"/proc/{pid}/wchan").read_text(), "the reader waits")
            cls.hanging.process.kill()  # which it does not hear: now it is in disk sleep

    @classmethod
    def start(cls, seat_name, program, *arguments, healthy=True):
        seat = cls.host.seat(seat_name)
        arguments = [seat if argument is live_seats.Program else argument for argument in arguments]
        started = cls.programs[seat_name] = live_seats.Program(seat, program, *arguments)
        cls.addClassCleanup(started.kill)
        if healthy:
            cls.healthy.append(seat)
        return started

    def wait(self, program, condition, what):
        """Waits until condition(Of) holds, and returns the Of for which it does."""
        return Of(program.seat, self.watch.wait(lambda samples: condition(Of(program.seat, samples)), what))

    # --- what computes

    def test_a_busy_loop(self):
        program = self.start("llama-spins", "spin")
        of = self.wait(program, lambda of: of.at_least(1, "spinning_threads"), "it pegs a thread")
        self.assertGreater(of.hottest("user"), 0.45)  # it may have to share its CPU
        self.assertLessEqual(of.hottest("system"), 0.03)
        used = of("cpu_seconds_total", mode="user"), of("cpu_seconds_total", mode="system")
        switches = of("context_switches_total", kind="voluntary")
        of = self.wait(program, lambda of: of.at_least(used[0] + 1, "cpu_seconds_total", mode="user"),
                       "user time grows")
        # Interrupts of a busy machine count for whom they disturb.
        self.assertLess(of("cpu_seconds_total", mode="system") - used[1],
                        (of("cpu_seconds_total", mode="user") - used[0]) / 2)
        self.assertLessEqual(of("context_switches_total", kind="voluntary") - switches, 3)
        program.stop()

    def test_b_loop_of_system_calls(self):
        program = self.start("llama-calls", "calls")
        of = self.wait(program, lambda of: of.hottest("system") > 0.3, "it is in the kernel")
        self.assertGreater(of.hottest("system"), of.hottest("user"))
        self.assertEqual(of("spinning_threads"), 0)
        used = of("cpu_seconds_total", mode="system")
        self.wait(program, lambda of: of.at_least(used + 0.5, "cpu_seconds_total", mode="system"), "system time grows")
        program.stop()

    # --- what loads

    def test_c_memory_that_is_faulted_in(self):
        program = self.start("llama-grows", "grow", 64)
        self.wait(program, lambda of: of.state() == "loading", "it is loading")
        self.assertEqual(program.said(), "64")
        of = self.wait(program, lambda of: of.at_least(64 * MIB, "memory_resident_bytes", kind="anon"),
                       "all of it is there")
        self.assertGreaterEqual(of("page_faults_total", kind="minor"), 64 * MIB / os.sysconf("SC_PAGESIZE"))
        self.assertEqual(of("memory_swapped_bytes"), 0)
        self.assertEqual(of("memory_locked_bytes"), 0)
        program.stop()

    def test_d_reads_from_storage(self):
        if not has_direct_reads(self.model):
            self.skipTest("no direct reads here")
        program = self.start("llama-reads", "read", self.model, 128)
        read = int(program.said())
        self.assertGreaterEqual(read, 128 * MIB)
        of = self.wait(program, lambda of: of.at_least(read, "read_bytes_total"), "all reads are counted")
        self.assertLess(of("read_bytes_total"), read + 64 * MIB)  # and the interpreter's files
        program.stop()

    # --- what sleeps

    def test_e_threads_by_state(self):
        program = self.start("llama-sleeps", "sleep", 5)
        self.assertEqual(program.said(), "5")
        self.wait(program, lambda of: of("threads", state="sleeping") == 6, "six threads sleep")
        os.kill(program.pid, signal.SIGSTOP)
        of = self.wait(program, lambda of: of("threads", state="stopped") == 6, "six threads are stopped")
        self.assertEqual([of("threads", state=state) for state in ("running", "sleeping", "disk_sleep", "zombie")],
                         [0] * 4)
        os.kill(program.pid, signal.SIGCONT)
        self.wait(program, lambda of: of("threads", state="sleeping") == 6, "they sleep again")
        program.stop()

    def test_f_one_that_sleeps_again_and_again_switches(self):
        program = self.programs["llama-ticks"]
        of = self.wait(program, lambda of: of("context_switches_total", kind="voluntary") is not None, "it is seen")
        before = of("context_switches_total", kind="voluntary")
        of = self.wait(program, lambda of: of.at_least(before + 100, "context_switches_total", kind="voluntary"),
                       "it switches")
        self.assertLess(of.hottest("user"), 0.5)

    # --- what comes and goes

    def test_g_workers(self):
        program = self.start("llama-works", "workers", live_seats.Program)
        self.wait(program, lambda of: of("processes") == 1, "it is alone")
        for number in range(1, 4):
            program.ask("begin")
            of = self.wait(program, lambda of, n=number: of("processes") == 2 and of.cpu_seconds() >= 0.2 * n
                           and of.at_least(1 + n, "process_starts_total"), "the worker is seen to work")
            self.assertEqual(of("process_starts_total"), 1 + number)
            program.ask("end")
            self.wait(program, lambda of: of("processes") == 1, "it is alone again")
        program.stop()

    def test_h_children_and_threads_as_they_like(self):
        program = self.start("llama-churns", "churn", live_seats.Program, 25)
        self.assertEqual(program.said(), "25")
        of = self.wait(program, lambda of: of("processes") == 1, "it is alone again")
        self.assertLessEqual(of("process_starts_total"), 26)
        program.stop()

    def test_i_killed_and_restarted(self):
        program = self.start("llama-dies", "tick")
        of = self.wait(program, lambda of: of.at_least(1, "context_switches_total", kind="voluntary"), "it runs")
        start, starts = of("start_time_seconds"), of("process_starts_total")
        self.assertAlmostEqual(start, time.time(), delta=apu.DEADLINE)
        self.assertEqual(starts, 1)
        program.kill()
        of = self.wait(program, lambda of: of.state() == "down" and of("start_time_seconds") is None, "it is down")
        self.assertEqual((of("processes"), of("process_starts_total")), (0, 1))
        again = live_seats.Program(program.seat, "tick")
        self.addCleanup(again.kill)
        of = self.wait(again, lambda of: of.at_least(start + 0.01, "start_time_seconds"), "another one runs")
        self.assertEqual(of("process_starts_total"), 2)
        self.wait(again, lambda of: of.state() not in ("down", None), "it is up")
        again.stop()

    # --- what lasts; in the order of their names, these are the last

    def check_blocked(self, program, wait):
        """Waits until the seat is blocked, which takes half a minute from its beginning."""
        of = self.wait(program, lambda of: of.state() == "blocked", "it is blocked")
        self.assertEqual(of("blocked_threads", wait=wait), 1)
        self.assertEqual(sum(of("blocked_threads", wait=each) for each in ("kfd", "memory", "io", "other")), 1)
        self.assertEqual(of("threads", state="disk_sleep"), 1)
        states = [Of(program.seat, samples).state() for samples in self.watch.history()]
        first = states.index("blocked")
        self.assertEqual(set(states[first:]), {"blocked"})
        self.assertFalse(set(states[:first]) & set(FAULTS))

    def test_x_a_reader_that_nothing_wakes(self):
        if not CAN_HANG:
            self.skipTest("needs hangfs, root and /dev/fuse")
        self.check_blocked(self.hanging, "io")

    def test_y_disk_sleep_that_ends(self):
        self.check_blocked(self.waiting, "other")
        with open(self.fifo, "wb"):
            self.assertEqual(self.waiting.said(), "awake")
        self.wait(self.waiting, lambda of: of("blocked_threads", wait="other") == 0, "it is awake")

    def test_z_a_reader_that_is_woken_was_seen_asleep(self):
        if not has_direct_reads(self.model):
            self.skipTest("no direct reads here")
        seen = [Of(self.reading.seat, samples)("threads", state="disk_sleep") for samples in self.watch.history()]
        self.assertIn(1, seen)

    def test_zz_no_counter_ever_fell_and_no_healthy_seat_was_in_trouble(self):
        history = self.watch.history()
        self.assertGreater(len(history), 20)
        newest = {}
        for samples in history:
            for series, value in samples.items():
                if series.startswith("apu_seat_") and "_total{" in series:
                    self.assertGreaterEqual(value, newest.get(series, 0), series)
                    newest[series] = value
            for seat in self.healthy:
                self.assertNotIn(Of(seat, samples).state(), FAULTS, seat.name)
        for seat in self.healthy:
            self.assertIn(f'apu_seat_cpu_seconds_total{{seat="{name_of(seat)}",mode="user"}}', newest)


if __name__ == "__main__":
    unittest.main()
