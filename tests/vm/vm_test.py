#!/usr/bin/python3
"""The exporter as a service of a whole system with a real kernel and PID 1, in an emulated machine.

What is tested nowhere else: lines that the kernel itself printed, a memory cgroup's OOM kill, and a
stop that the service manager ended by SIGKILL. README.md says how it works.
"""
import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import machine  # noqa: E402

RUN = None  # the VM's run, which all tests read

RESTORE = 'function="amdgpu_amdkfd_restore_userptr_worker",module="amdgpu"'
SLACK = 5  # seconds between the guest's clock and the time that a stamp of its log amounts to


def kernel_event(event, gpu=""):
    return f'apu_kernel_events_total{{event="{event}",gpu="{gpu}"}}'


HOGS = f"apu_workqueue_hog_events_total{{{RESTORE}}}"
KERNEL_COUNTS = {
    HOGS: 67,
    f"apu_workqueue_hog_events_upper_bound{{{RESTORE}}}": 131,
    f"apu_workqueue_hog_reports_total{{{RESTORE}}}": 7,
    kernel_event("svm_mapping_failed"): 3,
    kernel_event("kfd_resume_failed"): 1,
    kernel_event("mes_timeout", "0000:c5:00.0"): 2,
}
OOM_COUNTS = {
    'apu_oom_events_total{scope="memcg"}': 1,
    'apu_oom_kills_total{scope="memcg",unit="apu-vm-greedy"}': 1,
}
STOP_COUNTS = {
    'apu_unit_sigkills_total{unit="apu-vm-stubborn"}': 1,
    'apu_unit_stop_timeouts_total{unit="apu-vm-stubborn"}': 1,
}
COUNTERS = ("apu_workqueue_hog_", "apu_kernel_events_total", "apu_oom_", "apu_unit_")


def counters(samples):
    return {series: value for series, value in samples.items()
            if series.startswith(COUNTERS) and "_total" in series}


def stamps(samples):
    return {series: value for series, value in samples.items()
            if series.startswith(COUNTERS) and "_timestamp_seconds" in series}


def facility(record):
    return int(record.partition(",")[0]) >> 3


class Scenario:
    """What the tests of a scenario share; mixed in, as unittest would run it by itself."""
    name = None
    maxDiff = None

    def setUp(self):
        self.block = RUN.results[self.name]
        self.assertEqual(self.block.errors, [])

    def test_it_ran_and_nothing_came_late(self):
        self.assertIn(self.name, RUN.results.blocks)
        self.assertEqual(self.block.late, [])

    def check_samples(self, name, expected):
        samples = self.block.metrics[name]
        self.assertEqual({series: samples.get(series) for series in expected}, expected)

    def check_same_stamps(self, one, other):
        one, other = stamps(self.block.metrics[one]), stamps(self.block.metrics[other])
        self.assertEqual(set(one), set(other))
        for series, value in one.items():
            self.assertAlmostEqual(value, other[series], delta=1, msg=series)

    def check_stamp(self, name, series):
        """The time of what happened between the facts "began" and "ended"."""
        value = self.block.metrics[name][series]
        self.assertGreater(value, float(self.block.facts["began"]) - SLACK)
        self.assertLess(value, float(self.block.facts["ended"]) + SLACK)


class Start(Scenario, unittest.TestCase):
    name = "start"

    def test_the_service_may_read_kernel_log_and_journal(self):
        self.assertEqual(self.block.facts["dmesg_restrict"], "1")  # so a capability is needed
        self.check_samples("started", {'apu_source_available{source="kmsg"}': 1,
                                       'apu_source_available{source="journal"}': 1,
                                       'apu_source_available{source="dbus"}': 1,
                                       "apu_kernel_log_covers_boot": 1})


