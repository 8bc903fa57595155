"""Runs in the VM: starts the exporter as its service, and goes through the scenarios."""
import subprocess
import sys
import traceback

import guest
from scenarios import (budgets, kernel_lines, kernel_locks, oom_kill, restart, seat_states, stop_timeout, swap_storm,
                       units)

# In this order: "restart" looks for the traces of those before it. "seat_states" is the last, as nothing else shall need
# the CPUs then.
SCENARIOS = {
    "kernel_lines": kernel_lines.run, "oom_kill": oom_kill.run, "stop_timeout": stop_timeout.run, "restart": restart.run,
    "kernel_locks": kernel_locks.run, "seat_exporter": seat_states.start_exporter, "units": units.run,
    "budgets": budgets.run, "swap_storm": swap_storm.run, "seat_states": seat_states.run,
}
JOURNAL_LINES = 400


def start_exporter(report):
    """As deploy/README.md has it."""
    guest.run("useradd", "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", "apu-exporter")
    guest.run("systemctl", "start", "sys-kernel-debug.mount")
    guest.run("insmod", "/opt/apu-vm/apu_testmod.ko")
    guest.run("systemctl", "start", guest.SERVICE)
    report.wait("the exporter is ready", guest.is_ready)
    guest.wait_passes(report)  # a collector that is slow to start is no hindrance to being ready
    with open("/proc/sys/kernel/dmesg_restrict", encoding="ascii") as file:
        report.fact("dmesg_restrict", file.read().strip())
    report.metrics("started", guest.exposition())


def attempt(report, name, function):
    """A scenario that breaks does not keep the others from running."""
    report.line("BEGIN", name)
    try:
        function(report)
    except Exception as error:  # pylint: disable=broad-except
        report.line("ERROR", repr(error))
        report.text("traceback", traceback.format_exc())
        if isinstance(error, subprocess.CalledProcessError):
            report.text("output", error.output or "")


def main():
    report = guest.Report("/dev/ttyS1")
    attempt(report, "start", start_exporter)
    for name, function in SCENARIOS.items():
        attempt(report, name, function)
    report.line("BEGIN", "end")
    report.text("journal", guest.run("journalctl", "--boot", "--quiet", "--no-hostname",
                                     f"--lines={JOURNAL_LINES}", check=False))
    report.line("DONE")


if __name__ == "__main__":
    sys.exit(main())
