#!/usr/bin/python3
"""--state.file: counts that outlast the exporter, where the log no longer reaches back to the boot."""
import json
import os
import pathlib
import random
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import exporter as apu  # noqa: E402
import journal  # noqa: E402

ALONE = ("--collector.disable-defaults", "--collector.kernel_log", "--collector.kernel_log.period=100ms")
BANNER = "Linux version 6.14.0-36-generic (buildd@lcy02-amd64-067) (gcc 13)"
REFUSAL = "amdgpu: SVM mapping failed, exceeds resident system memory limit"
REFUSALS = 'apu_kernel_events_total{event="svm_mapping_failed",gpu=""}'
LINES = "apu_kernel_log_lines_total"
COVERS = "apu_kernel_log_covers_boot"
OVERRUN = 'apu_kernel_log_lost_total{by="kmsg_overrun"}'
# What depends on the moment of the question, and not on the log alone.
LIVE = ("apu_exporter_", "apu_collector_", "process_", "apu_source_", "apu_parse_", "events_per_second",
        "doubling_interval")


def message_of(number):
    """A line of the log: what counts comes often, and in the midst of what counts once."""
    kind = number % 11
    if kind in (0, 5):
        return REFUSAL
    if kind == 1:
        return "amdgpu 0000:c5:00.0: amdgpu: MES failed to respond to msg=REMOVE_QUEUE"
    if kind == 2:
        count = 3 + 2 ** (number // 50)
        return f"workqueue: svm_range_restore_work [amdgpu] hogged CPU for >10000us {count} times"
    if kind == 3:
        return (f"oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,"
                f"task_memcg=/system.slice/llama-{number % 3}.service,task=llama,pid={number},uid=0")
    if kind == 4:
        return f"Out of memory: Killed process {number - 1} (llama) total-vm:1kB"
    if kind == 7:
        return f"net_ratelimit: {number} callbacks suppressed"
    return f"usb 1-1: new device number {number}"


class Host(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="apu-state-")
        self.addCleanup(directory.cleanup)
        self.host = journal.make_host(directory.name)
        self.log = self.host / "kernel.log"
        self.state = pathlib.Path(directory.name) / "state.json"
        self.lines = []

    def exporter(self, *arguments):
        return apu.Exporter(f"--path.rootfs={self.host}", f"--state.file={self.state}", *ALONE, *arguments)

    def append(self, message, at):
        line = f"[{at:12.6f}] {message}\n"
        self.lines.append(line)
        with open(self.log, "a", encoding="utf-8") as file:
            file.write(line)

    def saved_lines(self):
        return json.loads(self.state.read_text())["log"]["lines"] if self.state.exists() else 0

    def rotate(self, drop):
        """Replaces the log by one without its first `drop` lines."""
        fresh = self.log.with_suffix(".new")
        fresh.write_text("".join(self.lines[drop:]))
        os.replace(fresh, self.log)

    def truth(self):
        """What an exporter says that sees the whole log at once."""
        self.rotate(0)
        done = apu.run_exporter("--once", f"--path.rootfs={self.host}", *ALONE)
        return self.lasting(apu.parse_samples(done.stdout))

    @staticmethod
    def lasting(samples):
        return {name: value for name, value in samples.items() if not any(part in name for part in LIVE)}


class KilledAtAnyMoment(Host):
    def test_every_counter_is_that_of_the_whole_log(self):
        chance = random.Random(7)
        self.append(BANNER, 0)
        number, dropped = 0, 0
        for _ in range(12):
            with self.exporter() as exporter:
                for _ in range(chance.randrange(1, 40)):
                    number += 1
                    # Stamps that repeat are the hard case for a position.
                    self.append(message_of(number), 10 + number // 4 * 0.5)
                    if chance.random() < 0.1:
                        exporter.samples()
                if chance.random() < 0.5:
                    apu.wait_for(lambda: self.saved_lines() > dropped, "a state is saved")
                exporter.process.kill()
                exporter.process.wait()
            dropped = max(dropped, chance.randrange(0, self.saved_lines() + 1))
            self.rotate(dropped)
        self.assertGreater(dropped, 20)
        with self.exporter() as exporter:
            exporter.wait_sample(LINES, lambda value: value >= len(self.lines))
            got = self.lasting(exporter.samples())
        self.assertEqual(got, self.truth())
        self.assertEqual(got[COVERS], 1)


class StateThatIsNotUsed(Host):
    def with_state(self, text):
        self.append(REFUSAL, 100)
        self.state.write_text(text)
        with self.exporter() as exporter:
            exporter.wait_sample(REFUSALS, lambda value: value == 1)
            self.assertEqual(exporter.samples()[COVERS], 0)
            apu.wait_for(lambda: self.saved_lines() == 1, "a state of this boot is saved")
            return [line for line in exporter.log if "state file" in line]

    def saved_state(self):
        self.append(REFUSAL, 50)
        with self.exporter() as exporter:
            exporter.wait_sample(REFUSALS, lambda value: value == 1)
            apu.wait_for(lambda: self.saved_lines() == 1, "a state is saved")
        self.lines.clear()
        self.log.unlink()
        return self.state.read_text()

    def test_damaged(self):
        text = self.saved_state()
        warnings = self.with_state(text[:len(text) // 2])
        self.assertEqual(len(warnings), 1)
        self.assertIn("level=warn", warnings[0])
        self.assertIn(str(self.state), warnings[0])

    def test_of_another_boot(self):
        warnings = self.with_state(self.saved_state().replace(journal.BOOT[:8], "a" * 8))
        self.assertEqual(len(warnings), 1)
        self.assertIn("another boot", warnings[0])

    def test_log_that_reaches_back_to_the_boot_needs_none(self):
        self.saved_state()
        self.append(BANNER, 0)
        self.append(REFUSAL, 50)
        self.append(REFUSAL, 60)
        with self.exporter() as exporter:
            exporter.wait_sample(LINES, lambda value: value == 3)
            self.assertEqual(exporter.samples()[REFUSALS], 2)

    def test_once_reads_it_and_leaves_it(self):
        before = self.saved_state()
        self.append(REFUSAL, 60)
        done = apu.run_exporter("--once", f"--path.rootfs={self.host}", f"--state.file={self.state}", *ALONE)
        self.assertEqual(apu.parse_samples(done.stdout)[REFUSALS], 2)
        self.assertEqual(self.state.read_text(), before)

    def test_a_state_that_cannot_be_written_is_one_warning(self):
        self.state = self.host / "missing" / "state.json"
        self.append(REFUSAL, 50)
        with self.exporter() as exporter:
            exporter.wait_sample('apu_collector_passes_total{collector="kernel_log",outcome="ok"}', lambda value: value > 4)
            warnings = [line for line in exporter.log if "state file" in line]
        self.assertEqual(len(warnings), 1, warnings)


if __name__ == "__main__":
    unittest.main()
