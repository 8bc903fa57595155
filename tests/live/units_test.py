#!/usr/bin/python3
"""Collector units against a real D-Bus daemon: what it asks, and managers and buses that hang or talk nonsense."""
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import exporter as apu  # noqa: E402

FAKE = apu.ROOT / "tests/support/fake_systemd.py"
ALONE = ("--collector.disable-defaults", "--collector.units", "--collector.units.period=200ms",
         "--collector.pressure", "--collector.pressure.period=200ms", "--collector.memory",
         "--collector.memory.period=200ms")
PASSED = 'apu_collector_passes_total{collector="units",outcome="ok"}'
RESTARTS = 'apu_seat_unit_restarts_total{seat="llama-a",unit="llama-a"}'
AVAILABLE = 'apu_source_available{source="dbus"}'
INFINITY = (1 << 64) - 1

CONFIG = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>session</type>
  <listen>unix:path={folder}/bus</listen>
  <servicedir>{folder}/services</servicedir>
  <policy context="default">
    <allow user="*"/>
    <allow own="*"/>
    <allow send_type="method_call"/>
    <allow send_requested_reply="true" send_type="method_return"/>
    <allow send_requested_reply="true" send_type="error"/>
    <allow receive_type="method_call"/>
    <allow receive_type="method_return"/>
    <allow receive_type="error"/>
    <allow receive_type="signal"/>
  </policy>
</busconfig>
"""
ACTIVATION = "[D-BUS Service]\nName=org.freedesktop.systemd1\nExec=/usr/bin/touch {folder}/activated\n"

SECRET = "kept-to-itself"

STATE = {
    "mode": "answer",
    "units": {
        "llama-a.service": {"load": "loaded", "active": "active", "sub": "running"},
        "vLLM\\x2db.service": {"load": "loaded", "active": "failed", "sub": "failed"},
        "sshd.service": {"load": "loaded", "active": "active", "sub": "running"},
        "llama-named.service": {"load": "not-found", "active": "inactive", "sub": "dead"},
    },
    "files": {"/etc/systemd/system/llama-a.service": "enabled", "/etc/systemd/system/whisper.service": "disabled"},
    "properties": {
        "llama-a.service": {
            "LoadState": "loaded", "ActiveState": "active", "SubState": "running", "UnitFileState": "enabled",
            "NRestarts": 7, "TimeoutStopUSec": 90000000, "NeedDaemonReload": True, "MainPID": 0,
            "Wants": ["vLLM\\x2db.service"], "Requires": [], "BindsTo": [], "ActiveEnterTimestamp": 1800000000000000,
            "MemoryMin": 0, "MemoryLow": 1 << 30, "MemoryHigh": INFINITY, "MemoryMax": 1 << 40,
            "MemorySwapMax": INFINITY, "LimitMEMLOCK": INFINITY,
            "ExecStart": ["/usr/bin/llama-server", "--api-key", SECRET, "--port", "8080"]},
        "vLLM\\x2db.service": {"TimeoutStopUSec": INFINITY, "Wants": [], "Requires": [], "BindsTo": []},
    },
}


def need_bindings():
    """The fake manager's."""
    try:
        import dbus  # noqa: F401
        import gi  # noqa: F401
    except ImportError as error:
        apu.cannot_run(f"python3-dbus and python3-gi are needed ({error})")


def unavailable(reason):
    return f'apu_source_unavailable_info{{source="dbus",reason="{reason}"}}'


class Bus:
    """A bus with a fake manager on it."""

    def __init__(self):
        self.temporary = tempfile.TemporaryDirectory(prefix="apu-test-")
        self.folder = pathlib.Path(self.temporary.name)
        (self.folder / "services").mkdir()
        (self.folder / "bus.conf").write_text(CONFIG.format(folder=self.folder))
        (self.folder / "services/org.freedesktop.systemd1.service").write_text(
            ACTIVATION.format(folder=self.folder))
        (self.folder / "calls").touch()
        self.daemon = self.manager = None
        self.state = json.loads(json.dumps(STATE))
        self.write()

    @property
    def address(self):
        return f"unix:path={self.folder}/bus"

    def write(self, **changes):
        self.state.update(changes)
        new = self.folder / "state.new"
        new.write_text(json.dumps(self.state))
        os.replace(new, self.folder / "state")

    def calls(self):
        return [line.split() for line in (self.folder / "calls").read_text().splitlines()]

    def start_daemon(self):
        (self.folder / "bus").unlink(missing_ok=True)
        self.daemon = subprocess.Popen(["dbus-daemon", f"--config-file={self.folder}/bus.conf", "--nofork",
                                        "--nopidfile", "--nosyslog"], stderr=subprocess.DEVNULL)
        apu.wait_for((self.folder / "bus").exists, "the bus listens")

    def start_manager(self):
        self.manager = subprocess.Popen([sys.executable, "-B", str(FAKE), self.address,
                                         str(self.folder / "state"), str(self.folder / "calls")])

    def end(self, process):
        if process is not None and process.poll() is None:
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()

    def __enter__(self):
        self.start_daemon()
        self.start_manager()
        return self

    def __exit__(self, *_):
        self.end(self.manager)
        self.end(self.daemon)
        self.temporary.cleanup()


