"""A unit that does not stop, which PID 1 kills after its TimeoutStopSec=: known by the journal alone."""
import subprocess
import time

import guest

UNIT = "apu-vm-stubborn"
INNOCENT = "apu-vm-innocent"
COUNTED = [f'apu_unit_sigkills_total{{unit="{UNIT}"}}', f'apu_unit_stop_timeouts_total{{unit="{UNIT}"}}']


def start_stubborn(report):
    # One process, so that there is one to kill; what a shell ignores stays so over exec.
    guest.run("systemd-run", f"--unit={UNIT}", "--property=TimeoutStopSec=1",
              "/bin/sh", "-c", "trap '' TERM; exec sleep infinity")

    pid = guest.show(UNIT, "MainPID")
    report.wait("the unit ignores SIGTERM", lambda: guest.comm_of(pid) == "sleep")


def forge():
    """The words of PID 1 from others' mouths."""
    for text in (f"{INNOCENT}.service: State 'stop-sigterm' timed out. Killing.",
                 f"{INNOCENT}.service: Killing process 4242 (sleep) with signal SIGKILL."):
        guest.run("logger", "--tag=systemd", text)
        guest.run("systemd-run", "--wait", "--property=SyslogIdentifier=systemd", "/bin/echo", text)


def read_once(report):
    """The exporter as a command that reads nothing but the journal."""
    done = subprocess.run(["apu_exporter", "--once", "--kernel-log=journal"], check=False, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    report.fact("once_exit", done.returncode)
    report.text("once_stderr", done.stderr)
    report.metrics("journal", done.stdout)


def run(report):
    forge()
    start_stubborn(report)
    report.fact("began", time.time())
    guest.run("systemctl", "stop", UNIT)
    report.fact("ended", time.time())
    report.wait("the journal has the kill",
                lambda: "with signal SIGKILL" in guest.journal("_PID=1", f"UNIT={UNIT}.service"))
    report.text("said_by_pid_1", guest.journal("_PID=1", f"UNIT={UNIT}.service"))
    report.text("forged", guest.journal("SYSLOG_IDENTIFIER=systemd", "--grep", INNOCENT))
    report.wait("timeout and kill count", lambda: all(series in guest.samples() for series in COUNTED))
    guest.wait_passes(report)
    report.metrics("counted", guest.exposition())
    read_once(report)
