#!/usr/bin/env python3
"""The dashboards and their provisioning against the linter, the metrics, the alerts and the runbooks."""
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "dashboards"))
import dashlint  # noqa: E402  (found by the line above)

SKIPPED = 77
TOOLS = ("promtool", "yamllint")
RUNBOOKS = "alerts/runbooks/"
DASHBOARDS = sorted(glob.glob(os.path.join(ROOT, "dashboards", "*.json")))
OVERVIEW = os.path.join(ROOT, "dashboards", "apu-overview.json")
RATE = "apu_workqueue_hog_events_per_second"
COUNT = "apu_workqueue_hog_events_total"
PRESSURE = "apu_pressure_stalled_ratio"


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
        return file.read()


def overview():
    return json.loads(read(OVERVIEW))


def panels_with(board, metric, types=("stat", "timeseries")):
    return [p for p in dashlint.query_panels(board) if p["type"] in types and metric in json.dumps(p["targets"])]


def threshold_steps(panel):
    steps = panel["fieldConfig"]["defaults"].get("thresholds", {}).get("steps", [])
    return [step["value"] for step in steps if step["value"] is not None]


def alerts_of(rules):
    """Returns the text of each alert."""
    return re.split(r"^\s*- alert:", rules, flags=re.M)[1:]


def page_numbers(rules):
    """Returns rate and count over which the page for the fingerprint fires."""
    pages = [a for a in alerts_of(rules) if RATE in a and "severity: critical" in a]
    expression = pages[0].split("labels:")[0]
    rate = re.search(RATE + r"(?:\{[^}]*\})?\s*>\s*([\d.]+)", expression)
    count = re.search(COUNT + r"(?:\{[^}]*\})?\s*>=\s*(\d+)", expression)
    return float(rate[1]), float(count[1])


def urls(thing):
    """Yields every value of a key named url, at any depth."""
    if isinstance(thing, dict):
        yield from [thing["url"]] if isinstance(thing.get("url"), str) else []
        thing = list(thing.values())
    for value in thing if isinstance(thing, list) else []:
        yield from urls(value)


def runbook_urls(board):
    return [url for url in urls(board) if RUNBOOKS in url]


class Lint(unittest.TestCase):
    def test_there_are_dashboards(self):
        self.assertIn(OVERVIEW, DASHBOARDS)

    def test_nothing_is_found(self):
        for path in DASHBOARDS:
            with self.subTest(os.path.basename(path)):
                self.assertEqual(dashlint.lint_file(path), [])

    def test_every_metric_is_documented(self):
        known = dashlint.metric_names(read("docs", "metrics.md"))
        for path in DASHBOARDS:
            with self.subTest(os.path.basename(path)):
                self.assertEqual(list(dashlint.check_metrics(json.loads(read(path)), known)), [])


def expression_of(board, text):
    """Sets the first query of the first panel."""
    dashlint.query_panels(board)[0]["targets"][0]["expr"] = text


def panel(board):
    return dashlint.query_panels(board)[0]


def series(board):
    return panels_with(board, RATE, ("timeseries",))[0]


SELECTOR = '{job=~"$job", instance=~"$instance"}'

