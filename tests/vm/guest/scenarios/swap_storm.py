"""A unit that swaps to zram in a storm, held below what it needs by MemoryHigh=; told by the exporter of seat_states."""
import pathlib

import guest
from scenarios.seat_states import PORT, python

UNIT = "llama-swaps"
SWAP = ("import itertools; data = bytearray(160 << 20)\n"
        "for page in itertools.cycle(range(0, len(data), 4096)): data[page] ^= 1")
VERDICT = 'apu_verdict{verdict="memory_pressure"}'
SWAPPED = f'apu_seat_memory_swapped_bytes{{seat="{UNIT}"}}'


def start_zram():
    guest.run("modprobe", "zram")
    pathlib.Path("/sys/block/zram0/disksize").write_text(str(256 << 20), encoding="ascii")
    guest.run("mkswap", "/dev/zram0")
    guest.run("swapon", "/dev/zram0")


def run(report):
    start_zram()
    python(UNIT, SWAP, "MemoryHigh=48M")
    report.wait("it swaps", lambda: guest.samples(PORT).get(SWAPPED, 0) > 32 << 20)
    report.wait("the storm is told", lambda: guest.samples(PORT).get(VERDICT) == 1)
    report.metrics("storm", guest.exposition(PORT))
    report.text("triage", guest.http("/triage", PORT) or "")
    guest.run("systemctl", "stop", UNIT)
    guest.run("swapoff", "/dev/zram0")