class KernelLines(Scenario, unittest.TestCase):
    name = "kernel_lines"

    def test_they_were_written_by_the_kernel_and_by_imitators(self):
        records = re.findall(r"^\d+,.*$", self.block.texts["kmsg"], re.MULTILINE)
        self.assertEqual(sum(facility(record) == 0 for record in records), 7 + 3 + 1 + 2 + 1)
        self.assertEqual(sum(facility(record) == 1 for record in records), 2 * 5)
        self.assertEqual(self.block.texts["kmsg"].count(" SUBSYSTEM=pci"), 2)
        self.assertEqual(self.block.facts["forged_in_journal"], str(3 * 5))

    def test_those_of_the_kernel_count_exactly(self):
        self.check_samples("counted", KERNEL_COUNTS)

    def test_those_of_imitators_do_not_count(self):
        samples = self.block.metrics["counted"]
        self.assertFalse([series for series in samples if "forged_worker" in series])
        events = {series: value for series, value in counters(samples).items()
                  if series.startswith("apu_kernel_events_total") and value}
        self.assertEqual(set(events), {series for series in KERNEL_COUNTS if "kernel_events" in series})

    def test_the_stamp_is_the_time_of_printing(self):
        self.check_stamp("counted", f"apu_workqueue_hog_last_report_timestamp_seconds{{{RESTORE}}}")


class OomKill(Scenario, unittest.TestCase):
    name = "oom_kill"

    def test_the_kernel_killed_once_in_the_unit(self):
        self.assertEqual(self.block.facts["result"], "oom-kill")
        self.assertEqual((self.block.facts["kills_before"], self.block.facts["kills_after"]), ("0", "1"))

    def test_it_counts_for_the_unit(self):
        self.check_samples("counted", OOM_COUNTS)
        self.check_stamp("counted", 'apu_oom_kill_last_timestamp_seconds{scope="memcg",unit="apu-vm-greedy"}')


class StopTimeout(Scenario, unittest.TestCase):
    name = "stop_timeout"

    def test_pid_1_killed_it_and_others_say_the_like(self):
        said = self.block.texts["said_by_pid_1"]
        self.assertEqual(len(re.findall("with signal SIGKILL", said)), 1, said)
        self.assertEqual(len(re.findall("State 'stop-sigterm' timed out. Killing.", said)), 1, said)
        forged = re.findall(r"^apu-vm-innocent\.service: ", self.block.texts["forged"], re.MULTILINE)
        self.assertEqual(len(forged), 4)

    def test_timeout_and_kill_count_for_the_unit(self):
        self.check_samples("counted", STOP_COUNTS)
        for event in ("sigkill", "stop_timeout"):
            self.check_stamp("counted", f'apu_unit_{event}_last_timestamp_seconds{{unit="apu-vm-stubborn"}}')

    def test_the_words_of_others_do_not_count(self):
        for samples in self.block.metrics.values():
            self.assertFalse([series for series in samples if "innocent" in series])

    def test_the_journal_alone_tells_the_same(self):
        self.assertEqual(self.block.facts["once_exit"], "0", self.block.texts["once_stderr"])
        self.check_samples("journal", KERNEL_COUNTS | OOM_COUNTS | STOP_COUNTS)
        self.assertEqual(counters(self.block.metrics["journal"]), counters(self.block.metrics["counted"]))
        self.check_same_stamps("journal", "counted")


class Restart(Scenario, unittest.TestCase):
    name = "restart"

    def check_same(self, name):
        before, after = self.block.metrics["before"], self.block.metrics[name]
        self.assertEqual(before[HOGS], KERNEL_COUNTS[HOGS])
        self.assertEqual(counters(after), counters(before))
        self.check_same_stamps(name, "before")

    def test_after_a_restart_all_counters_come_back(self):
        self.check_same("restarted")

    def test_after_a_sigkill_all_counters_come_back(self):
        self.check_same("killed")


class KernelLocks(Scenario, unittest.TestCase):
    name = "kernel_locks"

    def test_readers_hang_uninterruptibly_until_released(self):
        facts = self.block.facts
        self.assertEqual((facts["wait_state"], facts["wait_exit"]), ("D", "0"))
        self.assertEqual((facts["lock_state"], facts["lock_exit"], facts["holder_exit"]), ("D", "0", "0"))


