#!/usr/bin/env python3
"""Checks the alerts: rules, their tests, the examples, the runbooks, and that all of them agree.

Needs promtool and amtool; exits 77 without them.
"""

import re
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ALERTS = ROOT / "alerts"
RULES = ALERTS / "apu.rules.yml"
RUNBOOKS = ALERTS / "runbooks"
ALERTMANAGER = ALERTS / "alertmanager.example.yml"
PROMETHEUS = ROOT / "deploy/prometheus/prometheus.yml"
TESTS = ROOT / "tests/alerts"
METRICS = ROOT / "docs/metrics.md"
RUNBOOK_URL = "https://github.com/apu-exporter/apu_exporter/blob/main/alerts/runbooks/"
SECTIONS = ["Meaning", "Impact", "Confirm", "What to do now", "Prevention", "How it can be a false alarm"]

# What reads the memory of other processes, and so hangs on the host that the runbooks are for.
HANGING_COMMANDS = [
    r"\bps\b.*(\baux|\s-\w*f\b|\bcomm\b|\bu?cmd\b|\bargs\b|\bcommand\b)",
    r"\b(pgrep|pkill|pidof|killall|top|htop|lsof|fuser|systemd-cgls)\b",
    r"systemctl status",
    r"/proc/[^/\s]+/(\S*/)?(cmdline|environ|maps|smaps|smaps_rollup|numa_maps)\b",
]


def run(*command):
    """Runs a command from /, so that nothing depends on the caller's folder."""
    arguments = [str(part) for part in command]
    return subprocess.run(arguments, cwd="/", text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)


def rule_blocks():
    """The text of each alerting rule, by name; two rules may share one."""
    blocks = re.split(r"(?m)^ *- alert: *", RULES.read_text())[1:]
    return [(block.split("\n", 1)[0].strip(), block) for block in blocks]


def alert_names():
    return {name for name, _ in rule_blocks()}


def field(block, key):
    """The value of a one-line field of a rule."""
    match = re.search(rf"(?m)^ +{key}: *(.*)$", block)
    return match.group(1).strip() if match else None


def label_names(block):
    labels = re.search(r"(?m)^( +)labels:\n((?:\1 +.*\n)+)", block)
    return re.findall(r"(?m)^ +(\w+):", labels.group(2)) if labels else []


def metric_names(text):
    """Our metrics that the text names. One that ends in "_" stands for all that begin so."""
    text = re.sub(r"https?://\S+", "", text)
    return set(re.findall(r"\bapu_\w+", text)) - {"apu_exporter"}


def documented_metrics():
    return set(re.findall(r"(?m)^\| `(\w+)` \|", METRICS.read_text()))


def is_documented(name, documented):
    if name.endswith("_"):
        return any(other.startswith(name) for other in documented)
    return name in documented


def markdown_files():
    return sorted(ALERTS.rglob("*.md"))


def relative_links(page):
    links = re.findall(r"\]\(([^)\s]+)\)", page.read_text())
    return [link for link in links if not re.match(r"\w+:", link)]


