#!/usr/bin/python3
"""The recorded spin, frame by frame through the whole exporter: told within three minutes of its start, as
thrashing where there is evidence of the GPU, else as spinning; and loads and servers that do well never are.
"""
import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import exporter as apu  # noqa: E402
import host_frames  # noqa: E402
from host_frames import Doing, ThreadDoing  # noqa: E402

DETECTION = 180  # seconds from the start of a fault
FAULTS = ("thrashing", "blocked", "stalled", "spinning", "io_starved")
RATE = 0.3e9  # bytes a second of a load

# The main thread reads a model, and the GPU's memory grows with it.
LOADING = Doing({0: ThreadDoing(0.6, 0.3, voluntary=200, state="R")}, resident=RATE, reads=RATE, gpu=RATE, faults=2000)
SLOWLY_LOADING = Doing({0: ThreadDoing(0.3, 0.1, voluntary=90, state="S")}, resident=RATE / 3, reads=RATE / 3,
                       gpu=RATE / 3, faults=700)
# It waits in a loop for a signal of the GPU: 51 minutes of CPU time in 52.
SPINNING = Doing({0: ThreadDoing(0.982, 0.001, voluntary=0.2, involuntary=8, state="R")})
# It sleeps in KFD's allocation ioctl behind the restore worker.
IN_ALLOCATION = Doing({0: ThreadDoing(state="D", wchan="svm_range_restore_work", syscall="16 0x5 0xc0184b20 0x7ffd 0x0 "
                                      "0x0 0x0 0x7ffd 0x7f00")})
# A server at work polls for the GPU, and another thread sends tokens; one whose runtime polls for ever.
DECODING = Doing({0: ThreadDoing(0.97, 0.02, voluntary=5, state="R"), 2: ThreadDoing(0.01, 0.01, voluntary=25)}, faults=3)
POLLING = Doing({0: ThreadDoing(voluntary=0.5), 1: ThreadDoing(0.998, 0.001, state="R")})
IDLE = Doing({0: ThreadDoing(0.001, 0.001, voluntary=2), 2: ThreadDoing(voluntary=1)})
ON_CPU = Doing({number: ThreadDoing(0.98, 0.01, voluntary=20, state="R") for number in range(3)}, faults=5)

HOG = ("workqueue: amdgpu_amdkfd_restore_userptr_worker [amdgpu] hogged CPU for >10000us {} times, consider "
       "switching to WQ_UNBOUND")
RESUME_FAILED = "amdgpu: amdgpu_amdkfd_restore_userptr_worker: Failed to resume KFD"


class Told:
    """What the exporter tells after it saw all frames."""

    def __init__(self, frames):
        done = apu.run_exporter("--once", f"--replay.frames={frames}", "--no-collector.seat_config")
        assert done.returncode == 0, done.stderr
        self.samples = apu.parse_samples(done.stdout)
        triage = apu.run_exporter("triage", "--format=json", f"--replay.frames={frames}", "--no-collector.seat_config")
        self.triage = json.loads(triage.stdout)
        self.exit_code = triage.returncode
        self.log = done.stderr + triage.stderr

    def state(self, seat):
        return next(each["state"] for each in self.triage["seats"] if each["seat"] == seat)

    def since(self, seat):
        """Unix seconds."""
        return next(each["since"] for each in self.triage["seats"] if each["seat"] == seat)

    def seconds(self, seat, state):
        return self.samples[f'apu_seat_state_seconds_total{{seat="{seat}",state="{state}"}}']


class Timeline(unittest.TestCase):
    def setUp(self):
        self.frames = host_frames.Frames()
        self.addCleanup(self.frames.remove)
        self.host = host_frames.Host()
        self.kworker = self.host.add_kworker("events_freezable")
        # Served before anybody watched; it lives beside all that comes.
        self.resident = self.host.add_seat("llama-resident", start=self.host.uptime - 7200)
        self.resident.gpu = 20e9
        self.doings = {self.resident: DECODING}

    def play(self, seconds, step=5, each=None, **doings):
        """Frames in which seats, by the names of their attributes, do what is said."""
        self.doings |= {getattr(self, name): doing for name, doing in doings.items()}
        self.frames.play(self.host, seconds, self.doings, step, each)

    def told(self):
        told = Told(self.frames.folder)
        self.assertNotIn("Not every collector saw the frame", told.log)
        unread = {series: value for series, value in told.samples.items()
                  if series.startswith("apu_parse_errors_total") and value}
        self.assertEqual(unread, {})
        return told

    def check_never_at_fault(self, told, seat):
        self.assertNotIn(told.state(seat), FAULTS, seat)
        self.assertEqual([told.seconds(seat, state) for state in FAULTS], [0] * len(FAULTS), seat)


