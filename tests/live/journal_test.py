#!/usr/bin/python3
"""The systemd journal as the source of the kernel log: real files, and what happens to them."""
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import exporter as apu  # noqa: E402
import journal  # noqa: E402
from journal import entry, of_manager  # noqa: E402

HANGFS = os.environ.get("APU_HANGFS")
BANNER = "Linux version 6.14.0-36-generic (buildd@lcy02-amd64-067) (gcc 13)"
REFUSAL = "amdgpu: SVM mapping failed, exceeds resident system memory limit"
REFUSALS = 'apu_kernel_events_total{event="svm_mapping_failed",gpu=""}'
LINES = "apu_kernel_log_lines_total"
AVAILABLE = 'apu_source_available{source="journal"}'
ERRORS = 'apu_parse_errors_total{source="journal"}'
REASON = 'apu_source_unavailable_info{source="journal",reason="%s"}'
SIGKILL = "llama-26b.service: Killing process 4711 (llama-server) with signal SIGKILL."
ALONE = ("--collector.disable-defaults", "--collector.kernel_log", "--collector.kernel_log.period=200ms")


def hog(count):
    return (f"workqueue: amdgpu_amdkfd_restore_userptr_worker [amdgpu] hogged CPU for >10000us {count} "
            "times, consider switching to WQ_UNBOUND")


def user_manager(message, at, **fields):
    return entry(message, at, "journal", **{"_PID": "990", "_UID": "1000", "SYSLOG_IDENTIFIER": "systemd",
                                            "_SYSTEMD_UNIT": "user@1000.service",
                                            "_SYSTEMD_USER_UNIT": "init.scope"} | fields)


class JournalTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="apu-journal-", ignore_cleanup_errors=True)
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.host = journal.make_host(directory.name)
        self.journals = self.host / "var/log/journal"
        self.file = self.journals / "system.journal"

    def arguments(self, *more):
        return ("--kernel-log=journal", f"--path.rootfs={self.host}", *ALONE, *more)

    def once(self, *more):
        done = apu.run_exporter("--once", *self.arguments(*more))
        return apu.parse_samples(done.stdout), done.stderr

    def reader_of(self, exporter):
        """The process id of the reader, which is the only child."""
        def only_child():
            children = []
            for task in apu.thread_ids(exporter.process.pid):
                path = pathlib.Path(f"/proc/{exporter.process.pid}/task/{task}/children")
                children += path.read_text().split()
            return len(children) == 1 and children[0]
        return int(apu.wait_for(only_child, "the reader runs"))


