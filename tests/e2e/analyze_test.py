#!/usr/bin/python3
"""apu_exporter analyze on recorded logs, on real journals printed by the real journalctl, and on what is no log."""
import bz2
import gzip
import json
import lzma
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import exporter as apu  # noqa: E402

apu.need_programs("promtool", "zstd", "journalctl")
JOURNAL_REMOTE = pathlib.Path("/lib/systemd/systemd-journal-remote")
CASES = apu.ROOT / "tests/cases"
WEEK = CASES / "01-hog-week/journal-short.log"
HOGS = 'apu_workqueue_hog_events_total{function="amdgpu_amdkfd_restore_userptr_worker",module="amdgpu"}'
ENVIRONMENT = {**os.environ, "TZ": "UTC", "LC_ALL": "C.UTF-8"}
LOGS = sorted(path for path in CASES.glob("*/*") if path.suffix in (".log", ".bin"))


def analyze(*arguments, stdin=None):
    return subprocess.run([apu.BINARY, "analyze", *map(str, arguments)], input=stdin, capture_output=True,
                          env=ENVIRONMENT, timeout=apu.DEADLINE, check=False)


def metrics(*arguments, **options):
    done = analyze("--format=metrics", *arguments, **options)
    return apu.parse_samples(done.stdout.decode())


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, data):
        path = self.folder / name
        path.write_bytes(data)
        return path


class RecordedLogs(unittest.TestCase):
    def test_exit_status_says_whether_there_is_a_fault(self):
        for status, name in ((1, "01-hog-week/journal-short.log"), (1, "02-two-workers-interleaved-dmesgT/dmesg-T.log"),
                             (1, "29-quiesce-cascade-mes-reset/dmesg.log"), (1, "60-hung-task-svm-restore/dmesg.log"),
                             (0, "07-other-drivers-negative/mixed.log"), (0, "33-vital-buffer-benign/dmesg-b.log"),
                             (0, "12-look-alike-names/dmesg.log"), (2, "92-log-source-unreadable/dmesg.stderr")):
            self.assertEqual(analyze(CASES / name).returncode, status, name)

    def test_each_prints_metrics_that_promtool_takes(self):
        for log in LOGS:
            done = analyze("--format=metrics", log)
            check = subprocess.run(["promtool", "check", "metrics"], input=done.stdout, capture_output=True, check=False)
            complaints = [line for line in check.stderr.decode().splitlines() if "counters should" not in line]
            self.assertEqual((check.returncode, complaints), (0, []), log)

    def test_each_prints_json_of_the_documented_keys(self):
        documented = set(re.findall(r"`([a-z_]+)`", (apu.ROOT / "docs/analyze-json.md").read_text()))

        def keys(value):
            if isinstance(value, dict):
                for key, inner in value.items():
                    yield key
                    yield from keys(inner)
            elif isinstance(value, list):
                for inner in value:
                    yield from keys(inner)

        seen = set()
        for log in LOGS:
            report = json.loads(analyze("--format=json", log).stdout)
            self.assertEqual((report["format"], report["version"]), ("apu_exporter analyze", 1))
            seen |= set(keys({**report, "boots": [{**boot, "lost": {}} for boot in report["boots"]]}))
        self.assertEqual(seen - documented, {"host", "memcg"} - documented)

    def test_no_line_of_a_report_runs_on_for_ever(self):
        for log in LOGS:
            for line in analyze(log).stdout.decode().splitlines():
                self.assertLess(len(line), 260, log)


class Inputs(Folder):
    def test_compressed_files_and_stdin_read_as_the_plain_one(self):
        plain = WEEK.read_bytes()
        expected = metrics(WEEK)
        self.assertEqual(expected[HOGS], 262147)
        packed = subprocess.run(["zstd", "-c"], input=plain, capture_output=True, check=True).stdout
        for name, data in (("a.gz", gzip.compress(plain)), ("b.xz", lzma.compress(plain)), ("c.zst", packed),
                           ("two-members.gz", gzip.compress(plain[:100]) + gzip.compress(plain[100:])),
                           ("two-streams.xz", lzma.compress(plain[:100]) + lzma.compress(plain[100:]))):
            self.assertEqual(metrics(self.write(name, data)), expected, name)
            self.assertEqual(metrics("-", stdin=data), expected, name)

    def test_what_cannot_be_read_is_named_and_the_rest_still_counts(self):
        plain = WEEK.read_bytes()
        for reason, path in (("cut off", self.write("cut.gz", gzip.compress(plain)[:-20])),
                             ("damaged", self.write("bad.gz", gzip.compress(plain)[:40] + b"\xff" * 40)),
                             ("cut off", self.write("cut.xz", lzma.compress(plain)[:-20])),
                             ("no line has the form", self.write("b.bz2", bz2.compress(b"x")[:3] + b" text\n")),
                             ("binary", self.write("binary", pathlib.Path(apu.BINARY).read_bytes()[:100000])),
                             ("empty", self.write("empty", b"")),
                             ("directory", self.folder),
                             ("No such file", self.folder / "missing")):
            with self.subTest(path.name):
                done = analyze(path, WEEK)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(reason, done.stderr.decode())
                self.assertIn(path.name, done.stderr.decode())
                self.assertEqual(metrics(path, WEEK)[HOGS], 262147)

    def test_a_truncated_archive_counts_as_far_as_it_goes(self):
        text = b"".join(b"[%5d.000000] amdgpu: SVM mapping failed, exceeds resident system memory limit\n" % second
                        for second in range(100, 20100))
        path = self.write("cut.gz", gzip.compress(text)[:-1000])
        counted = metrics(path)['apu_kernel_events_total{event="svm_mapping_failed",gpu=""}']
        self.assertGreater(counted, 1000)
        self.assertLess(counted, 20000)

    def test_wrong_use_is_one_line(self):
        for arguments in ((), ("--format=xml", WEEK), ("--nonsense", WEEK)):
            done = analyze(*arguments)
            self.assertEqual((done.returncode, done.stdout), (2, b""))
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)

    def test_a_log_without_a_line_of_the_kernel_is_no_answer(self):
        path = self.write("auth.log", b"Jul  4 10:00:00 host sshd[12]: Accepted publickey for root\n")
        done = analyze(path)
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"no line of the kernel", done.stderr)

    def test_a_report_that_cannot_be_written_is_an_error(self):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([apu.BINARY, "analyze", WEEK], stdout=full, stderr=subprocess.PIPE, check=False)
        self.assertEqual(done.returncode, 2)

    def test_many_boots_and_counts_take_no_time(self):
        lines = [f"Jul  4 10:00:00 host kernel: workqueue: svm_range_restore_work [amdgpu] hogged CPU for >10000us {n} times\n"
                 + ("-- Reboot --\n" if n % 2 else "") for n in range(4, 60000)]
        self.assertEqual(analyze(self.write("boots.log", "".join(lines).encode())).returncode, 0)

    def test_help_names_formats_and_exit_status(self):
        done = analyze("--help")
        self.assertEqual(done.returncode, 0)
        self.assertIn(b"Exit status", done.stdout)


