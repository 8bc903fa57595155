"""A unit that wants more than its MemoryMax= allows, and no swap to put it."""
import time

import guest

UNIT = "apu-vm-greedy"
KILLED = f'apu_oom_kills_total{{scope="memcg",unit="{UNIT}"}}'


def oom_kills():
    with open("/proc/vmstat", encoding="ascii") as file:
        return int(dict(line.split() for line in file)["oom_kill"])


def run(report):
    report.fact("kills_before", oom_kills())
    report.fact("began", time.time())
    guest.run("systemd-run", f"--unit={UNIT}", "--property=MemoryMax=32M", "--property=MemorySwapMax=0",
              "/usr/bin/python3", "-c", "data = bytearray(b'x') * (256 << 20)")
    report.wait("the unit failed", lambda: guest.show(UNIT, "ActiveState") == "failed")
    report.fact("ended", time.time())
    report.fact("result", guest.show(UNIT, "Result"))
    report.fact("kills_after", oom_kills())
    report.wait("the kill counts", lambda: KILLED in guest.samples())
    guest.wait_passes(report)
    report.metrics("counted", guest.exposition())
