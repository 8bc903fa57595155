#!/usr/bin/python3
"""apu_exporter check against a real D-Bus daemon, real accounts and real directories."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import exporter as apu  # noqa: E402
import units_test  # noqa: E402

GIB = 1 << 30
GOOD = {"LoadState": "loaded", "ActiveState": "active", "SubState": "running", "UnitFileState": "enabled",
        "WantedBy": ["multi-user.target"], "RequiredBy": [], "TimeoutStopUSec": 180_000_000, "NeedDaemonReload": False,
        "User": "nobody", "Group": "", "SupplementaryGroups": [], "Wants": [], "Requires": [], "BindsTo": [],
        "MemoryMin": 0, "MemoryLow": GIB, "MemoryHigh": units_test.INFINITY, "MemoryMax": units_test.INFINITY}
BAD = GOOD | {"UnitFileState": "disabled", "WantedBy": [], "TimeoutStopUSec": 90_000_000, "NeedDaemonReload": True,
              "Wants": ["llama-good.service"], "MemoryLow": 0}
FAILED = {"enabled", "unit_loaded", "stop_timeout", "wants_no_seat", "budget_set"}


def check(*arguments, address="unix:path=/no/such/bus"):
    return subprocess.run([apu.BINARY, "check", *arguments], capture_output=True, text=True, timeout=60,
                          env=os.environ | {"DBUS_SYSTEM_BUS_ADDRESS": address})


def results(done, seat):
    return {each["check"]: each["result"] for each in json.loads(done.stdout)["checks"] if each["seat"] == seat}


def sees_host():
    """Whether this is the host's mount namespace: in a sandbox the directories may be others, or that not be known."""
    try:
        return os.readlink("/proc/self/ns/mnt") == os.readlink("/proc/1/ns/mnt")
    except PermissionError:
        return False


class Check(unittest.TestCase):
    def bus_with(self, **units):
        bus = units_test.Bus()
        bus.__enter__()
        self.addCleanup(bus.__exit__)
        names = {f"llama-{name}.service": properties for name, properties in units.items()}
        bus.write(files={}, properties=names,
                  units={name: {"load": "loaded", "active": "active", "sub": "running"} for name in names})
        apu.wait_for((bus.folder / "calls.ready").exists, "the manager has its name")
        return bus

    def test_a_unit_as_it_should_be_passes_and_one_that_is_not_fails(self):
        bus = self.bus_with(good=GOOD, bad=BAD)
        done = check("--format=json", address=bus.address)
        self.assertEqual(done.returncode, 1, done.stderr)
        failed = {name for name, result in results(done, "llama-bad").items() if result == "fail"}
        self.assertEqual(failed, FAILED)
        good = results(done, "llama-good")
        self.assertEqual({good[name] for name in FAILED}, {"pass"}, good)
        text = check(address=bus.address)
        self.assertEqual(text.returncode, 1)
        self.assertIn("FAIL     llama-bad: enabled", text.stdout)
        self.assertIn("systemctl enable llama-bad.service", text.stdout.replace("\n         ", " "))
        self.assertTrue(text.stdout.startswith("5 of "), text.stdout)

    def test_it_ends_with_0_where_nothing_fails(self):
        bus = self.bus_with(good=GOOD)
        done = check(address=bus.address)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertNotIn("FAIL", done.stdout)

    def test_the_home_of_a_services_user_is_tried(self):
        """The accounts are the host's own: nobody has no home, root may enter everywhere."""
        bus = self.bus_with(nobody=GOOD, root=GOOD | {"User": ""}, stranger=GOOD | {"User": "no-such-user"})
        done = check("--format=json", address=bus.address)
        self.assertEqual(results(done, "llama-nobody")["home_traversable"], "pass")
        self.assertEqual(results(done, "llama-stranger")["home_traversable"], "unknown")
        self.assertEqual(results(done, "llama-root")["home_traversable"], "pass" if sees_host() else "unknown")

    def test_without_a_bus_units_are_not_known(self):
        done = check("--format=json")
        report = json.loads(done.stdout)
        self.assertEqual((report["format"], report["version"], report["fail"]), ("apu_exporter check", 1, 0))
        self.assertEqual(results(done, None)["seats_found"], "unknown")

    def test_a_manager_that_does_not_answer_costs_its_own_checks_alone(self):
        bus = self.bus_with(good=GOOD)
        bus.write(mode="silent")
        done = check("--format=json", address=bus.address)
        self.assertEqual(results(done, "llama-good"), {})
        self.assertIn("swappiness", results(done, None))

    def test_the_service_has_the_same_as_metrics(self):
        bus = self.bus_with(good=GOOD, bad=BAD)
        with units_test.exporter_on(bus.address, "--collector.checks", "--collector.checks.period=200ms") as exporter:
            exporter.wait_sample('apu_seat_check{seat="llama-bad",check="enabled"}', lambda value: value == 0)
            samples = exporter.samples()
            self.assertEqual(samples['apu_seat_check{seat="llama-good",check="enabled"}'], 1)
            self.assertNotIn('apu_seat_check{seat="llama-good",check="home_traversable"}', samples)

    def test_a_recorded_host_is_judged_by_what_it_has(self):
        done = check("--format=json", f"--path.rootfs={apu.FIXTURES / 'strix_halo_thrash'}")
        self.assertEqual(done.returncode, 1)
        host = results(done, None)
        self.assertEqual((host["swappiness"], host["hog_reports"]), ("fail", "pass"))
        seat = results(done, "llama-8b")
        self.assertEqual((seat["mmap_off"], seat["enabled"]), ("fail", "unknown"))
        allowed = check("--format=json", "--check.allow-mmap=llama-*",
                        f"--path.rootfs={apu.FIXTURES / 'strix_halo_thrash'}")
        self.assertEqual(results(allowed, "llama-8b")["mmap_off"], "pass")

    def test_nothing_to_check_ends_with_2(self):
        done = check("--collector.disable-defaults", "--collector.checks")
        self.assertEqual(done.returncode, 2)
        with tempfile.TemporaryDirectory() as empty:
            self.assertEqual(check(f"--path.rootfs={empty}").returncode, 2)


if __name__ == "__main__":
    apu.need_programs("dbus-daemon")
    units_test.need_bindings()
    unittest.main()
