#!/usr/bin/python3
"""--kernel-log=auto: the kernel's ring and the journal as one log. The ring is a FIFO whose writes stay
apart, as the records of /dev/kmsg do; the journal is a real one."""
import fcntl
import os
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import exporter as apu  # noqa: E402
import journal  # noqa: E402
from journal import entry, of_manager  # noqa: E402

BANNER = "Linux version 6.14.0-36-generic (buildd@lcy02-amd64-067) (gcc 13)"
REFUSAL = "amdgpu: SVM mapping failed, exceeds resident system memory limit"
FREED = "amdgpu: Freeing queue vital buffer 0x7f1e%08x, queue evicted"
REFUSALS = 'apu_kernel_events_total{event="svm_mapping_failed",gpu=""}'
FREES = 'apu_kernel_events_total{event="queue_buffer_freed",gpu=""}'
LINES = "apu_kernel_log_lines_total"
OVERRUN = 'apu_kernel_log_lost_total{by="kmsg_overrun"}'
COVERS = "apu_kernel_log_covers_boot"
AVAILABLE = 'apu_source_available{source="%s"}'
REASON = 'apu_source_unavailable_info{source="%s",reason="%s"}'
ALONE = ("--collector.disable-defaults", "--collector.kernel_log", "--collector.kernel_log.period=200ms")


class Ring:
    """A FIFO in the place of /dev/kmsg."""

    def __init__(self, host):
        (host / "dev").mkdir()
        os.mkfifo(host / "dev/kmsg")
        self.fd = os.open(host / "dev/kmsg", os.O_RDWR | os.O_NONBLOCK)
        fcntl.fcntl(self.fd, fcntl.F_SETFL, os.O_NONBLOCK | os.O_DIRECT)  # each write is a packet

    def write(self, sequence, at, message, priority=4):
        os.write(self.fd, f"{priority},{sequence},{round(at * 1e6)},-;{message}\n".encode())

    def close(self):
        os.close(self.fd)


class AutoLog(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="apu-auto-")
        self.addCleanup(directory.cleanup)
        self.host = journal.make_host(directory.name)
        self.file = self.host / "var/log/journal" / ("c" * 32) / "system.journal"

    def ring(self):
        ring = Ring(self.host)
        self.addCleanup(ring.close)
        return ring

    def exporter(self):
        return apu.Exporter(f"--path.rootfs={self.host}", *ALONE)

    def test_the_journal_has_what_the_ring_lost(self):
        journal.append(self.file, entry(BANNER, 0), *(entry(REFUSAL, n) for n in range(1, 11)),
                       entry("usb 1-1: new device", 10.5), entry(FREED % 1, 11), entry(FREED % 2, 11),
                       entry(FREED % 3, 11), entry(REFUSAL, 12), entry(REFUSAL, 13))
        ring = self.ring()
        for sequence, at, message in ((13, 11, FREED % 2), (14, 11, FREED % 3), (15, 12, REFUSAL),
                                      (16, 13, REFUSAL)):
            ring.write(sequence, at, message)
        with self.exporter() as exporter:
            exporter.wait_sample(LINES, lambda value: value >= 17)
            samples = exporter.samples()
            self.assertEqual((samples[LINES], samples[REFUSALS], samples[FREES]), (17, 12, 3))
            self.assertEqual((samples[COVERS], samples[OVERRUN]), (1, 0))
            self.assertEqual([samples[AVAILABLE % name] for name in ("kmsg", "journal")], [1, 1])
            # From now on the journal's copies of the ring's records count nothing.
            ring.write(17, 20, REFUSAL)
            journal.append(self.file, entry(REFUSAL, 20), of_manager(
                "llama.service: Killing process 4711 (llama) with signal SIGKILL.", 21))
            exporter.wait_sample('apu_unit_sigkills_total{unit="llama"}', lambda value: value == 1)
            self.assertEqual(exporter.samples()[REFUSALS], 13)

    def test_the_journal_fills_a_gap_of_the_ring(self):
        journal.append(self.file, entry(BANNER, 0), entry(REFUSAL, 1))
        ring = self.ring()
        ring.write(0, 0, BANNER)
        ring.write(1, 1, REFUSAL)
        with self.exporter() as exporter:
            exporter.wait_sample(LINES, lambda value: value == 2)
            journal.append(self.file, *(entry(REFUSAL, 2 + n / 10) for n in range(5)),
                           entry("usb 1-1: new device", 3), entry(FREED % 1, 4))
            ring.write(9, 4, FREED % 1)  # 7 are missing, of which the journal has 6
            exporter.wait_sample(FREES, lambda value: value >= 1)
            samples = exporter.samples()
            self.assertEqual((samples[LINES], samples[REFUSALS], samples[FREES]), (9, 6, 1))
            self.assertEqual(samples[OVERRUN], 1)

    def test_a_ring_without_a_journal_goes_on(self):
        self.file.parent.mkdir(parents=True)
        ring = self.ring()
        ring.write(5, 7, REFUSAL)
        with self.exporter() as exporter:
            exporter.wait_sample(REFUSALS, lambda value: value == 1)
            ring.write(6, 8, REFUSAL)
            exporter.wait_sample(REFUSALS, lambda value: value == 2)
            samples = exporter.samples()
            self.assertEqual(samples[AVAILABLE % "kmsg"], 1)
            self.assertEqual(samples[REASON % ("journal", "not_found")], 1)
            self.assertEqual(samples[COVERS], 0)

    def test_a_journal_without_a_ring_has_the_kernels_records(self):
        journal.append(self.file, entry(BANNER, 0), entry(REFUSAL, 1))
        with self.exporter() as exporter:
            exporter.wait_sample(REFUSALS, lambda value: value == 1)
            journal.append(self.file, entry(REFUSAL, 2))
            exporter.wait_sample(REFUSALS, lambda value: value == 2)
            samples = exporter.samples()
            self.assertEqual(samples[REASON % ("kmsg", "not_found")], 1)
            self.assertEqual(samples[AVAILABLE % "journal"], 1)
            self.assertEqual(samples[COVERS], 1)

    def test_many_records_before_the_rings_first(self):
        journal.append(self.file, entry(BANNER, 0),
                       *(entry(REFUSAL if n % 10 == 0 else f"usb {n}-1: {n}", n / 100) for n in range(1, 6001)))
        ring = self.ring()
        for n in (5999, 6000):
            ring.write(n, n / 100, REFUSAL if n % 10 == 0 else f"usb {n}-1: {n}")
        with self.exporter() as exporter:
            exporter.wait_sample(LINES, lambda value: value >= 6001)
            samples = exporter.samples()
            self.assertEqual((samples[LINES], samples[REFUSALS]), (6001, 600))


if __name__ == "__main__":
    if not journal.is_there():
        apu.cannot_run("systemd-journal-remote is not installed")
    unittest.main()
