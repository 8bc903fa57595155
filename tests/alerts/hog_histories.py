#!/usr/bin/env python3
"""Writes hog_histories.test.yml: what APUKfdRestoreStorm makes of known histories of hogs.

A history says how many hogs there had been at which second. From it follow the lines that the kernel
prints, and from those the two series that the alert reads, as apu_exporter shows them.

    hog_histories.py          write the file
    hog_histories.py --check  exit 1 if the file is not what this program writes
"""

import sys
from dataclasses import dataclass
from math import floor
from pathlib import Path

OUTPUT = Path(__file__).with_name("hog_histories.test.yml")
STEP = 15  # seconds between scrapes, and between evaluations
LEAD = 600  # seconds of scrapes before a history begins
PHASES = (1, 6, 11)  # seconds from a scrape to the history's second 0: none may matter
CPU_WINDOW = 60  # seconds over which the exporter averages the CPU time of kworkers
FOREVER = float("inf")
USERPTR = "amdgpu_amdkfd_restore_userptr_worker"
SVM = "svm_range_restore_work"


@dataclass(frozen=True)
class History:
    """`hogs` is a list of (second, count since boot), with straight lines between."""

    name: str
    hogs: list
    until: int  # the last second shown
    firing: tuple = ()  # seconds at which the alert must fire
    silent: tuple = ()  # seconds at which it must not
    never: bool = False  # it must not fire at any time up to `until`
    function: str = USERPTR
    kworker_cpu: bool = True  # whether the CPU time of kworkers can be read
    unscraped: tuple = ()  # (from, to) seconds without a sample
    since: int = -LEAD  # the first second shown


def steady(rate, seconds):
    return [(0, 0), (seconds, rate * seconds)]


def month_apart():
    """16387 hogs, then as many again in a month. Second 0 is the end of the month."""
    month = 30 * 86400
    return [(-month, 16387), (0, 32771), (month, 65539)]


HISTORIES = [
    History("1/s without end", steady(1, 5400), 5400, firing=(285, 1800, 3600, 5300), silent=(240,)),
    # Between the lines as recorded; after the last one as fast as silence until the end (989 s) allows.
    History(
        "131 hogs in all, then silence; the load never finishes",
        [(0, 0), (0, 7), (1, 11), (3, 19), (271, 35), (292, 67), (503, 131), (989, 252)],
        3600,
        function=SVM,
        firing=(515, 900),
        silent=(450, 2100),
    ),
    History("80/s continuing", steady(80, 1800), 1800, firing=(216, 900, 1700), silent=(170,)),
    History("2/s for 150 s, then quiet (a healthy load)", steady(2, 150), 3600, never=True),
    History("5/s for 195 s, then quiet: one short page", steady(5, 195), 3600, firing=(240,), silent=(190, 1260)),
    History("80/s for 13 s, then quiet", steady(80, 13), 3600, never=True),
    History("67 hogs in the first minute after boot", steady(67 / 60, 60.01), 3600, never=True, since=0),
    History("one doubling a month", month_apart(), 3600, never=True, since=-600, kworker_cpu=False),
    History("0.3/s for 200 s, then quiet: under 67 hogs", steady(0.3, 200), 3600, never=True),
    History("0.15/s without end: below the rate", steady(0.15, 3600), 3600, never=True),
    History("1/s for 20 min, then quiet: ends", steady(1, 1200), 3600, firing=(1250, 2100), silent=(2200,)),
    # Without the CPU time of kworkers only silence can end the rate: these two page without need.
    History(
        "2/s for 150 s, then quiet, kworker CPU time unknown",
        steady(2, 150),
        3600,
        kworker_cpu=False,
        firing=(240, 1400),
        silent=(200, 2400),
    ),
    History(
        "67 hogs in the first minute after boot, kworker CPU time unknown",
        steady(67 / 60, 60.01),
        3600,
        kworker_cpu=False,
        since=0,
        firing=(270,),
        silent=(210, 1380),
    ),
    History(
        "1/s, one failed scrape before the page: late by the time already waited",
        steady(1, 3600),
        3600,
        unscraped=((195, 210),),
        firing=(420,),
        silent=(300, 375),
    ),
    History(
        "1/s, no scrape for 10 min: still the same page",
        steady(1, 3600),
        3600,
        unscraped=((900, 1500),),
        firing=(890, 1000, 1490, 1510, 3500),
    ),
    History(
        "1/s, no scrape for 30 min: ends, and comes again",
        steady(1, 5400),
        5400,
        unscraped=((900, 2700),),
        firing=(890, 1750, 2920, 5300),
        silent=(1850, 2660, 2850),
    ),
    History(
        "1/s, the exporter restarts and reads the log again",
        steady(1, 3600),
        3600,
        unscraped=((900, 945),),
        firing=(890, 920, 950, 3500),
    ),
    History(
        "1/s, then a reboot: ends",
        steady(1, 1800),
        5400,
        unscraped=((1800, FOREVER),),
        firing=(1790, 2650),
        silent=(2750, 5300),
    ),
]


def triggers():
    """The counts at which the kernel prints, at its default threshold of 4."""
    count, step = 4, 1
    while True:
        yield count
        count, step = 3 + 2 * step, 2 * step


