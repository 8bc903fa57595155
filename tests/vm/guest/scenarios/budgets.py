"""Budgets that are not what they seem: written and not loaded, changed behind the manager's back, void by a slice above,
more than the host has; told by the exporter of seat_states."""
import pathlib

import guest
from scenarios.seat_states import PORT

UNIT = "llama-budget"
SLICE = "apuvm.slice"
UNIT_FILE = pathlib.Path(f"/run/systemd/system/{UNIT}.service")
CGROUP = pathlib.Path(f"/sys/fs/cgroup/{SLICE}/{UNIT}.service")
PROGRAM = "import time; data = bytearray(40 << 20); data[::4096] = b\"x\" * 10240; time.sleep(3600)"


def of_unit(name, more=""):
    return f'apu_seat_unit_{name}{{seat="{UNIT}",unit="{UNIT}"{more}}}'


RELOAD = of_unit("need_daemon_reload")
DIFFERS = of_unit("memory_limit_differs", ',limit="max"')
MISSING = f'apu_seat_budget_missing{{seat="{UNIT}"}}'
VOIDED = f'apu_seat_protection_voided{{seat="{UNIT}",limit="low"}}'
CURRENT = f'apu_seat_memcg_current_bytes{{seat="{UNIT}"}}'
LOW = of_unit("memory_limit_bytes", ',limit="low"')
OVERCOMMITTED = "apu_budget_overcommitted"


def wait_and_keep(report, name, **wanted):
    """Waits for values of series, by the names above, and keeps them all."""
    expected = {globals()[series]: value for series, value in wanted.items()}
    report.wait(f"{name}: {wanted}", lambda: expected.items() <= guest.samples(PORT).items())
    report.metrics(name, guest.exposition(PORT))


def write_unit(*settings):
    UNIT_FILE.write_text("\n".join(["[Service]", f"Slice={SLICE}", f"ExecStart=/usr/bin/python3 -c '{PROGRAM}'", *settings, ""]),
                         encoding="ascii")


def wait_for_memory(report):
    report.wait("the unit has its memory", lambda: guest.samples(PORT).get(CURRENT, 0) > 40 << 20)


def run(report):
    write_unit()
    guest.run("systemctl", "daemon-reload")
    guest.run("systemctl", "start", UNIT)
    wait_for_memory(report)
    wait_and_keep(report, "without", RELOAD=0, MISSING=1, DIFFERS=0)
    write_unit("MemoryLow=32M", "MemoryMax=128M")
    wait_and_keep(report, "not_loaded", RELOAD=1)
    guest.run("systemctl", "daemon-reload")
    guest.run("systemctl", "restart", UNIT)
    wait_for_memory(report)
    wait_and_keep(report, "void", VOIDED=1, RELOAD=0, MISSING=0, DIFFERS=0)
    report.fact("current", (CGROUP / "memory.current").read_text(encoding="ascii").strip())
    guest.run("systemctl", "set-property", "--runtime", SLICE, "MemoryLow=64M")
    wait_and_keep(report, "given", VOIDED=0, OVERCOMMITTED=0)
    (CGROUP / "memory.max").write_text(str(64 << 20), encoding="ascii")
    wait_and_keep(report, "behind_its_back", DIFFERS=1)
    guest.run("systemctl", "set-property", "--runtime", UNIT, "MemoryLow=4G")
    wait_and_keep(report, "too_much", OVERCOMMITTED=1, LOW=4 << 30)
    guest.run("systemctl", "stop", UNIT)
