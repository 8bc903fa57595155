#!/usr/bin/env python3
"""The systemd units: that systemd accepts them, how far they are locked down, and what they must never set.

Needs systemd-analyze; exits 77 without it.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

UNITS = Path(__file__).resolve().parents[2] / "deploy/systemd"
SERVICE = "apu-exporter.service"
SLICE = "apu.slice"
DEFAULTS = "apu-exporter.default"
BINARY = "/usr/bin/apu_exporter"
STAND_IN = "/bin/true"
SKIPPED = 77
LARGEST_EXPOSURE = 30  # tenths of a point, as --threshold wants it

# Each of these blinds the exporter: kmsg, meminfo, vmstat and pressure, or the processes and devices of the host.
NEVER = {
    "ProcSubset": ("pid",),
    "ProtectKernelLogs": ("yes", "true", "1", "on"),
    "PrivateDevices": ("yes", "true", "1", "on"),
    "ProtectProc": ("invisible", "ptraceable", "noaccess"),
    "PrivateUsers": ("yes", "true", "1", "on"),
    "PrivateNetwork": ("yes", "true", "1", "on"),
    "DynamicUser": ("yes", "true", "1", "on"),
}

MUST = {
    "Type": "exec",
    "User": "apu-exporter",
    "SupplementaryGroups": "systemd-journal",
    "EnvironmentFile": "-/etc/default/apu-exporter",
    "ExecStart": f"{BINARY} --state.file=%S/apu-exporter/kernel_log.json $ARGS",
    "Restart": "always",
    "NoNewPrivileges": "yes",
    "MemorySwapMax": "0",
    "Slice": SLICE,
    # Of the kernel log, and of what other users' processes hold of the GPU.
    "CapabilityBoundingSet": "CAP_SYSLOG CAP_SYS_PTRACE CAP_DAC_READ_SEARCH",
    "AmbientCapabilities": "CAP_SYSLOG CAP_SYS_PTRACE CAP_DAC_READ_SEARCH",
    "InaccessiblePaths": "-/etc/shadow -/etc/gshadow -/etc/ssl/private",
    "DevicePolicy": "closed",
    "DeviceAllow": "/dev/kmsg r",
}

# Requests at a time by default, the server's reserve, and more collectors than there are.
THREADS = 40 + 24 + 25


def settings(text):
    """Returns the settings of a unit in order, as (name, value)."""
    lines = [line.strip() for line in text.splitlines()]
    return [tuple(line.split("=", 1)) for line in lines if "=" in line and not line.startswith(("#", ";"))]


def blinding(text):
    return [f"{name}={value}" for name, value in settings(text) if value.lower() in NEVER.get(name, ())]


def megabytes(value):
    return int(re.fullmatch(r"(\d+)M", value)[1])


def can_verify():
    """Without root, systemd-analyze needs a runtime directory that only a booted systemd makes."""
    return os.geteuid() == 0 or Path("/run/systemd").is_dir()


def analyze(*arguments):
    run = subprocess.run(["systemd-analyze", *arguments], text=True, check=False,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return run.returncode, run.stdout


class Units(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.text = (UNITS / SERVICE).read_text(encoding="utf-8")
        self.slice = (UNITS / SLICE).read_text(encoding="utf-8")

    def write(self, service):
        """Writes the units to where systemd-analyze reads them, with a program that is there; returns their paths."""
        (self.folder / SERVICE).write_text(service.replace(BINARY, STAND_IN), encoding="utf-8")
        (self.folder / SLICE).write_text(self.slice, encoding="utf-8")
        return [str(self.folder / name) for name in (SERVICE, SLICE)]

    def verify(self, service):
        return analyze("verify", "--man=no", *self.write(service))

    def security(self, service):
        path = self.write(service)[0]
        return analyze("security", "--offline=true", f"--threshold={LARGEST_EXPOSURE}", path)


class Systemd(Units):
    def test_verify_says_nothing(self):
        self.assertEqual(self.verify(self.text), (0, ""))

    def test_verify_would_name_a_bad_setting(self):
        """systemd-analyze verify prints it, and exits with 0 all the same."""
        _, output = self.verify(self.text.replace("ProtectHome=yes", "ProtectHouse=yes"))
        self.assertIn("ProtectHouse", output)

    def test_exposure_is_small(self):
        code, output = self.security(self.text)
        self.assertEqual(code, 0, output)

    def test_exposure_would_be_found(self):
        code, _ = self.security(re.sub(r"(?m)^(Protect|Restrict|SystemCall|Capability)\w+=.*\n", "", self.text))
        self.assertNotEqual(code, 0)


class CheckUnit(Units):
    def test_verify_says_nothing(self):
        text = (UNITS / "apu-exporter-check.service").read_text(encoding="utf-8")
        self.assertIn(f"ExecStart={BINARY} check ", text)
        path = self.folder / "apu-exporter-check.service"
        path.write_text(text.replace(BINARY, STAND_IN), encoding="utf-8")
        self.assertEqual(analyze("verify", "--man=no", str(path)), (0, ""))


class Settings(Units):
    def test_nothing_blinds_the_exporter(self):
        self.assertEqual(blinding(self.text), [])

    def test_what_blinds_would_be_found(self):
        for name, values in NEVER.items():
            for value in values:
                self.assertEqual(blinding(self.text + f"\n {name}={value}\n"), [f"{name}={value}"])

    def test_what_must_be_set(self):
        found = settings(self.text)
        for name, value in MUST.items():
            self.assertEqual([v for n, v in found if n == name], [value], name)

    def test_it_never_stops_trying(self):
        self.assertIn(("StartLimitIntervalSec", "0"), settings(self.text))

    def test_its_threads_fit(self):
        self.assertGreaterEqual(int(dict(settings(self.text))["TasksMax"]), THREADS)

    def test_the_oom_killer_takes_others_first(self):
        self.assertLessEqual(int(dict(settings(self.text))["OOMScoreAdjust"]), -500)

    def test_the_slice_protects_what_the_service_asks_for(self):
        """Below a slice without MemoryMin= that of the service protects nothing."""
        service, above = (megabytes(dict(settings(t))["MemoryMin"]) for t in (self.text, self.slice))
        self.assertGreaterEqual(above, service)
        self.assertGreater(megabytes(dict(settings(self.text))["MemoryMax"]), service)

    def test_the_slice_hangs_below_the_root(self):
        """A dash in its name would put it below another slice."""
        self.assertNotIn("-", SLICE)


class Defaults(unittest.TestCase):
    def test_it_sets_nothing_but_empty_options(self):
        text = (UNITS / DEFAULTS).read_text(encoding="utf-8")
        self.assertEqual(settings(text), [("ARGS", '""')])

    def test_it_has_examples(self):
        text = (UNITS / DEFAULTS).read_text(encoding="utf-8")
        self.assertRegex(text, r'(?m)^#ARGS="--web\.listen-address=\S+"$')


if __name__ == "__main__":
    if shutil.which("systemd-analyze") is None:
        print("cannot run here: systemd-analyze is not installed", file=sys.stderr)
        sys.exit(SKIPPED)
    if not can_verify():
        print("cannot run here: systemd-analyze needs root where /run/systemd is missing", file=sys.stderr)
        sys.exit(SKIPPED)
    unittest.main()