# What breaks a dashboard, and the rule that must say so.
FAULTS = [
    ("dashboard", lambda b: b.update(editable=True)),
    ("dashboard", lambda b: b.update(uid="apu")),
    ("dashboard", lambda b: b.update(id=7)),
    ("dashboard", lambda b: b.update(schemaVersion=16)),
    ("dashboard", lambda b: b.pop("description")),
    ("template-datasource", lambda b: dashlint.variables(b)["datasource"].update(label="DS")),
    ("template-job-instance", lambda b: dashlint.variables(b)["job"].update(allValue=".*")),
    ("template-job-instance", lambda b: dashlint.variables(b)["instance"].update(multi=False)),
    ("template-on-time-change-reload", lambda b: dashlint.variables(b)["job"].update(refresh=1)),
    ("variables", lambda b: panel(b).update(description="$nobody")),
    ("variables", lambda b: b["templating"]["list"].append({"name": "unused", "type": "constant"})),
    ("panel-ids", lambda b: panel(b).update(id=dashlint.query_panels(b)[1]["id"])),
    ("panel-types", lambda b: panel(b).update(type="graph")),
    ("grid", lambda b: panel(b)["gridPos"].update(x=20)),
    ("grid", lambda b: panel(b)["gridPos"].update(w=24)),
    ("grid", lambda b: panel(b)["gridPos"].update(h=0)),
    ("panel-title-description", lambda b: panel(b).update(description=" ")),
    ("datasources", lambda b: panel(b)["targets"][0].update(datasource={"uid": "prom"})),
    ("datasources", lambda b: b["annotations"]["list"][0].pop("datasource")),
    ("panel-units", lambda b: panel(b)["fieldConfig"]["defaults"].pop("unit")),
    ("targets", lambda b: panel(b).update(targets=[])),
    ("targets", lambda b: panel(b)["targets"].append(panel(b)["targets"][0])),
    ("target-legends", lambda b: panel(b)["targets"][0].pop("legendFormat")),
    ("links", lambda b: b["links"].append({"type": "link", "url": "http://127.0.0.1/"})),
    ("target-job-instance", lambda b: expression_of(b, f'up{SELECTOR} + on (instance) up{{job=~"$job"}}')),
    ("target-job-instance", lambda b: expression_of(b, "up")),
    ("target-rate-interval", lambda b: expression_of(b, f"rate(apu_swap_in_bytes_total{SELECTOR}[5m])")),
    ("target-counters", lambda b: expression_of(b, f"sum(apu_swap_in_bytes_total{SELECTOR})")),
    ("target-counters", lambda b: expression_of(b, f"rate(apu_vm_swappiness{SELECTOR}[$__rate_interval])")),
    ("hog-staircase", lambda b: expression_of(b, f"max(rate({COUNT}{SELECTOR}[$__rate_interval]))")),
    ("target-promql", lambda b: expression_of(b, f"sum(up{SELECTOR}")),
    ("target-promql", lambda b: b["annotations"]["list"][0].update(expr="ALERTS{")),
]


class LintFinds(unittest.TestCase):
    def test_every_fault(self):
        for number, (rule, break_it) in enumerate(FAULTS):
            with self.subTest(rule, number=number):
                board = overview()
                break_it(board)
                self.assertIn(rule, [finding.split(":")[0] for finding in dashlint.lint(board)])

    def test_every_rule_has_a_fault(self):
        self.assertEqual({rule for rule, _ in FAULTS}, {rule for rule, _ in dashlint.RULES})

    def test_an_unknown_metric(self):
        board = overview()
        expression_of(board, f"apu_no_such_metric{SELECTOR}")
        self.assertIn("apu_no_such_metric", "".join(dashlint.check_metrics(board, {"apu_boot_time_seconds"})))

    def test_both_forms_of_the_list_of_metrics(self):
        self.assertEqual(dashlint.metric_names("# TYPE apu_a gauge\napu_a 1\n"), {"apu_a"})
        self.assertEqual(dashlint.metric_names("| name | type |\n|---|---|\n| `apu_b` | gauge |\n"), {"apu_b"})


class Selectors(unittest.TestCase):
    def metrics(self, expression):
        return [s.metric for s in dashlint.selectors(expression)]

    def test_names_that_are_no_metrics(self):
        self.assertEqual(self.metrics('sum by (a, b) (up{x="y(z)"}) / on (a) group_left (b) (time() - c offset 5m)'),
                         ["up", "c"])
        self.assertEqual(self.metrics("max(a) by (b) unless on () c > bool 1e3"), ["a", "c"])

    def test_calls_and_range(self):
        found = dashlint.selectors('max by (i) (rate(a_total{b="[c]"}[$__rate_interval])) or d')
        self.assertEqual([(s.metric, s.range, "rate" in s.calls) for s in found],
                         [("a_total", "$__rate_interval", True), ("d", None, False)])

    def test_selector_without_a_name(self):
        self.assertEqual(dashlint.selectors('count({job="a"})')[0].matchers, 'job="a"')


