#!/usr/bin/python3
"""Measures what the exporter costs, each thing beside its floor in the same run, and says whether the targets hold.
Machines differ and are noisy: what counts are the ratios, medians of interleaved repetitions.

    tests/bench/run.py [--build DIRECTORY] [--repetitions N] [--storm-seconds N]
"""
import argparse
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))
import journal  # noqa: E402

ENTRIES = 200_000
KERNEL_SHARE = 4  # every so manieth entry is an application's
ALONE = ("--collector.disable-defaults", "--collector.kernel_log")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--repetitions", type=int, default=9)
    parser.add_argument("--storm-seconds", type=int, default=60)
    return parser.parse_args()


class Report:
    def __init__(self):
        self.failed = False

    def row(self, what, value, target, holds):
        self.failed |= not holds
        print(f"{what:<58} {value:>16}   {target:<26} {'ok' if holds else 'MISSED'}", flush=True)


def cpu_and_memory(*command):
    """CPU seconds of a command and of those it waits for, and its peak of resident memory in MiB."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        subprocess.run(list(map(str, command)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        os.write(write, json.dumps((usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        result = json.loads(pipe.read())
    os.waitpid(child, 0)
    return result


def micro_benchmarks(options, report):
    done = subprocess.run([options.build / "tests/kernel_log_bench", "--benchmark_format=json",
                           f"--benchmark_repetitions={options.repetitions}", "--benchmark_min_time=0.05",
                           "--benchmark_enable_random_interleaving=true", "--benchmark_filter=-StormAsItComes"],
                          stdout=subprocess.PIPE, check=True)
    runs = {}
    for run in json.loads(done.stdout)["benchmarks"]:
        if run["run_type"] == "iteration":
            runs.setdefault(run["run_name"], []).append(run["items_per_second"] / 1e6)
    speed = {name: statistics.median(values) for name, values in runs.items()}
    floor = speed["BM_TextFloor"]
    for name, what in (("BM_TextDmesg", "analyze, dmesg text"), ("BM_TextSyslog", "analyze, syslog text")):
        report.row(what, f"{speed[name]:.1f} M lines/s", ">= 10 M a CPU second", speed[name] >= 10)
        report.row(f"  beside finding the ends of the lines ({floor:.0f} M/s)", f"{floor / speed[name]:.1f} x", "<= 6 x",
                   floor <= 6 * speed[name])
    report.row("/dev/kmsg records parsed and counted", f"{speed['BM_KmsgStorm']:.1f} M records/s", ">= 1 M", speed["BM_KmsgStorm"] >= 1)


def storm(options, report):
    environment = {**os.environ, "APU_STORM_SECONDS": str(options.storm_seconds)}
    done = subprocess.run([options.build / "tests/kernel_log_bench", "--benchmark_format=json",
                           "--benchmark_filter=StormAsItComes"], stdout=subprocess.PIPE, env=environment, check=True)
    run = json.loads(done.stdout)["benchmarks"][0]
    share = run["percent_of_core"]
    report.row(f"a storm of 10,000 records/s for {options.storm_seconds} s", f"{share:.2f} % of a core", "< 5 %", share < 5)
    report.row("  losses in it that were not counted", f"{run['uncounted_losses']:.0f} of {run['records']:.0f}", "0",
               run["uncounted_losses"] == 0 and run["records"] >= 9_900 * options.storm_seconds)


def write_journal(folder):
    """A journal of one boot, a quarter of it applications' lines."""
    for start in range(0, ENTRIES, 50_000):
        entries = []
        for number in range(start, start + 50_000):
            at = 1 + number * 0.01
            if number % KERNEL_SHARE == 0:
                entries.append(journal.entry(f"request {number} took 17 ms", at, "stdout", SYSLOG_IDENTIFIER="llama-server",
                                             _SYSTEMD_UNIT="llama.service"))
            elif number % 1000 == 1:
                entries.append(journal.entry("amdgpu: SVM mapping failed, exceeds resident system memory limit", at))
            else:
                entries.append(journal.entry(f"usb 1-1: new high-speed USB device number {number} using xhci_hcd", at))
        journal.append(folder / "system.journal", *entries)


def journal_benchmark(options, report):
    if not journal.is_there():
        print("systemd-journal-remote is not installed: the journal is not measured")
        return
    with tempfile.TemporaryDirectory(prefix="apu-bench-") as directory:
        folder = pathlib.Path(directory) / "journal"
        write_journal(folder)
        host = journal.make_host(directory)
        floor_command = (options.build / "tests/journal_floor", folder, journal.BOOT)
        command = (options.build / "apu_exporter", "--once", f"--path.rootfs={host}", f"--kernel-log={folder}", *ALONE)
        floor, ours = [], []
        for _ in range(options.repetitions):
            floor.append(cpu_and_memory(*floor_command))
            ours.append(cpu_and_memory(*command))
    ratios = [mine[0] / theirs[0] for mine, theirs in zip(ours, floor)]
    ratio = statistics.median(ratios)
    seconds = statistics.median(mine[0] for mine in ours)
    report.row(f"the journal, {ENTRIES} entries, exporter and helper ({seconds:.2f} s)", f"{ratio:.2f} x",
               "<= 1.15 x libsystemd", ratio <= 1.15)
    peak = max(mine[1] for mine in ours)
    report.row(f"  peak memory (libsystemd alone: {max(theirs[1] for theirs in floor):.0f} MiB)", f"{peak:.0f} MiB", "<= 96 MiB", peak <= 96)


def main():
    options = parse_arguments()
    report = Report()
    micro_benchmarks(options, report)
    journal_benchmark(options, report)
    storm(options, report)
    sys.exit(1 if report.failed else 0)


if __name__ == "__main__":
    main()