@contextlib.contextmanager
def exporter_on(address, *more):
    os.environ["DBUS_SYSTEM_BUS_ADDRESS"] = address
    try:
        with apu.Exporter(*ALONE, *more) as exporter:
            yield exporter
    finally:
        del os.environ["DBUS_SYSTEM_BUS_ADDRESS"]


class Answers(unittest.TestCase):
    def test_units_are_what_the_manager_says(self):
        with Bus() as bus, exporter_on(bus.address) as exporter:
            exporter.wait_sample(RESTARTS, lambda value: value == 7)
            samples = exporter.samples()
            labels = 'seat="llama-a",unit="llama-a"'
            for name, value in {
                    "active_state{%s,state=\"active\"}": 1, "active_state{%s,state=\"failed\"}": 0,
                    "active_timestamp_seconds{%s}": 1.8e9, "enabled{%s}": 1, "stop_timeout_seconds{%s}": 90,
                    "stop_timeout_short{%s}": 1, "need_daemon_reload{%s}": 1, "pulls_in_seat{%s}": 1,
                    "memory_limit_bytes{%s,limit=\"low\"}": 1 << 30, "memory_limit_bytes{%s,limit=\"max\"}": 1 << 40,
                    "memory_limit_bytes{%s,limit=\"swap_max\"}": float("inf")}.items():
                self.assertEqual(samples.get("apu_seat_unit_" + name % labels), value, name)
            other = 'seat="vLLM-b",unit="vLLM-b"'
            self.assertEqual(samples[f'apu_seat_unit_active_state{{{other},state="failed"}}'], 1)
            self.assertEqual(samples[f"apu_seat_unit_stop_timeout_seconds{{{other}}}"], float("inf"))
            self.assertEqual(samples[f"apu_seat_unit_pulls_in_seat{{{other}}}"], 0)
            self.assertNotIn(f"apu_seat_unit_restarts_total{{{other}}}", samples)
            self.assertEqual(samples['apu_seat_unit_enabled{seat="whisper",unit="whisper"}'], 0)
            self.assertFalse([series for series in samples if "sshd" in series or "llama-named" in series])
            self.assertEqual(samples[AVAILABLE], 1)
            self.assertEqual(samples['apu_parse_errors_total{source="dbus"}'], 0)

    def test_of_a_command_no_secret_is_kept(self):
        with Bus() as bus, exporter_on(bus.address, "--collector.seat_ports", "--log.level=debug") as exporter:
            exporter.wait_sample(PASSED, lambda value: value >= 2)
            self.assertEqual(exporter.samples()['apu_parse_errors_total{source="dbus"}'], 0)
            for page in ("/metrics", "/triage", "/triage?format=json", "/"):
                self.assertNotIn(SECRET, exporter.get(page).text)
            exporter.stop()
            self.assertNotIn(SECRET, "".join(exporter.log))

    def test_it_asks_for_nothing_that_changes_anything(self):
        with Bus() as bus, exporter_on(bus.address) as exporter:
            exporter.wait_sample(PASSED, lambda value: value >= 12)
            calls = bus.calls()
            self.assertEqual({call[2] for call in calls}, {"ListUnitsByPatterns", "ListUnitFilesByPatterns", "Get"})
            self.assertEqual({call[1] for call in calls}, {"False"})  # no activation
            self.assertEqual(len({call[0] for call in calls}), 1)  # one connection, from pass to pass
            self.assertNotIn("Environment", {call[3] for call in calls if call[2] == "Get"})
            lists = [call[2] for call in calls if call[2] != "Get"]
            self.assertGreaterEqual(lists.count("ListUnitsByPatterns"), 12)
            self.assertLessEqual(lists.count("ListUnitFilesByPatterns"), len(lists) // 10 + 1)

    def test_a_manager_that_is_not_there_is_not_started(self):
        with Bus() as bus:
            bus.end(bus.manager)
            with exporter_on(bus.address) as exporter:
                exporter.wait_sample(unavailable("not_found"), lambda value: value == 1)
                self.assertFalse((bus.folder / "activated").exists())


class Trouble(unittest.TestCase):
    def setUp(self):
        bus = Bus()
        self.bus = bus.__enter__()
        self.addCleanup(bus.__exit__)

    def check_that_it_costs_itself_alone(self, exporter):
        """The others go on while a pass of units waits."""
        def passes(collector):
            return exporter.samples()[f'apu_collector_passes_total{{collector="{collector}",outcome="ok"}}']
        before = {name: passes(name) for name in ("pressure", "memory")}
        for name, count in before.items():
            apu.wait_for(lambda name=name, count=count: passes(name) > count + 3, f"{name} goes on")
        start = time.monotonic()
        exporter.get()
        self.assertLess(time.monotonic() - start, 2)

    def check_that_it_is_blocked_and_comes_back(self, exporter, come_back):
        exporter.wait_sample(unavailable("blocked"), lambda value: value == 1)
        self.check_that_it_costs_itself_alone(exporter)
        self.assertEqual(exporter.samples()['apu_collector_overdue{collector="units"}'], 0)
        self.bus.state["properties"]["llama-a.service"]["NRestarts"] = 8
        come_back()
        exporter.wait_sample(RESTARTS, lambda value: value == 8)
        self.assertEqual(exporter.samples()[AVAILABLE], 1)

    def test_a_manager_that_never_answers(self):
        with exporter_on(self.bus.address) as exporter:
            exporter.wait_sample(RESTARTS, lambda value: value == 7)
            self.bus.write(mode="silent")
            self.check_that_it_is_blocked_and_comes_back(exporter, lambda: self.bus.write(mode="answer"))

    def test_a_bus_that_never_answers(self):
        """The socket takes connections, and not even authentication gets on."""
        self.bus.daemon.send_signal(signal.SIGSTOP)
        with exporter_on(self.bus.address) as exporter:
            def come_back():
                self.bus.write()
                self.bus.daemon.send_signal(signal.SIGCONT)
            self.check_that_it_is_blocked_and_comes_back(exporter, come_back)

    def test_a_bus_that_is_restarted(self):
        with exporter_on(self.bus.address) as exporter:
            exporter.wait_sample(RESTARTS, lambda value: value == 7)
            self.bus.end(self.bus.daemon)
            self.bus.end(self.bus.manager)
            exporter.wait_sample(unavailable("not_found"), lambda value: value == 1)
            self.bus.start_daemon()
            self.bus.start_manager()
            exporter.wait_sample(AVAILABLE, lambda value: value == 1)

    def test_a_manager_that_answers_garbage(self):
        with exporter_on(self.bus.address) as exporter:
            exporter.wait_sample(RESTARTS, lambda value: value == 7)
            self.bus.write(mode="garbage")
            exporter.wait_sample(unavailable("malformed"), lambda value: value == 1)
            self.assertGreater(exporter.samples()['apu_parse_errors_total{source="dbus"}'], 0)
            self.check_that_it_costs_itself_alone(exporter)

    def test_properties_of_another_type(self):
        self.bus.state["properties"]["llama-a.service"].update(NRestarts="many", Wants=3, TimeoutStopUSec=["x"])
        self.bus.write()
        with exporter_on(self.bus.address) as exporter:
            exporter.wait_sample(PASSED, lambda value: value >= 1)
            samples = exporter.samples()
            self.assertNotIn(RESTARTS, samples)
            self.assertNotIn('apu_seat_unit_stop_timeout_seconds{seat="llama-a",unit="llama-a"}', samples)
            self.assertEqual(samples['apu_seat_unit_need_daemon_reload{seat="llama-a",unit="llama-a"}'], 1)
            self.assertGreaterEqual(samples['apu_parse_errors_total{source="dbus"}'], 3)

    def test_a_stop_while_the_manager_is_silent(self):
        self.bus.write(mode="silent")
        with exporter_on(self.bus.address) as exporter:
            apu.wait_for(self.bus.calls, "it was asked")
            _, seconds = exporter.stop()
            self.assertLess(seconds, 10)

    def test_a_list_without_end_is_refused(self):
        self.bus.write(units={f"llama-{number}.service": {"load": "loaded", "active": "active", "sub": "running"}
                              for number in range(4097)})
        with exporter_on(self.bus.address) as exporter:
            exporter.wait_sample(unavailable("malformed"), lambda value: value == 1)
            self.check_that_it_costs_itself_alone(exporter)

    def test_no_bus(self):
        with exporter_on(f"unix:path={self.bus.folder}/nothing") as exporter:
            exporter.wait_sample(unavailable("not_found"), lambda value: value == 1)
            self.check_that_it_costs_itself_alone(exporter)


if __name__ == "__main__":
    apu.need_programs("dbus-daemon")
    need_bindings()
    unittest.main()