def count_at(hogs, second):
    if second <= hogs[0][0]:
        return hogs[0][1]
    for (t0, c0), (t1, c1) in zip(hogs, hogs[1:]):
        if second < t1:
            return c0 + (c1 - c0) * (second - t0) / (t1 - t0)
    return hogs[-1][1]


def second_of(hogs, count):
    """When the count was reached; None if that was before the history, or never."""
    if count < hogs[0][1]:
        return None
    for (t0, c0), (t1, c1) in zip(hogs, hogs[1:]):
        if count <= c1:
            return t0 + (t1 - t0) * (count - c0) / (c1 - c0)
    return None


def reports(hogs):
    """The lines of the kernel: (second, count)."""
    lines = []
    for count in triggers():
        if count > hogs[-1][1]:
            return lines
        second = second_of(hogs, count)
        if second is not None:
            lines.append((second, count))


def rate_between_reports(seen):
    """Hogs a second up to the last line, from the newest one stamped with an earlier whole second."""
    last_second, last_count = seen[-1]
    for second, count in reversed(seen):
        if floor(second) < floor(last_second):
            return (last_count - count) / (last_second - second)
    return None


def events_per_second(history, lines, now):
    seen = [line for line in lines if line[0] <= now]
    rate = rate_between_reports(seen) if seen else None
    if rate is None:
        return None
    second, count = seen[-1]
    if now > second:
        upper_bound = 2 * count - 3
        rate = min(rate, (upper_bound - 1 - count) / (now - second))
    if history.kworker_cpu:
        # One hog burns at least the threshold, here exactly that.
        recent = count_at(history.hogs, now) - count_at(history.hogs, now - CPU_WINDOW)
        rate = min(rate, recent / CPU_WINDOW)
    return rate


def events_total(lines, now):
    return max((count for second, count in lines if second <= now), default=None)


def is_scraped(history, second):
    return not any(start <= second < end for start, end in history.unscraped)


def samples(history, phase, value_at):
    """The values of one series, one for each scrape: numbers, "_" (none) and "stale"."""
    shown = []
    for second in scrape_seconds(history, phase):
        value = value_at(second) if is_scraped(history, second) else None
        if value is not None:
            shown.append(f"{value:.4g}" if value < 10 else f"{value:.10g}")
        else:
            # Prometheus marks a series stale at the first scrape that lacks it.
            shown.append("stale" if shown and shown[-1] not in ("_", "stale") else "_")
    return shown


def scrape_seconds(history, phase):
    return range(history.since - phase, history.until + STEP, STEP)


def compress(values):
    """The notation of promtool: 7+0x3 is 7 and three more of it, _x3 is three times nothing."""
    runs = []
    for value in values:
        if runs and runs[-1][0] == value:
            runs[-1][1] += 1
        else:
            runs.append([value, 1])
    return " ".join(run_notation(value, length) for value, length in runs)


def run_notation(value, length):
    if value == "stale":
        return value
    return f"_x{length}" if value == "_" else f"{value}+0x{length - 1}"


def series_lines(history, phase):
    lines = reports(history.hogs)
    labels = f'{{instance="apu1:10151",job="apu",function="{history.function}",module="amdgpu"}}'
    values = {
        "apu_workqueue_hog_events_total": samples(history, phase, lambda s: events_total(lines, s)),
        "apu_workqueue_hog_events_per_second": samples(history, phase, lambda s: events_per_second(history, lines, s)),
    }
    for name, shown in values.items():
        yield f"      - series: '{name}{labels}'"
        yield f"        values: '{compress(shown)}'"


def check_lines(history, phase):
    firing = 'ALERTS{alertname="APUKfdRestoreStorm",alertstate="firing"}'
    checks = [(second, 1) for second in history.firing] + [(second, 0) for second in history.silent]
    for second, value in sorted(checks):
        yield from expression_lines(f"count({firing}) or vector(0)", second - history.since + phase, value)
    if history.never:
        shown = history.until - history.since
        yield from expression_lines(f"count(count_over_time({firing}[{2 * shown}s])) or vector(0)", shown, 0)


def expression_lines(expression, eval_time, value):
    yield f"      - expr: {expression}"
    yield f"        eval_time: {eval_time}s"
    yield f"        exp_samples: [{{labels: '{{}}', value: {value}}}]"


def test_lines(history, phase):
    yield f'  - name: "{history.name}; {phase} s after a scrape"'
    yield f"    interval: {STEP}s"
    yield "    input_series:"
    yield from series_lines(history, phase)
    yield "    promql_expr_test:"
    yield from check_lines(history, phase)


def render():
    lines = ["# Written by hog_histories.py; change that, and run it.", "rule_files: [../../alerts/apu.rules.yml]"]
    lines += [f"evaluation_interval: {STEP}s", "tests:"]
    for history in HISTORIES:
        for phase in PHASES:
            lines += test_lines(history, phase)
    return "\n".join(lines) + "\n"


def main(arguments):
    if arguments not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    if not arguments:
        OUTPUT.write_text(render())
        return 0
    if OUTPUT.exists() and OUTPUT.read_text() == render():
        return 0
    print(f"{OUTPUT.name} is not current: run {Path(__file__).name}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
