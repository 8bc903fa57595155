"""A unit that spins after its load, and one that sleeps in the kernel, as an exporter with short periods tells.

That exporter is started before, since other scenarios use it, too.
"""
import pathlib
import subprocess

import guest

PORT = 10154
SPINS, BLOCKS = "llama-spins", "llama-blocks"
WAIT_FILE = "/sys/kernel/debug/apu_testmod/wait"
SYSFS = "/opt/apu-vm/sys"  # with a GPU, without which it is not known what nobody is charged for
PERIODS = {"cgroup": "1s", "seat_tasks": "5s", "seats": "2s", "verdict": "2s", "memory": "2s", "pressure": "2s", "swap": "2s",
           "units": "2s", "budgets": "1s", "gpu": "2s", "mmap_lock": "3s"}
# In one line: a unit with more of them, which has them in its description, too, cannot be loaded again.
LOAD_AND_SPIN = ("import time, itertools; data = [time.sleep(0.15) or bytearray(b'x') * (1 << 20) for _ in range(48)]; "
                 "all(itertools.repeat(True))")
HELD = f'apu_seat_mmap_lock_held{{seat="{SPINS}"}}'
CALM = 3  # seconds between looks: each costs CPU time that the spin would have

exporter = None


def start_exporter(report):
    global exporter  # pylint: disable=global-statement
    pathlib.Path(SYSFS, "class/drm/card1/device/mem_info_gtt_used").write_text("0\n", encoding="ascii")
    flags = []
    for name, period in PERIODS.items():
        flags += [f"--collector.{name}", f"--collector.{name}.period={period}"]
    exporter = subprocess.Popen(["/usr/bin/apu_exporter", f"--web.listen-address=127.0.0.1:{PORT}", f"--path.sysfs={SYSFS}",
                                 "--path.cgroupfs=/sys/fs/cgroup", "--collector.disable-defaults", *flags])
    report.wait("the exporter is ready", lambda: guest.http("/-/ready", PORT) is not None)


def python(unit, program, *properties):
    guest.run("systemd-run", f"--unit={unit}", *(f"--property={each}" for each in properties), "/usr/bin/python3", "-c", program)


def is_in(seat, state):
    return guest.samples(PORT).get(f'apu_seat_state{{seat="{seat}",state="{state}"}}') == 1


def keep(report, name):
    report.metrics(name, guest.exposition(PORT))
    report.text(f"{name}_triage", guest.http("/triage", PORT) or "")


def hold_lock(report, pid):
    """The lock that KFD's restore worker holds in a storm of SVM ranges."""
    verdict = 'apu_verdict{verdict="kfd_thrash"}'
    holder = subprocess.Popen(["sh", "-c", f"echo lock {pid} 600000 > {guest.COMMANDS}"])
    report.wait("it thrashes", lambda: is_in(SPINS, "thrashing") and guest.samples(PORT).get(verdict) == 1)
    keep(report, "held")
    guest.kernel("release")  # the lock, and the reader
    report.wait("the holder ends", lambda: holder.poll() is not None)
    report.wait("the lock is seen to be free", lambda: guest.samples(PORT).get(HELD) == 0)
    keep(report, "released")


def run(report):
    guest.run("systemd-run", f"--unit={BLOCKS}", "/bin/cat", WAIT_FILE)
    python(SPINS, LOAD_AND_SPIN, "MemoryMax=256M")
    report.wait("the load is seen", lambda: is_in(SPINS, "loading"))
    report.wait("blocked and spinning", lambda: is_in(BLOCKS, "blocked") and is_in(SPINS, "spinning"), CALM)
    told = f"seat {SPINS} is spinning"
    report.wait("triage tells it, too", lambda: told in (guest.http("/triage", PORT) or ""))
    keep(report, "told")
    report.fact("blocked_state", guest.state_of(guest.show(BLOCKS, "MainPID")))
    hold_lock(report, guest.show(SPINS, "MainPID"))
    exporter.terminate()
    report.fact("exit", exporter.wait())
    guest.run("systemctl", "stop", SPINS)