def anchors(page):
    """The fragments that a page's headings can be reached by."""
    headings = re.findall(r"(?m)^#+ +(.*)$", page.read_text())
    return {re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


def commands(page):
    blocks = re.findall(r"(?ms)^```sh\n(.*?)^```", page.read_text())
    return [line for block in blocks for line in block.splitlines()]


class ToolTest(unittest.TestCase):
    def check(self, *command):
        result = run(*command)
        self.assertEqual(result.returncode, 0, f"{' '.join(map(str, command))}\n{result.stdout}")
        return result.stdout

    def test_rules_are_valid(self):
        self.check("promtool", "check", "rules", "--lint=all", "--lint-fatal", RULES)

    def test_rule_tests_pass(self):
        files = sorted(TESTS.glob("*.test.yml"))
        self.assertGreaterEqual(len(files), 2)
        self.check("promtool", "test", "rules", *files)

    def test_hog_histories_are_current(self):
        self.check(sys.executable, TESTS / "hog_histories.py", "--check")

    def test_prometheus_example_is_valid(self):
        output = self.check("promtool", "check", "config", PROMETHEUS)
        self.assertIn("1 rule files found", output)

    def test_alertmanager_example_is_valid(self):
        self.check("amtool", "check-config", ALERTMANAGER)

    def test_each_severity_has_its_receiver(self):
        for severity, receiver in {"critical": "page", "warning": "ticket", "info": "none"}.items():
            with self.subTest(severity=severity):
                output = self.check(
                    "amtool", "config", "routes", "test", f"--config.file={ALERTMANAGER}", f"severity={severity}"
                )
                self.assertIn(receiver, output.splitlines())


class RuleTest(unittest.TestCase):
    def test_labels_are_severity_alone(self):
        for name, block in rule_blocks():
            with self.subTest(alert=name):
                self.assertEqual(label_names(block), ["severity"])
                self.assertIn(field(block, "severity"), ("critical", "warning", "info"))

    def test_summary_is_one_static_sentence(self):
        for name, block in rule_blocks():
            with self.subTest(alert=name):
                self.assertRegex(field(block, "summary") or "", r"^[^{}]+\.$")

    def test_description_names_the_instance(self):
        for name, block in rule_blocks():
            with self.subTest(alert=name):
                self.assertRegex(block, r"(?s)description:.*\{\{ \$labels\.instance \}\}")

    def test_exact_annotations_are_tested(self):
        tested = (TESTS / "apu.test.yml").read_text()
        for name, block in rule_blocks():
            with self.subTest(alert=name):
                self.assertIn(field(block, "summary"), tested)
                self.assertIn(f"runbook_url: {RUNBOOK_URL}{name}.md", tested)

    def test_inhibitions_name_real_alerts(self):
        named = set(re.findall(r"APU\w+", re.sub(r"#.*", "", ALERTMANAGER.read_text())))
        self.assertTrue(named)
        self.assertLessEqual(named, alert_names())


class RunbookTest(unittest.TestCase):
    def test_each_alert_has_a_runbook_and_each_runbook_an_alert(self):
        self.assertEqual(alert_names(), {page.stem for page in RUNBOOKS.iterdir()})

    def test_runbook_urls_end_in_files(self):
        for name, block in rule_blocks():
            with self.subTest(alert=name):
                url = field(block, "runbook_url") or ""
                self.assertEqual(url, f"{RUNBOOK_URL}{name}.md")
                self.assertTrue((RUNBOOKS / url.rsplit("/", 1)[-1]).is_file())

    def test_runbooks_have_their_sections(self):
        for page in sorted(RUNBOOKS.glob("*.md")):
            with self.subTest(page=page.name):
                text = page.read_text()
                self.assertEqual(text.split("\n", 1)[0], f"# {page.stem}")
                self.assertEqual(re.findall(r"(?m)^## (.*)$", text), SECTIONS)

    def test_runbook_severities_are_those_of_the_rules(self):
        for name, block in rule_blocks():
            with self.subTest(alert=name):
                stated = re.search(r"(?m)^Severity: (.*?)\. Source:", (RUNBOOKS / f"{name}.md").read_text())
                self.assertIn(field(block, "severity"), stated.group(1) if stated else "")

    def test_runbook_commands_cannot_hang(self):
        for page in sorted(RUNBOOKS.glob("*.md")):
            self.assertTrue(commands(page), page.name)
            for command in commands(page):
                for pattern in HANGING_COMMANDS:
                    self.assertNotRegex(command, pattern, page.name)


class ReferenceTest(unittest.TestCase):
    def test_relative_links_resolve(self):
        for page in markdown_files():
            for link in relative_links(page):
                with self.subTest(page=page.name, link=link):
                    path, _, fragment = link.partition("#")
                    target = page.parent / path if path else page
                    self.assertTrue(target.exists())
                    if fragment:
                        self.assertIn(fragment, anchors(target))

    def test_metrics_are_documented(self):
        documented = documented_metrics()
        for file in [RULES, *markdown_files()]:
            unknown = {name for name in metric_names(file.read_text()) if not is_documented(name, documented)}
            self.assertFalse(unknown, file.name)

    def test_rules_name_metrics(self):
        self.assertGreaterEqual(len(metric_names(RULES.read_text())), 5)


def main():
    missing = [tool for tool in ("promtool", "amtool") if shutil.which(tool) is None]
    if missing:
        print(f"cannot run here: {' and '.join(missing)} not found", file=sys.stderr)
        sys.exit(77)
    unittest.main()


if __name__ == "__main__":
    main()
