"""What PID 1 and a user's manager say of their units: one that was restarted, and one that left a process behind."""
import os
import pathlib
import subprocess

import guest

PORT = 10153
USER = "4242"
RESTARTED = "llama-restarted"
LEFT = "llama-left"
OF_USER = "llama-of-user"


def unit_series(name, unit, seat=None):
    return f'apu_seat_unit_{name}{{seat="{seat or unit}",unit="{unit}"}}'


USER_SOURCE = 'apu_source_available{source="dbus_user"}'
RESTARTS = unit_series("restarts_total", RESTARTED)
POPULATED = unit_series("inactive_but_populated", LEFT)
USERS_TIMEOUT = unit_series("stop_timeout_seconds", OF_USER, f"{USER}/{OF_USER}")


def start_exporter():
    """One of its own, since half a minute between passes is long; as root, which user managers let in."""
    return subprocess.Popen(["/usr/bin/apu_exporter", f"--web.listen-address=127.0.0.1:{PORT}", "--collector.disable-defaults",
                             "--collector.cgroup", "--collector.cgroup.period=1s", "--collector.units",
                             "--collector.units.period=1s"])


def start_restarted(report):
    guest.run("systemd-run", f"--unit={RESTARTED}", "--property=Restart=always", "--property=RestartSec=0",
              "--property=TimeoutStopSec=77", "--property=MemoryLow=16M", f"--property=Wants={LEFT}.service",
              "/bin/sleep", "infinity")
    guest.run("systemctl", "kill", "--signal=KILL", RESTARTED)
    report.wait("PID 1 restarted the unit", lambda: guest.show(RESTARTED, "NRestarts") == "1")
    report.wait("it runs again", lambda: guest.show(RESTARTED, "ActiveState") == "active")


def start_left(report):
    """It fails, and so stays loaded."""
    guest.run("systemd-run", f"--unit={LEFT}", "--property=KillMode=process",
              "/bin/sh", "-c", "sleep infinity & exit 1", check=False)
    report.wait("the unit failed", lambda: guest.show(LEFT, "ActiveState") == "failed")


def start_user_manager(report):
    """Without PAM, which the image does not have."""
    guest.run("useradd", f"--uid={USER}", "--no-create-home", "apu-vm-user")
    drop_in = pathlib.Path("/run/systemd/system/user@.service.d/no-pam.conf")
    drop_in.parent.mkdir(parents=True)
    drop_in.write_text("[Service]\nPAMName=\nEnvironment=XDG_RUNTIME_DIR=/run/user/%i\n")
    unit = pathlib.Path(f"/run/systemd/user/{OF_USER}.service")
    unit.parent.mkdir(parents=True, exist_ok=True)
    unit.write_text("[Service]\nExecStart=/bin/sleep infinity\nTimeoutStopSec=33\n")
    guest.run("systemctl", "daemon-reload")
    guest.run("systemctl", "start", f"user@{USER}.service")
    report.wait("the user's manager listens", lambda: os.path.exists(f"/run/user/{USER}/systemd/private"))
    guest.run("setpriv", f"--reuid={USER}", "--clear-groups", f"--regid={USER}", "env",
              f"XDG_RUNTIME_DIR=/run/user/{USER}", "systemctl", "--user", "start", OF_USER)


def run(report):
    start_restarted(report)
    start_left(report)
    start_user_manager(report)
    exporter = start_exporter()
    wanted = {RESTARTS, POPULATED, USERS_TIMEOUT}
    report.wait("all units are seen", lambda: wanted <= guest.samples(PORT).keys())
    report.metrics("seen", guest.exposition(PORT))
    exporter.terminate()
    report.fact("exit", exporter.wait())
    # Of the packaged service, with its own user and its sandbox.
    report.wait("the service sees it, too", lambda: guest.samples().get(RESTARTS) == 1)
    report.wait("and that it may not ask a user's manager",
                lambda: USER_SOURCE in guest.samples())
    report.metrics("service", guest.exposition())
    guest.run("systemctl", "stop", RESTARTED)
    guest.run("systemctl", "kill", LEFT, check=False)
    guest.run("systemctl", "stop", f"user@{USER}.service")
