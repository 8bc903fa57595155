#!/usr/bin/python3
"""A systemd-journald of our own, in namespaces of its own, that imports this machine's kernel log."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import exporter as apu  # noqa: E402

JOURNALD = "/lib/systemd/systemd-journald"
LINES = "apu_kernel_log_lines_total"
IGNORED = 'apu_kernel_log_ignored_total{reason="userspace"}'
ALONE = ("--collector.disable-defaults", "--collector.kernel_log", "--collector.kernel_log.period=200ms")

# Reads commands from stdin: "rotate", and texts to log. Ends with stdin.
SCRIPT = r"""
set -e
mount --make-rprivate /; mount -t tmpfs tmpfs /run; mount -t tmpfs tmpfs /var/log
mkdir -p /run/systemd/journal /run/systemd/system /run/log/journal /var/log/journal
mount --bind "$1" /var/log/journal
printf '[Journal]\nStorage=persistent\nReadKMsg=yes\nForwardToSyslog=no\n' > /run/journald.conf
mount --bind /run/journald.conf /etc/systemd/journald.conf
touch /run/systemd/journal/flushed
"$2" & journald=$!
while read -r line; do
  if [ "$line" = rotate ]; then kill -USR2 $journald; else echo "$line" | systemd-cat -t systemd; fi
done
kill $journald; wait $journald
"""


def kernel_records():
    """How many records of /dev/kmsg the kernel wrote."""
    kernel = 0
    fd = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    try:
        while True:
            kernel += int(os.read(fd, 8192).split(b",")[0]) < 8
    except BlockingIOError:
        return kernel
    finally:
        os.close(fd)


class OwnJournald:
    def __enter__(self):
        self.directory = tempfile.TemporaryDirectory(prefix="apu-journald-")
        command = ["unshare", "--mount", "--ipc", "--uts", "--pid", "--fork", "--mount-proc", "--kill-child",
                   "bash", "-c", SCRIPT, "bash", self.directory.name, JOURNALD]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, text=True)
        apu.wait_for(self.files, "journald has written")
        return self

    def files(self):
        return list(pathlib.Path(self.directory.name).glob("*/*.journal"))

    def tell(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(timeout=apu.DEADLINE)
        self.directory.cleanup()


class Journald(unittest.TestCase):
    def test_its_log_is_the_kernels_and_rotation_loses_nothing(self):
        with OwnJournald() as journald:
            with apu.Exporter(f"--kernel-log={journald.directory.name}", *ALONE) as exporter:
                kernel = kernel_records()
                exporter.wait_sample(LINES, lambda value: value >= kernel)
                self.assertLessEqual(exporter.samples()[LINES], kernel_records())
                files = len(journald.files())
                journald.tell("rotate")
                apu.wait_for(lambda: len(journald.files()) > files, "journald has rotated")
                journald.tell("llama.service: Killing process 1 (llama) with signal SIGKILL.")
                before = exporter.samples()[IGNORED]
                exporter.wait_sample(IGNORED, lambda value: value > before, "the forged line is read")
                samples = exporter.samples()
                self.assertFalse([series for series in samples if "apu_unit_sigkills" in series])
                self.assertLessEqual(samples[LINES], kernel_records())
                self.assertGreaterEqual(samples[LINES], kernel)


if __name__ == "__main__":
    apu.need_programs("unshare", "systemd-cat", "bash")
    if not os.access(JOURNALD, os.X_OK):
        apu.cannot_run("systemd-journald is not installed")
    if os.geteuid() != 0 or subprocess.run(["unshare", "--mount", "--pid", "--fork", "true"],
                                           check=False).returncode != 0:
        apu.cannot_run("a private journald needs root and namespaces")
    if not os.access("/dev/kmsg", os.R_OK):
        apu.cannot_run("/dev/kmsg may not be read")
    unittest.main()
