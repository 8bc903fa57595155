#!/usr/bin/python3
"""What the exporter prints for each fixture, against tests/golden/FIXTURE.prom.

    golden_test.py --update    writes the golden files anew: review the difference like code
"""
import os
import pathlib
import re
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import exporter as apu  # noqa: E402

GOLDEN = apu.ROOT / "tests/golden"

# Families that say something of this run and not of the host; their samples stay, without values.
VARYING = re.compile(r"^(apu_collector_(?:age|duration)_seconds|apu_collector_passes_total"
                     r"|apu_exporter_build_info|process_\w+)(\{.*\})? .*$")

# Collectors that are off by default are on for one fixture each.
OPTIONS = {"strix_halo_7_1": ["--collector.gpu_gem"]}


def strip_varying(line):
    found = VARYING.match(line)
    if not found:
        return line
    labels = "{...}" if found[1] == "apu_exporter_build_info" else found[2] or ""
    return f"{found[1]}{labels} ..."


def page_of(fixture):
    return apu.run_exporter("--once", f"--path.rootfs={fixture}", *OPTIONS.get(fixture.name, []),
                            env={**os.environ, "TZ": "UTC"})


def golden_text(page):
    return "".join(strip_varying(line) + "\n" for line in page.splitlines())


def fixtures():
    return sorted(path for path in apu.FIXTURES.iterdir() if path.is_dir())


class Golden(unittest.TestCase):
    maxDiff = None

    def test_each_fixture_prints_its_golden_page(self):
        for fixture in fixtures():
            with self.subTest(fixture.name):
                done = page_of(fixture)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertNotIn("level=error", done.stderr)
                golden = (GOLDEN / f"{fixture.name}.prom").read_text()
                self.assertEqual(golden, golden_text(done.stdout))

    def test_no_golden_page_without_a_fixture(self):
        self.assertEqual({path.stem for path in GOLDEN.glob("*.prom")},
                         {path.name for path in fixtures()})

    def test_promtool_accepts_each_page(self):
        for fixture in fixtures():
            with self.subTest(fixture.name):
                check = subprocess.run(["promtool", "check", "metrics"],
                                       input=page_of(fixture).stdout, capture_output=True,
                                       text=True, check=False)
                self.assertEqual((check.returncode, check.stdout + check.stderr), (0, ""))


def update():
    for fixture in fixtures():
        (GOLDEN / f"{fixture.name}.prom").write_text(golden_text(page_of(fixture).stdout))


if __name__ == "__main__":
    if "--update" in sys.argv:
        update()
    else:
        apu.need_programs("promtool")
        unittest.main()