class Alerts(unittest.TestCase):
    def test_thresholds_are_those_of_the_page(self):
        rate, count = page_numbers(read("alerts", "apu.rules.yml"))
        self.assertEqual((rate, count), (0.2, 67))
        for metric, number in ((RATE, rate), (COUNT, count)):
            panels = panels_with(overview(), metric)
            self.assertEqual(len(panels), 2, metric)
            for shown in panels:
                self.assertEqual(threshold_steps(shown), [number], shown["title"])

    def test_pages_and_dashboard_mean_the_same_functions(self):
        rule = re.search(RATE + r'\{function=~"([^"]+)"', read("alerts", "apu.rules.yml"))[1]
        for shown in panels_with(overview(), RATE) + panels_with(overview(), COUNT):
            self.assertIn(f'function=~"{rule}"', shown["targets"][0]["expr"], shown["title"])

    def test_memory_pressure_is_drawn_at_two_percent(self):
        shown = [p for p in panels_with(overview(), PRESSURE)]
        self.assertEqual([threshold_steps(p) for p in shown], [[0.02]] * len(shown))
        self.assertTrue(shown)

    def test_firing_alerts_and_reboots_are_marked(self):
        marks = " ".join(a["expr"] for a in dashlint.annotations(overview()))
        self.assertIn('ALERTS{alertstate="firing", alertname=~"APU.*"', marks)
        self.assertIn("apu_boot_time_seconds", marks)


class Panels(unittest.TestCase):
    def test_what_is_said_to_be_now_is_asked_for_now(self):
        """A range query would go on showing the last value of an exporter that is gone."""
        for shown in dashlint.query_panels(overview()):
            if shown["type"] in ("stat", "table"):
                self.assertTrue(all(t.get("instant") for t in shown["targets"]), shown["title"])

    def test_every_description_says_what_is_bad_and_what_to_do(self):
        for shown in dashlint.query_panels(overview()):
            self.assertIn("**Bad:**", shown["description"], shown["title"])
            self.assertIn("**Do:**", shown["description"], shown["title"])


class Runbooks(unittest.TestCase):
    def test_every_link_leads_to_a_runbook(self):
        for path in DASHBOARDS:
            for url in runbook_urls(json.loads(read(path))):
                file = os.path.join(ROOT, RUNBOOKS, url.split(RUNBOOKS)[1])
                self.assertTrue(os.path.isfile(file), url)

    def test_the_overview_links_to_the_runbook_of_every_alert(self):
        rules = set(re.findall(r"runbook_url: (\S+)", read("alerts", "apu.rules.yml")))
        self.assertTrue(rules)
        self.assertEqual(set(runbook_urls(overview())), rules)


class Provisioning(unittest.TestCase):
    FILES = [os.path.join(ROOT, "deploy/grafana/provisioning", d, "apu.yaml") for d in ("datasources", "dashboards")]

    def test_yaml(self):
        run = subprocess.run(["yamllint", "--strict", "-d", "default", *self.FILES],
                             capture_output=True, text=True, check=False)
        self.assertEqual((run.returncode, run.stdout), (0, ""))

    def test_keys(self):
        datasource, dashboards = map(read, self.FILES)
        for text in (datasource, dashboards):
            self.assertRegex(text, r"(?m)^apiVersion: 1$")
        self.assertRegex(datasource, r"(?m)^\s+type: prometheus$")
        self.assertRegex(dashboards, r"(?m)^\s+path: /usr/share/apu_exporter/dashboards$")


def missing_tools():
    return [tool for tool in TOOLS if shutil.which(tool) is None]


if __name__ == "__main__":
    if missing_tools():
        print(f"cannot run here: not installed: {', '.join(missing_tools())}", file=sys.stderr)
        sys.exit(SKIPPED)
    unittest.main()