class Units(Scenario, unittest.TestCase):
    name = "units"

    @staticmethod
    def of(name, unit, more="", seat=None):
        return f'apu_seat_unit_{name}{{seat="{seat or unit}",unit="{unit}"{more}}}'

    def test_they_are_as_their_managers_have_them(self):
        restarted, left, of_user = "llama-restarted", "llama-left", "llama-of-user"
        self.check_samples("seen", {
            self.of("restarts_total", restarted): 1,
            self.of("active_state", restarted, ',state="active"'): 1,
            self.of("stop_timeout_seconds", restarted): 77,
            self.of("stop_timeout_short", restarted): 1,
            self.of("pulls_in_seat", restarted): 1,
            self.of("need_daemon_reload", restarted): 0,
            self.of("inactive_but_populated", restarted): 0,
            self.of("memory_limit_bytes", restarted, ',limit="low"'): 16 << 20,
            self.of("memory_limit_bytes", restarted, ',limit="max"'): float("inf"),
            self.of("memory_limit_differs", restarted, ',limit="low"'): 0,
            self.of("memory_limit_differs", restarted, ',limit="max"'): 0,
            self.of("active_state", left, ',state="failed"'): 1,
            self.of("inactive_but_populated", left): 1,
            self.of("pulls_in_seat", left): 0,
            self.of("stop_timeout_seconds", of_user, seat=f"4242/{of_user}"): 33,
            self.of("active_state", of_user, ',state="active"', f"4242/{of_user}"): 1,
            'apu_source_available{source="dbus"}': 1,
            'apu_source_available{source="dbus_user"}': 1,
            'apu_parse_errors_total{source="dbus"}': 0,
        })
        self.assertEqual(self.block.facts["exit"], "0")

    def test_the_service_sees_those_of_pid_1(self):
        self.check_samples("service", {self.of("restarts_total", "llama-restarted"): 1,
                                       'apu_source_available{source="dbus"}': 1,
                                       'apu_source_available{source="dbus_user"}': 0})


def state_of(samples, seat):
    """Of a seat; None before it has one."""
    found = [series for series, value in samples.items()
             if value == 1 and series.startswith(f'apu_seat_state{{seat="{seat}",')]
    return re.search('state="(.*)"', found[0])[1] if found else None


class Budgets(Scenario, unittest.TestCase):
    name = "budgets"
    UNIT = "llama-budget"

    def of_unit(self, name, limit=None):
        more = f',limit="{limit}"' if limit else ""
        return f'apu_seat_unit_{name}{{seat="{self.UNIT}",unit="{self.UNIT}"{more}}}'

    def of_seat(self, name, limit=None):
        more = f',limit="{limit}"' if limit else ""
        return f'apu_seat_{name}{{seat="{self.UNIT}"{more}}}'

    def test_a_budget_that_is_written_and_not_loaded(self):
        self.check_samples("without", {self.of_unit("need_daemon_reload"): 0, self.of_seat("budget_missing"): 1})
        self.check_samples("not_loaded", {
            self.of_unit("need_daemon_reload"): 1,
            self.of_seat("budget_missing"): 1,
            self.of_unit("memory_limit_bytes", "low"): 0,
            self.of_unit("memory_limit_bytes", "max"): float("inf"),
            self.of_unit("memory_limit_differs", "max"): 0,  # neither has it
        })

    def test_one_that_is_void_by_the_slice_above(self):
        loaded = {self.of_unit("need_daemon_reload"): 0, self.of_seat("budget_missing"): 0,
                  self.of_unit("memory_limit_bytes", "low"): 32 << 20, self.of_unit("memory_limit_bytes", "max"): 128 << 20,
                  self.of_unit("memory_limit_differs", "low"): 0, self.of_unit("memory_limit_differs", "max"): 0}
        self.check_samples("void", loaded | {self.of_seat("protection_voided", "low"): 1,
                                             self.of_seat("memcg_protection_bytes", "low"): 0,
                                             self.of_seat("memcg_limit_bytes", "low"): 32 << 20,
                                             self.of_seat("memcg_limit_bytes", "max"): 128 << 20})
        self.assertAlmostEqual(self.block.metrics["void"][self.of_seat("memcg_current_bytes")],
                               int(self.block.facts["current"]), delta=8 << 20)
        self.check_samples("given", loaded | {self.of_seat("protection_voided", "low"): 0})
        given = self.block.metrics["given"][self.of_seat("memcg_protection_bytes", "low")]
        self.assertGreaterEqual(given, 32 << 20)

    def test_one_that_was_changed_behind_the_managers_back(self):
        self.check_samples("behind_its_back", {
            self.of_unit("memory_limit_bytes", "max"): 128 << 20,
            self.of_seat("memcg_limit_bytes", "max"): 64 << 20,
            self.of_unit("memory_limit_differs", "max"): 1,
            self.of_unit("memory_limit_differs", "low"): 0,
        })

    def test_more_than_the_host_has(self):
        self.check_samples("given", {"apu_budget_overcommitted": 0})
        self.check_samples("too_much", {"apu_budget_overcommitted": 1, self.of_unit("memory_limit_bytes", "low"): 4 << 30})
        self.assertGreaterEqual(self.block.metrics["too_much"]["apu_budget_protection_bytes"], 4 << 30)


