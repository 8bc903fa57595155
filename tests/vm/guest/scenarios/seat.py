"""A unit with a real budget that spins, and whose mmap_lock the test module then holds."""
import pathlib
import subprocess

import guest

UNIT = "llama-vm"
PORT = 10152
HELD = f'apu_seat_mmap_lock_held{{seat="{UNIT}"}}'
CURRENT = f'apu_seat_memcg_current_bytes{{seat="{UNIT}"}}'
CGROUP = pathlib.Path(f"/sys/fs/cgroup/system.slice/{UNIT}.service")


def start_exporter():
    """One of its own, since half a minute between probes is long."""
    return subprocess.Popen(["/usr/bin/apu_exporter", f"--web.listen-address=127.0.0.1:{PORT}", "--collector.disable-defaults",
                             "--collector.cgroup", "--collector.cgroup.period=1s", "--collector.mmap_lock",
                             "--collector.mmap_lock.period=3s"])


def run(report):
    guest.run("systemd-run", f"--unit={UNIT}", "--property=MemoryMax=256M", "--property=MemoryLow=32M", "/usr/bin/python3",
              "-c", "data = bytearray(b'x') * (48 << 20)\nwhile True: pass")
    report.wait("the unit has its memory", lambda: int((CGROUP / "memory.current").read_text()) > 48 << 20)
    exporter = start_exporter()
    report.wait("the seat is found", lambda: {CURRENT, HELD} <= guest.samples(PORT).keys())
    report.fact("current", (CGROUP / "memory.current").read_text().strip())
    report.metrics("free", guest.exposition(PORT))
    victim = guest.show(UNIT, "MainPID")
    holder = subprocess.Popen(["sh", "-c", f"echo lock {victim} 600000 > {guest.COMMANDS}"])
    report.wait("the lock is seen to be held", lambda: guest.samples(PORT).get(HELD) == 1)
    report.metrics("held", guest.exposition(PORT))
    guest.kernel("release")
    report.wait("the lock is seen to be free", lambda: guest.samples(PORT).get(HELD) == 0)
    report.wait("the holder ends", lambda: holder.poll() is not None)
    report.metrics("released", guest.exposition(PORT))
    exporter.terminate()
    report.fact("exit", exporter.wait())
    guest.run("systemctl", "stop", UNIT)
