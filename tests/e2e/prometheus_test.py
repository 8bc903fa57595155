#!/usr/bin/python3
"""Debian's Prometheus scrapes the exporter with the configuration that ships."""
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import exporter as apu  # noqa: E402
from prometheus import Prometheus  # noqa: E402

SHIPPED = apu.ROOT / "deploy/prometheus/prometheus.yml"
SECOND_STEPS = "  scrape_interval: 1s\n  scrape_timeout: 1s\n  evaluation_interval: 1s\n"


def shipped_configuration(target):
    """The shipped file for this target, scraping each second, with its rules found from anywhere."""
    text = SHIPPED.read_text()
    assert text.count("127.0.0.1:10151") == 1, text
    text = text.replace("127.0.0.1:10151", target)
    text = text.replace("../../alerts/", f"{apu.ROOT}/alerts/")
    lines = [line for line in text.splitlines(keepends=True)
             if not line.strip().startswith(("scrape_interval", "scrape_timeout", "evaluation_interval"))]
    return "".join(lines).replace("global:\n", "global:\n" + SECOND_STEPS, 1)


class Scrape(unittest.TestCase):
    def test_values_come_back_through_the_api(self):
        fixture = apu.FIXTURES / "strix_halo_thrash"
        with tempfile.TemporaryDirectory() as directory, \
                apu.Exporter(f"--path.rootfs={fixture}") as exporter:
            exporter.wait_ready()
            target = exporter.url.removeprefix("http://")
            with Prometheus(directory, shipped_configuration(target)) as prometheus:
                self.check_values(prometheus)
                self.check_target(prometheus)
                self.check_all_samples_arrive(prometheus, exporter)
                self.check_rules(prometheus)

    def check_values(self, prometheus):
        labels, value = prometheus.wait_values("apu_workqueue_hog_events_total")[0]
        self.assertEqual(value, 262147)
        self.assertEqual(labels["function"], "amdgpu_amdkfd_restore_userptr_worker")
        self.assertEqual(labels["job"], "apu")
        (_, swap), = prometheus.values("sum(apu_swap_used_bytes)")
        self.assertEqual(swap, 26000093184)

    def check_target(self, prometheus):
        target, = prometheus.api("targets")["activeTargets"]
        self.assertEqual((target["health"], target["lastError"]), ("up", ""))

    def check_all_samples_arrive(self, prometheus, exporter):
        scraped = int(prometheus.values("scrape_samples_scraped")[0][1])
        self.assertEqual(scraped, len(exporter.samples()))

    def check_rules(self, prometheus):
        rules = [rule for group in prometheus.api("rules")["groups"] for rule in group["rules"]]
        self.assertTrue(rules)

        def evaluated():
            current = [rule for group in prometheus.api("rules")["groups"] for rule in group["rules"]]
            return current if all(rule["health"] != "unknown" for rule in current) else None
        for rule in apu.wait_for(evaluated, "the rules are evaluated", 60):
            self.assertEqual((rule["health"], rule.get("lastError", "")), ("ok", ""), rule["name"])
        storm, = [rule for rule in rules if rule["name"] == "APUKfdRestoreStorm"]
        apu.wait_for(lambda: prometheus.values(f'ALERTS{{alertname="{storm["name"]}"}}'),
                     "the storm alert is pending on the host of the incident", 60)


if __name__ == "__main__":
    apu.need_programs("prometheus")
    unittest.main()
