#!/usr/bin/python3
"""The exporter on this machine: its values are those that the kernel shows."""
import os
import pathlib
import re
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import exporter as apu  # noqa: E402


def read(path):
    return pathlib.Path(path).read_text()


def meminfo_bytes(key):
    return int(re.search(rf"^{key}:\s+(\d+) kB$", read("/proc/meminfo"), re.MULTILINE)[1]) * 1024


def pressure_seconds(resource, kind):
    return int(re.search(rf"^{kind} .*total=(\d+)$", read(f"/proc/pressure/{resource}"),
                         re.MULTILINE)[1]) / 1e6


class ThisHost(unittest.TestCase):
    def setUp(self):
        self.exporter = self.enterContext(apu.Exporter())
        self.exporter.wait_ready()

    def enterContext(self, manager):  # unittest has it from Python 3.11 on
        value = manager.__enter__()
        self.addCleanup(manager.__exit__, None, None, None)
        return value

    def test_memory_is_what_meminfo_says(self):
        samples = self.exporter.samples()
        self.assertEqual(samples["apu_memory_size_bytes"], meminfo_bytes("MemTotal"))
        kinds = sum(value for series, value in samples.items()
                    if series.startswith("apu_memory_used_bytes"))
        used = meminfo_bytes("MemTotal") - meminfo_bytes("MemFree")
        self.assertAlmostEqual(kinds, used, delta=0.1 * meminfo_bytes("MemTotal"))

    @unittest.skipUnless(os.path.exists("/proc/pressure/cpu"), "this kernel has no PSI")
    def test_pressure_counts_between_two_looks_at_the_kernel(self):
        series = 'apu_pressure_stalled_seconds_total{resource="cpu",kind="some"}'
        before = pressure_seconds("cpu", "some")
        age = 'apu_collector_age_seconds{collector="pressure"}'

        def fresh():
            samples = self.exporter.samples()
            return samples if samples[age] < 0.5 else None
        value = apu.wait_for(fresh, "a fresh snapshot")[series]
        self.assertGreaterEqual(value + 1, before)  # the snapshot may be a second old
        self.assertLessEqual(value, pressure_seconds("cpu", "some"))

    def test_swap_devices_are_those_of_proc_swaps(self):
        devices = {line.split()[0] for line in read("/proc/swaps").splitlines()[1:]}
        shown = {re.search(r'device="([^"]*)"', series)[1] for series in self.exporter.samples()
                 if series.startswith("apu_swap_size_bytes")}
        self.assertEqual(shown, devices)

    def test_swappiness_and_boot_time(self):
        samples = self.exporter.samples()
        self.assertEqual(samples["apu_vm_swappiness"], int(read("/proc/sys/vm/swappiness")))
        boot = int(re.search(r"^btime (\d+)$", read("/proc/stat"), re.MULTILINE)[1])
        self.assertAlmostEqual(samples["apu_boot_time_seconds"], boot, delta=2)

    def test_process_metrics_are_of_the_exporter(self):
        samples = self.exporter.samples()
        pid = self.exporter.process.pid
        # Connections of scrapes come and go between the two looks.
        self.assertAlmostEqual(samples["process_open_fds"], len(os.listdir(f"/proc/{pid}/fd")),
                               delta=3)
        self.exporter.wait_sample("process_threads", lambda value: value == len(apu.thread_ids(pid)))

    def test_workers_hold_no_socket(self):
        pid = self.exporter.process.pid
        for thread in apu.thread_ids(pid):
            name = read(f"/proc/{pid}/task/{thread}/comm").strip()
            if name in ("memory", "pressure", "swap", "host", "process", "kernel_log", "gpu",
                        "gpu_busy", "kfd", "kfd_limits"):
                folder = f"/proc/{pid}/task/{thread}/fd"
                links = [os.readlink(f"{folder}/{fd}") for fd in os.listdir(folder) if int(fd) > 2]
                self.assertFalse([link for link in links if link.startswith("socket:")], name)


@unittest.skipUnless(os.access("/dev/kmsg", os.R_OK | os.W_OK), "/dev/kmsg cannot be used")
class KernelLogDevice(unittest.TestCase):
    def test_what_user_space_writes_into_the_log_does_not_count(self):
        lines = "apu_kernel_log_lines_total"
        refusals = 'apu_kernel_events_total{event="svm_mapping_failed",gpu=""}'
        with apu.Exporter() as exporter:
            exporter.wait_ready()
            before = exporter.samples()
            if lines not in before:
                self.skipTest("/dev/kmsg does not open here")
            # A bare line gets the facility of user space; the kernel's own cannot be written.
            for text in ("amdgpu: SVM mapping failed, exceeds resident system memory limit (a test)\n",
                         "workqueue: svm_range_restore_work [amdgpu] hogged CPU for >10000us 67 times (a test)\n"):
                pathlib.Path("/dev/kmsg").write_text(text)
            passes = 'apu_collector_passes_total{collector="kernel_log",outcome="ok"}'
            exporter.wait_sample(passes, lambda value: value >= before[passes] + 2)
            after = exporter.samples()
            self.assertEqual(after[refusals], before[refusals])
            self.assertNotIn("svm_range_restore_work", "".join(after))


class KernelLogFile(unittest.TestCase):
    LINE = "4,{0},{1},-;amdgpu: SVM mapping failed, exceeds resident system memory limit\n"
    SERIES = 'apu_kernel_events_total{event="svm_mapping_failed",gpu=""}'

    def append(self, log, numbers):
        with log.open("a") as file:
            for number in numbers:
                file.write(self.LINE.format(number, number * 1000))

    def test_a_file_is_followed_over_rotation(self):
        with tempfile.TemporaryDirectory() as directory:
            log = pathlib.Path(directory) / "kern.log"
            self.append(log, range(3))
            with apu.Exporter(f"--kernel-log={log}") as exporter:
                exporter.wait_sample(self.SERIES, lambda value: value == 3)
                self.append(log, range(3, 5))
                log.rename(log.with_suffix(".1"))
                self.append(log.with_suffix(".1"), range(5, 6))
                self.append(log, range(6, 10))
                exporter.wait_sample(self.SERIES, lambda value: value == 10)

    def test_a_file_that_is_missing_is_named_and_read_when_it_appears(self):
        with tempfile.TemporaryDirectory() as directory:
            log = pathlib.Path(directory) / "kern.log"
            with apu.Exporter(f"--kernel-log={log}") as exporter:
                exporter.wait_ready()
                samples = exporter.samples()
                self.assertEqual(samples['apu_source_available{source="log_file"}'], 0)
                self.assertEqual(samples[
                    'apu_source_unavailable_info{source="log_file",reason="not_found"}'], 1)
                self.assertNotIn(self.SERIES, samples)
                self.append(log, range(2))
                exporter.wait_sample(self.SERIES, lambda value: value == 2)
                self.assertEqual(exporter.samples()['apu_source_available{source="log_file"}'], 1)


if __name__ == "__main__":
    unittest.main()