@unittest.skipUnless(JOURNAL_REMOTE.exists(), "systemd-journal-remote is not installed")
class RealJournal(Folder):
    """Entries written into a journal file by systemd's own code, and printed by journalctl in each of its forms."""
    BOOT = "0123456789abcdef0123456789abcdef"
    START = 1783000000_000000  # microseconds

    def entry(self, seconds, message, **fields):
        since_boot = 5_000_000 + int(seconds * 1e6)
        fields = {"__REALTIME_TIMESTAMP": self.START + int(seconds * 1e6), "__MONOTONIC_TIMESTAMP": since_boot,
                  "_BOOT_ID": self.BOOT, "_MACHINE_ID": "f" * 32, "_HOSTNAME": "host", "_TRANSPORT": "kernel",
                  "SYSLOG_IDENTIFIER": "kernel", "SYSLOG_FACILITY": 0, "PRIORITY": 4,
                  "_SOURCE_MONOTONIC_TIMESTAMP": since_boot, **fields}
        return "".join(f"{name}={value}\n" for name, value in fields.items()) + f"MESSAGE={message}\n\n"

    def setUp(self):
        super().setUp()
        count, entries = 3, [self.entry(0, "Linux version 6.12.1 (user@host) gcc")]
        for power in range(0, 12):
            count = 3 + 2 ** power
            entries.append(self.entry(10 + count, "workqueue: amdgpu_amdkfd_restore_userptr_worker [amdgpu] hogged CPU "
                                                  f"for >10000us {count} times, consider switching to WQ_UNBOUND"))
            entries.append(self.entry(10.5 + count, "usb 1-1: new device"))
        entries.append(self.entry(3000, "llama.service: Killing process 41001 (llama-server) with signal SIGKILL.",
                                  _TRANSPORT="journal", SYSLOG_IDENTIFIER="systemd", _PID=1, PRIORITY=5,
                                  SYSLOG_FACILITY=3, SYSLOG_PID=1))
        entries.append(self.entry(3001, "amdgpu: SVM mapping failed, exceeds resident system memory limit",
                                  _TRANSPORT="syslog", SYSLOG_IDENTIFIER="app", _PID=77, SYSLOG_FACILITY=1, SYSLOG_PID=77))
        self.write("export", "".join(entries).encode())
        subprocess.run([JOURNAL_REMOTE, "-o", self.folder / "system.journal", self.folder / "export"], check=True,
                       capture_output=True)

    def printed(self, *arguments):
        return subprocess.run(["journalctl", "--quiet", "--no-pager", f"--file={self.folder / 'system.journal'}", *arguments],
                              env=ENVIRONMENT, capture_output=True, check=True).stdout

    def test_every_form_of_journalctl_reads_the_same(self):
        for form in ("short", "short-full", "short-iso", "short-iso-precise", "short-precise", "short-monotonic",
                     "short-unix", "json", "json-sse", "json-seq", "export"):
            for order in ((), ("--reverse",)):
                with self.subTest(form=form, order=order):
                    text = self.printed("-o", form, *order)
                    samples = metrics("-", stdin=text)
                    self.assertEqual(samples[HOGS], 2051)
                    self.assertEqual(samples[HOGS.replace("events", "reports")], 12)
                    self.assertAlmostEqual(samples[HOGS.replace("events_total", "events_per_second")], 1, places=2)
                    self.assertEqual(samples["apu_kernel_log_lines_total"], 25)
                    self.assertEqual(samples['apu_unit_sigkills_total{unit="llama"}'], 1)
                    self.assertEqual(samples['apu_kernel_events_total{event="svm_mapping_failed",gpu=""}'], 0)
                    self.assertEqual(samples['apu_kernel_log_ignored_total{reason="userspace"}'], 1)
                    self.assertEqual(samples["apu_kernel_log_covers_boot"], 1)
                    self.assertEqual(samples['apu_parse_errors_total{source="log_file"}'], 0)

    def test_a_journal_file_itself_is_refused_with_the_way_out(self):
        done = analyze(self.folder / "system.journal")
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"journalctl --file", done.stderr)


if __name__ == "__main__":
    unittest.main()