class Faults(Timeline):
    def setUp(self):
        super().setUp()
        self.load = self.host.add_seat("llama-load")
        self.play(71, load=LOADING)
        self.start = self.host.time

    def check_told(self, state, others=FAULTS):
        """That the seat is in that state since DETECTION at most, and was in none of the others."""
        told = self.told()
        self.assertEqual(told.state("llama-load"), state)
        self.assertGreater(told.since("llama-load"), self.start)
        self.assertLessEqual(told.since("llama-load"), self.start + DETECTION)
        self.assertGreater(told.seconds("llama-load", "loading"), 60)
        for other in set(others) - {state}:
            self.assertEqual(told.seconds("llama-load", other), 0, other)
        self.check_never_at_fault(told, "llama-resident")
        self.assertEqual(told.exit_code, 1)
        self.assertIn("llama-load", told.triage["seats_at_fault"])
        return told

    # --- without evidence of the GPU

    def test_spin(self):
        used = self.load.threads[0].user
        self.play(DETECTION, load=SPINNING)
        self.play(52 * 60 - DETECTION, step=60)  # it goes on to its recorded end
        told = self.check_told("spinning")
        self.assertAlmostEqual(told.samples['apu_seat_cpu_seconds_total{seat="llama-load",mode="user"}'] - used,
                               51 * 60, delta=30)
        self.assertEqual(told.samples['apu_seat_spinning_threads{seat="llama-load"}'], 1)
        self.assertEqual(told.triage["judgement"]["verdict"], "healthy")  # nothing says that it is the host

    def test_spin_of_a_thread_that_shares_its_cpu(self):
        self.play(DETECTION, load=Doing({0: ThreadDoing(0.6, 0.001, voluntary=0.2, involuntary=200, waits_to_run=0.39,
                                                        state="R")}))
        self.check_told("spinning")

    def test_disk_sleep_in_the_driver(self):
        self.play(DETECTION, load=IN_ALLOCATION)
        told = self.check_told("blocked")
        self.assertEqual(told.samples['apu_seat_blocked_threads{seat="llama-load",wait="kfd"}'], 1)

    # --- with it

    def count_hogs(self, per_second):
        """To be called before each frame: the kernel reports each doubling of a count that begins now."""
        begin, counts = self.host.uptime, [3 + 2 ** power for power in range(20)]

        def report():
            while counts[0] <= (self.host.uptime - begin) * per_second:
                self.host.say(HOG.format(counts.pop(0)))
        return report

    def test_spin_in_a_storm_of_hogs(self):
        self.play(DETECTION, each=self.count_hogs(1), load=SPINNING, kworker=Doing({0: ThreadDoing(system=0.1)}))
        told = self.check_told("thrashing")
        self.assertEqual(told.triage["judgement"]["verdict"], "kfd_thrash")
        self.assertIn("llama-resident", told.triage["seats_safe"])

    def test_spin_while_kworkers_restore(self):
        self.play(DETECTION, load=SPINNING, kworker=Doing({0: ThreadDoing(system=0.8)}))
        self.check_told("thrashing")

    def test_spin_of_one_whose_queues_are_evicted(self):
        self.play(DETECTION, load=Doing(SPINNING.threads, evicted=0.8))
        self.check_told("thrashing", others=())  # the spin may show first: both take a minute

    def test_spin_after_queues_were_not_resumed(self):
        self.host.say(RESUME_FAILED, level=3)
        self.play(DETECTION, load=SPINNING)
        self.check_told("thrashing")

    def test_disk_sleep_in_the_driver_while_kworkers_restore(self):
        self.play(DETECTION, load=IN_ALLOCATION, kworker=Doing({0: ThreadDoing(system=0.8)}))
        self.check_told("thrashing", others=("spinning", "stalled", "io_starved"))  # it is blocked first


class Healthy(Timeline):
    def test_loads_and_servers(self):
        for name in ("quick", "slow", "pausing", "polling", "on_cpu"):
            setattr(self, name, self.host.add_seat(f"llama-{name}"))
        self.play(38, quick=LOADING, slow=SLOWLY_LOADING, pausing=LOADING, polling=LOADING, on_cpu=LOADING)
        self.play(33, polling=POLLING, on_cpu=IDLE)
        self.play(45, quick=DECODING, pausing=SPINNING)  # a warm-up: too short to be one
        self.play(79, quick=IDLE, pausing=IDLE, on_cpu=ON_CPU)
        self.play(240, slow=DECODING, resident=IDLE)
        told = self.told()
        for name, at_least in {"quick": 60, "slow": 180, "pausing": 60, "polling": 30, "on_cpu": 30}.items():
            self.check_never_at_fault(told, f"llama-{name}")
            self.assertGreater(told.seconds(f"llama-{name}", "loading"), at_least, name)
        self.check_never_at_fault(told, "llama-resident")
        self.assertEqual(told.triage["judgement"]["verdict"], "healthy")
        self.assertEqual(told.exit_code, 0)


class Served(Timeline):
    def test_a_scrape_shows_the_spin_when_it_is_told(self):
        self.load = self.host.add_seat("llama-load")
        self.play(71, load=LOADING)
        self.play(120, load=SPINNING)
        state = 'apu_seat_state{seat="llama-load",state="%s"}'
        with apu.Exporter(f"--replay.frames={self.frames.folder}", "--replay.speed=60") as exporter:
            exporter.wait_sample(state % "loading", lambda value: value == 1)
            exporter.wait_sample(state % "spinning", lambda value: value == 1)
            self.assertIn("spinning", exporter.get("/triage").text)
            self.assertEqual(exporter.stop()[0], 0)


if __name__ == "__main__":
    unittest.main()