class Contents(JournalTest):
    def test_this_boot_alone_counts(self):
        journal.append(self.file, entry(REFUSAL, 5, boot="a" * 32), entry(hog(262147), 6, boot="a" * 32),
                       entry(BANNER, 0), entry(REFUSAL, 7), entry("usb 1-1: new device", 8))
        samples, _ = self.once()
        self.assertEqual(samples[REFUSALS], 1)
        self.assertEqual(samples[LINES], 3)
        self.assertEqual(samples["apu_kernel_log_covers_boot"], 1)
        self.assertFalse([s for s in samples if "hog_events_total" in s and "262147" in str(samples[s])])

    def test_an_unknown_boot_is_that_of_the_newest_entry(self):
        (self.host / "proc/sys/kernel/random/boot_id").unlink()
        journal.append(self.file, entry(REFUSAL, 5, boot="a" * 32), entry(REFUSAL, 1000), entry(REFUSAL, 1001))
        self.assertEqual(self.once()[0][REFUSALS], 2)

    def test_a_boot_without_entries_is_no_healthy_log(self):
        journal.append(self.file, entry(REFUSAL, 5, boot="a" * 32))
        samples, _ = self.once()
        self.assertEqual((samples[AVAILABLE], samples[REASON % "not_found"]), (0, 1))
        self.assertNotIn(LINES, samples)

    def test_text_of_user_space_does_not_count(self):
        journal.append(
            self.file, entry(REFUSAL, 1), entry(REFUSAL, 2, "syslog", SYSLOG_IDENTIFIER="kernel", _PID="77"),
            entry(REFUSAL, 3, "journal", SYSLOG_IDENTIFIER="kernel", _PID="78"),
            entry(REFUSAL, 4, SYSLOG_FACILITY="1", SYSLOG_IDENTIFIER="amdgpu"),
            entry(REFUSAL, 5, SYSLOG_FACILITY="3"), entry("hello", 5, SYSLOG_FACILITY="3"),
            entry("usb 1-1: new device", 5), entry("hello", 6, SYSLOG_FACILITY="1"), entry(REFUSAL, 6))
        samples, _ = self.once()
        self.assertEqual((samples[REFUSALS], samples[LINES]), (2, 3))
        self.assertEqual(samples['apu_kernel_log_ignored_total{reason="userspace"}'], 4)

    def test_a_service_manager_is_known_by_what_it_cannot_choose(self):
        journal.append(
            self.file, of_manager(SIGKILL, 1), of_manager("a.service: Started.", 2),
            user_manager("a.service: Killing process 1 (a) with signal SIGKILL.", 3),
            # forged: by a user's process, by one in a unit of the user, by logger, through the kernel
            entry(SIGKILL, 4, "journal", SYSLOG_IDENTIFIER="systemd", _PID="999", _UID="1000",
                  _SYSTEMD_UNIT="session-3.scope"),
            user_manager("b.service: Killing process 1 (b) with signal SIGKILL.", 5,
                         _SYSTEMD_USER_UNIT="evil.service"),
            entry(SIGKILL, 6, "syslog", SYSLOG_IDENTIFIER="systemd", _PID="1"),
            entry(SIGKILL, 7, SYSLOG_IDENTIFIER="systemd", SYSLOG_FACILITY="3"))
        samples, _ = self.once()
        kills = {s: v for s, v in samples.items() if s.startswith("apu_unit_sigkills_total")}
        self.assertEqual(kills, {'apu_unit_sigkills_total{unit="llama-26b"}': 1,
                                 'apu_unit_sigkills_total{unit="1000/a"}': 1})

    def test_what_journald_missed_is_lost(self):
        daemon = {"_PID": "363", "SYSLOG_IDENTIFIER": "systemd-journald"}
        forged = entry("Missed 99 kernel messages", 4, "journal", **daemon)
        journal.append(self.file, entry(REFUSAL, 1), forged,
                       entry("Missed 81 kernel messages", 5, "driver", **daemon),
                       entry("/dev/kmsg buffer overrun, some messages lost.", 6, "driver", **daemon),
                       entry(REFUSAL, 7))
        samples, _ = self.once()
        self.assertEqual(samples['apu_kernel_log_lost_total{by="journald_missed"}'], 82)

    def test_a_directory_is_a_journal(self):
        file = self.directory / "copied" / ("d" * 32) / "system.journal"
        journal.append(file, entry(REFUSAL, 1))
        done = apu.run_exporter("--once", f"--kernel-log={self.directory / 'copied'}",
                                f"--path.rootfs={self.host}", *ALONE)
        samples = apu.parse_samples(done.stdout)
        self.assertEqual((samples[REFUSALS], samples[AVAILABLE]), (1, 1))

    def test_both_directories_are_one_log_and_a_copy_counts_once(self):
        entries = [entry(hog(2**k + 3), 100 * k) for k in range(1, 9)]
        journal.append(self.file, *entries[:5])
        journal.append(self.host / "run/log/journal/system.journal", *entries[3:])
        samples, _ = self.once()
        self.assertEqual(samples[LINES], 8)
        labels = '{function="amdgpu_amdkfd_restore_userptr_worker",module="amdgpu"}'
        self.assertEqual(samples["apu_workqueue_hog_events_total" + labels], 259)

    def test_no_directory_and_an_empty_one_are_not_found(self):
        for make in (False, True):
            if make:
                self.journals.mkdir(parents=True)
            samples, _ = self.once()
            self.assertEqual((samples[AVAILABLE], samples[REASON % "not_found"]), (0, 1))

    def test_files_that_may_not_be_read_are_named(self):
        journal.append(self.file, entry(REFUSAL, 1))
        self.directory.chmod(0o755)
        self.file.chmod(0o600)
        if os.geteuid() != 0:
            self.skipTest("needs root, to become another user")
        command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", apu.BINARY, "--once",
                   *self.arguments()]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(apu.parse_samples(done.stdout)[REASON % "permission_denied"], 1)


    def test_the_recorded_case_of_messages_that_journald_missed(self):
        log = apu.ROOT / "tests/cases/15-journald-missed-messages/journal-short.log"
        entries = []
        for at, line in enumerate(log.read_text().splitlines()):
            _, tag, message = re.fullmatch(r"(\w+ \d+ \S+) host (\S+): (.*)", line).groups()
            entries.append(entry(message, at) if tag == "kernel" else
                           entry(message, at, "driver", _PID="363", SYSLOG_IDENTIFIER="systemd-journald"))
        journal.append(self.file, *entries)
        samples, _ = self.once()
        self.assertEqual(samples['apu_kernel_events_total{event="userptr_get_pages_failed",gpu=""}'], 2)
        self.assertEqual(samples['apu_kernel_log_lost_total{by="journald_missed"}'], 82)
        labels = '{function="amdgpu_amdkfd_restore_userptr_worker",module="amdgpu"}'
        self.assertEqual(samples["apu_workqueue_hog_events_total" + labels], 11)


