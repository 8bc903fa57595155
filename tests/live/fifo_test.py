#!/usr/bin/python3
"""A file that never answers, as a FIFO: the exporter goes on, says so, and stops in time."""
import pathlib
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import exporter as apu  # noqa: E402

OVERDUE = 'apu_collector_overdue{collector="%s"}'
PASSES = 'apu_collector_passes_total{collector="%s",outcome="ok"}'


def fast(*collectors):
    return [f"--collector.{name}.period=200ms" for name in collectors]


class HangingFile(unittest.TestCase):
    def test_the_exporter_lives_on_with_a_hanging_file(self):
        with apu.fixture_copy("strix_halo_healthy") as host:
            with apu.Exporter(f"--path.rootfs={host}", *fast("memory", "pressure", "swap")) as exporter:
                exporter.wait_ready()
                before = exporter.samples()
                apu.replace_by_fifo(host / "proc/pressure/memory")
                exporter.wait_sample(OVERDUE % "pressure", lambda value: value == 1)
                self.check_others_are_fresh(exporter)
                self.check_old_values_stay(exporter, before)
                self.check_scrapes_cost_no_thread(exporter)
                self.check_it_stops_in_time(exporter)

    def check_others_are_fresh(self, exporter):
        passes = exporter.samples()
        for collector in ("memory", "swap"):
            exporter.wait_sample(PASSES % collector,
                                 lambda value, c=collector: value > passes[PASSES % c] + 2)
            self.assertEqual(exporter.samples()[OVERDUE % collector], 0)

    def check_old_values_stay(self, exporter, before):
        series = 'apu_pressure_stalled_seconds_total{resource="memory",kind="some"}'
        now = exporter.samples()
        self.assertEqual(now[series], before[series])
        self.assertEqual(now['apu_collector_success{collector="pressure"}'], 1)
        self.assertGreater(now['apu_collector_age_seconds{collector="pressure"}'], 1)

    def check_scrapes_cost_no_thread(self, exporter):
        pid = exporter.process.pid
        threads = len(apu.thread_ids(pid))
        for _ in range(50):
            self.assertEqual(exporter.get().status, 200)
        self.assertEqual(len(apu.thread_ids(pid)), threads)
        # The stuck collector is not waited for; the wait is 20 ms for those that are not stuck.
        start = time.monotonic()
        exporter.get()
        self.assertLess(time.monotonic() - start, 1)

    def check_it_stops_in_time(self, exporter):
        code, seconds = exporter.stop()
        self.assertEqual(code, 0)
        self.assertLess(seconds, 1)
        self.assertIn("A collector is stuck", "".join(exporter.log))

    def test_a_hanging_kernel_log_publishes_nothing_and_ready_comes(self):
        with apu.fixture_copy("strix_halo_healthy") as host:
            apu.replace_by_fifo(host / "kernel.log")
            with apu.Exporter(f"--path.rootfs={host}") as exporter:
                self.assertEqual(exporter.get("/-/healthy").status, 200)
                self.assertEqual(exporter.get("/-/ready").status, 503)
                exporter.wait_sample(OVERDUE % "kernel_log", lambda value: value == 1)
                exporter.wait_ready()
                self.assertNotIn("apu_kernel_log_lines_total", exporter.samples())
                self.check_it_stops_in_time(exporter)

    def test_once_prints_the_rest(self):
        with apu.fixture_copy("strix_halo_healthy") as host:
            apu.replace_by_fifo(host / "proc/pressure/cpu")
            done = apu.run_exporter("--once", f"--path.rootfs={host}")
            samples = apu.parse_samples(done.stdout)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(samples[OVERDUE % "pressure"], 1)
            self.assertIn("apu_memory_size_bytes", samples)


if __name__ == "__main__":
    unittest.main()