class SwapStorm(Scenario, unittest.TestCase):
    name = "swap_storm"
    SEAT = "llama-swaps"

    def test_the_seat_swaps_to_zram_below_its_limit(self):
        samples = self.block.metrics["storm"]
        self.check_samples("storm", {f'apu_seat_budget_below_need{{seat="{self.SEAT}",limit="high"}}': 1,
                                     f'apu_seat_memcg_limit_bytes{{seat="{self.SEAT}",limit="high"}}': 48 << 20})
        at_least = {f'apu_seat_memory_swapped_bytes{{seat="{self.SEAT}"}}': 32 << 20,
                    f'apu_seat_memcg_swap_bytes{{seat="{self.SEAT}"}}': 32 << 20,
                    f'apu_seat_memcg_events_total{{seat="{self.SEAT}",event="high"}}': 100,
                    f'apu_seat_page_faults_total{{seat="{self.SEAT}",kind="major"}}': 100,
                    f'apu_seat_pressure_stalled_seconds_total{{seat="{self.SEAT}",resource="memory",kind="some"}}': 0.5,
                    "apu_swap_out_bytes_total": 64 << 20, "apu_swap_in_bytes_total": 16 << 20}
        for series, least in at_least.items():
            self.assertGreaterEqual(samples.get(series, -1), least, series)

    def test_the_host_is_under_memory_pressure_and_no_seat_thrashes(self):
        self.assertIn("MEMORY PRESSURE", self.block.texts["triage"].splitlines()[0])
        samples = self.block.metrics["storm"]
        self.assertNotIn(state_of(samples, self.SEAT), ("thrashing", "spinning", "blocked"))


class SeatStates(Scenario, unittest.TestCase):
    name = "seat_states"
    SPINS, BLOCKS = "llama-spins", "llama-blocks"
    HELD = 'apu_seat_mmap_lock_held{seat="llama-spins"}'

    def test_its_exporter_started(self):
        block = RUN.results["seat_exporter"]
        self.assertEqual((block.errors, block.late), ([], []))

    def test_a_spin_after_a_load(self):
        samples = self.block.metrics["told"]
        self.assertEqual(state_of(samples, self.SPINS), "spinning")
        spent = f'apu_seat_state_seconds_total{{seat="{self.SPINS}",state="%s"}}'
        self.assertGreater(samples[spent % "loading"], 1)
        for state in ("thrashing", "blocked", "io_starved"):
            self.assertEqual(samples[spent % state], 0, state)
        self.assertIn(f"seat {self.SPINS} is spinning", self.block.texts["told_triage"])

    def test_a_reader_that_the_kernel_does_not_wake(self):
        self.assertEqual(self.block.facts["blocked_state"], "D")
        samples = self.block.metrics["told"]
        self.assertEqual(state_of(samples, self.BLOCKS), "blocked")
        self.check_samples("told", {f'apu_seat_blocked_threads{{seat="{self.BLOCKS}",wait="other"}}': 1,
                                    f'apu_seat_threads{{seat="{self.BLOCKS}",state="disk_sleep"}}': 1})

    def test_a_spin_whose_mmap_lock_is_held_thrashes(self):
        self.assertEqual(state_of(self.block.metrics["held"], self.SPINS), "thrashing")
        self.check_samples("held", {'apu_verdict{verdict="kfd_thrash"}': 1, self.HELD: 1})
        self.assertIn("mmap_lock held", self.block.texts["held_triage"])
        self.check_samples("told", {self.HELD: 0})
        self.check_samples("released", {self.HELD: 0})
        self.assertEqual(self.block.facts["exit"], "0")


def main():
    global RUN
    RUN = machine.Run()
    print(f"the VM ran for {RUN.seconds:.0f} s", file=sys.stderr)
    program = unittest.main(exit=False)
    if not RUN.results.is_done:
        print("the guest did not report to its end", file=sys.stderr)
    if not RUN.results.is_done or not program.result.wasSuccessful():
        print(RUN.evidence(), file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