class Following(JournalTest):
    def setUp(self):
        super().setUp()
        journal.append(self.file, entry(BANNER, 0), *(entry(REFUSAL, 1 + n) for n in range(10)))

    def wait_refusals(self, exporter, count):
        exporter.wait_sample(REFUSALS, lambda value: value >= count, f"{count} refusals")
        self.assertEqual(exporter.samples()[REFUSALS], count)

    def rotate(self, name):
        self.file.rename(self.journals / f"system@{name * 32}-0000000000000001-0000000000000001.journal")

    def pretend_growth(self):
        """Says in the file's header that it has one more entry: then its reader looks for it."""
        n_entries = 152  # in struct Header of journal-def.h
        with open(self.file, "r+b") as file:
            file.seek(n_entries)
            count = int.from_bytes(file.read(8), "little")
            file.seek(n_entries)
            file.write((count + 1).to_bytes(8, "little"))

    def test_growth_rotation_and_vacuum(self):
        with apu.Exporter(*self.arguments()) as exporter:
            self.wait_refusals(exporter, 10)
            journal.append(self.file, entry(REFUSAL, 20))
            self.wait_refusals(exporter, 11)
            self.rotate("1")
            journal.append(self.file, entry(REFUSAL, 30), entry(REFUSAL, 31))
            self.wait_refusals(exporter, 13)
            for old in self.journals.glob("system@*"):
                old.unlink()
            self.rotate("2")
            journal.append(self.file, entry(REFUSAL, 40))
            self.wait_refusals(exporter, 14)
            for old in self.journals.glob("*.journal"):
                old.unlink()  # the one with the last entry that was read, too
            exporter.wait_sample(REASON % "not_found", lambda value: value == 1)
            journal.append(self.file, entry(REFUSAL, 50))
            self.wait_refusals(exporter, 15)
            self.assertEqual(exporter.samples()[LINES], 16)

    def test_text_of_user_space_that_comes_later_does_not_count(self):
        with apu.Exporter(*self.arguments()) as exporter:
            self.wait_refusals(exporter, 10)
            journal.append(self.file, entry("hello", 20, SYSLOG_FACILITY="3"), entry("usb 1-1: new", 20),
                           entry(REFUSAL, 20, SYSLOG_FACILITY="1"), entry(REFUSAL, 21))
            self.wait_refusals(exporter, 11)
            samples = exporter.samples()
            self.assertEqual(samples[LINES], 13)
            self.assertEqual(samples['apu_kernel_log_ignored_total{reason="userspace"}'], 2)

    def test_a_directory_that_appears_later(self):
        self.file.unlink()
        self.journals.rmdir()
        with apu.Exporter(*self.arguments()) as exporter:
            exporter.wait_sample(REASON % "not_found", lambda value: value == 1)
            journal.append(self.file, entry(REFUSAL, 1))
            self.wait_refusals(exporter, 1)
            journal.append(self.host / "run/log/journal/system.journal", entry(REFUSAL, 2))
            self.wait_refusals(exporter, 2)
            self.assertEqual(exporter.samples()[AVAILABLE], 1)

    def test_a_reader_that_is_killed_is_replaced_and_nothing_counts_twice(self):
        with apu.Exporter(*self.arguments()) as exporter:
            self.wait_refusals(exporter, 10)
            for killed in (1, 2, 3, 4):
                os.kill(self.reader_of(exporter), signal.SIGKILL)
                exporter.wait_sample(ERRORS, lambda value, n=killed: value >= n, "the crash is counted")
                journal.append(self.file, entry(REFUSAL, 20 + killed))
                self.wait_refusals(exporter, 10 + killed)
            self.assertEqual(exporter.samples()[AVAILABLE], 1)
            self.assertIn("signal 9", "".join(exporter.log))

    def test_a_truncated_file_ends_the_reader_and_not_the_exporter(self):
        self.rotate("1")
        journal.append(self.file, *(entry(f"usb {n}-1: {'x' * 200} {n}", 30 + n / 1000) for n in range(20000)))
        with apu.Exporter(*self.arguments()) as exporter:
            exporter.wait_sample(LINES, lambda value: value == 20011)
            os.truncate(self.file, 8192)
            self.pretend_growth()
            exporter.wait_sample(ERRORS, lambda value: value >= 1, "the crash is shown")
            self.assertIn("signal 7", "".join(exporter.log))
            self.file.unlink()
            journal.append(self.file, entry(REFUSAL, 100))
            self.wait_refusals(exporter, 11)
            self.assertEqual(exporter.samples()[LINES], 20012)
            self.assertGreaterEqual(
                exporter.samples()['apu_kernel_log_lost_total{by="journal_unreadable"}'], 1)

    def test_damage_is_shown_and_what_can_be_read_counts_once(self):
        journal.append(self.file, *(entry(f"usb {n}-1: {'x' * 90} {n}", 30 + n / 1000) for n in range(4000)))
        whole = self.once()[0][LINES]
        self.assertEqual(whole, 4011)
        content = self.file.read_bytes()
        shown = 0
        for place in range(1, 8):
            with self.subTest(place):
                at = len(content) * place // 10 // 512 * 512
                self.file.write_bytes(content[:at] + b"\xff" * 512 + content[at + 512:])
                samples, log = self.once()
                self.assertIn(AVAILABLE, samples, log)
                self.assertLessEqual(samples.get(LINES, 0), whole)
                if samples.get(LINES, 0) < whole:
                    shown += 1
                    told = samples[ERRORS] > 0 or samples[AVAILABLE] == 0
                    self.assertTrue(told, f"{samples.get(LINES)} of {whole} lines, and nothing said")
        self.assertGreater(shown, 0, "no damage did any")


class Processes(JournalTest):
    def setUp(self):
        super().setUp()
        journal.append(self.file, entry(REFUSAL, 1))

    def test_the_reader_inherits_no_descriptor_and_no_signal_mask(self):
        with apu.Exporter(*self.arguments()) as exporter:
            exporter.wait_ready()
            reader = self.reader_of(exporter)
            links = [os.readlink(f"/proc/{reader}/fd/{fd}") for fd in os.listdir(f"/proc/{reader}/fd")]
            self.assertFalse([link for link in links if link.startswith("socket:")], links)
            status = pathlib.Path(f"/proc/{reader}/status").read_text()
            of_the_c_library = 0b11 << 31  # 32 and 33, which no program can set
            for mask in ("SigBlk", "SigIgn"):
                signals = int(re.search(rf"{mask}:\s*(\w+)", status).group(1), 16)
                self.assertEqual(signals & ~of_the_c_library, 0, mask)

    def test_a_killed_exporter_leaves_no_reader(self):
        with apu.Exporter(*self.arguments()) as exporter:
            exporter.wait_ready()
            reader = self.reader_of(exporter)
            exporter.process.kill()
            exporter.process.wait()
            apu.wait_for(lambda: not os.path.exists(f"/proc/{reader}/exe"), "the reader ends")

    def test_a_stopped_exporter_leaves_no_reader(self):
        with apu.Exporter(*self.arguments()) as exporter:
            exporter.wait_ready()
            reader = self.reader_of(exporter)
            self.assertEqual(exporter.stop()[0], 0)
            apu.wait_for(lambda: not os.path.exists(f"/proc/{reader}/exe"), "the reader ends")

    def test_a_reader_that_says_nothing_is_given_up(self):
        with apu.Exporter(*self.arguments()) as exporter:
            exporter.wait_ready()
            os.kill(self.reader_of(exporter), signal.SIGSTOP)
            exporter.wait_sample(REASON % "blocked", lambda value: value == 1, "the silence is noticed")
            self.assertEqual(exporter.samples()[AVAILABLE], 0)

    @unittest.skipUnless(HANGFS and os.access("/dev/fuse", os.W_OK) and os.geteuid() == 0,
                         "needs hangfs, root and /dev/fuse")
    def test_a_journal_that_hangs_costs_itself_alone(self):
        mount = self.directory / "mount"
        mount.mkdir()
        (self.directory / "hang").touch()
        daemon = subprocess.Popen([HANGFS, str(self.host), "/var/log/journal/system.journal", str(mount)],
                                  start_new_session=True)
        try:
            apu.wait_for((mount / "time").exists, "the mount stands")
            with apu.Exporter("--kernel-log=journal", f"--path.journal={mount / 'var/log/journal'}",
                              "--path.rootfs=/", "--collector.kernel_log.period=200ms") as exporter:
                exporter.wait_sample(REASON % "blocked", lambda value: value == 1, "the hang is noticed")
                for _ in range(20):
                    start = time.monotonic()
                    self.assertIn("apu_memory_size_bytes", exporter.samples())
                    self.assertLess(time.monotonic() - start, 2)
                self.assertEqual(exporter.stop()[0], 0)
        finally:
            daemon.kill()
            daemon.wait()
            subprocess.run(["umount", "--lazy", str(mount)], check=False)


if __name__ == "__main__":
    if not journal.is_there():
        apu.cannot_run("systemd-journal-remote is not installed")
    unittest.main()
