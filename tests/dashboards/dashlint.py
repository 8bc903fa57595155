#!/usr/bin/env python3
"""Lint of Grafana dashboards in the classic JSON format.

usage: dashlint.py [--metrics FILE] dashboard.json...

The rules of grafana/dashboard-linter that matter here, the grid, the format of the file, and what is special to
apu_exporter. FILE names the metrics that queries may use: a text exposition, or a table whose rows start with
"| `metric_name` |". PromQL is parsed by promtool. Prints one line a finding; exits 1 if there is any.
"""
import argparse
import collections
import json
import os
import re
import subprocess
import sys
import tempfile

QUERY_PANELS = {"stat", "table", "timeseries", "gauge", "bargauge", "heatmap", "state-timeline", "histogram"}
OTHER_PANELS = {"row", "text"}
UNIT_PANELS = QUERY_PANELS - {"heatmap", "histogram", "state-timeline"}
DATASOURCES = {"$datasource", "${datasource}"}
SCHEMA_VERSION = 41
GRID_WIDTH = 24

RATE_FUNCTIONS = {"rate", "irate", "increase"}
COUNTER_SUFFIXES = ("_total", "_count", "_sum", "_bucket")
# The kernel reports a hog count only when it has about doubled. Its rate() is needles between zeros; what can be
# read are the count itself and apu_workqueue_hog_events_per_second.
STAIRCASE_COUNTERS = {"apu_workqueue_hog_events_total", "apu_workqueue_hog_doublings_total",
                      "apu_workqueue_hog_reports_total"}
SLOPE_FUNCTIONS = RATE_FUNCTIONS | {"delta", "idelta", "deriv"}


# --- the board ------------------------------------------------------------------------------------------------------

def all_panels(board):
    for panel in board.get("panels", []):
        yield panel
        yield from panel.get("panels") or []


def query_panels(board):
    return [p for p in all_panels(board) if p.get("type") in QUERY_PANELS]


def name_of(panel):
    return panel.get("title") or f"panel {panel.get('id')}"


def variables(board):
    return {v["name"]: v for v in board.get("templating", {}).get("list", [])}


def annotations(board):
    return board.get("annotations", {}).get("list", [])


def uses_datasource_variable(thing):
    return (thing.get("datasource") or {}).get("uid") in DATASOURCES


def panel_expressions(board):
    """Yields (where, PromQL) for each query of each panel."""
    for panel in query_panels(board):
        for target in panel.get("targets", []):
            yield name_of(panel), target.get("expr", "")


def annotation_expressions(board):
    for annotation in annotations(board):
        if "expr" in annotation:
            yield f"annotation {annotation.get('name')}", annotation["expr"]


def variable_expressions(board):
    """Yields (where, selector) of each label_values(selector, label)."""
    for variable in variables(board).values():
        query = variable.get("query")
        text = query.get("query", "") if isinstance(query, dict) else ""
        match = re.fullmatch(r"label_values\((.+),\s*\w+\)", text)
        if match:
            yield f"variable {variable['name']}", match[1]


def all_expressions(board):
    yield from panel_expressions(board)
    yield from annotation_expressions(board)
    yield from variable_expressions(board)


# --- PromQL, as far as it is needed ---------------------------------------------------------------------------------

Selector = collections.namedtuple("Selector", "metric matchers range calls")

TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'|\[[^\]]*\]|[a-zA-Z_:][\w:]*|\d[\w.]*|[^\s\w]')
GROUPING = {"by", "without", "on", "ignoring", "group_left", "group_right"}
KEYWORDS = GROUPING | {"and", "or", "unless", "bool", "offset", "inf", "nan", "atan2"}
VARIABLE = re.compile(r"\$\{(\w+)(?::[^}]*)?\}|\$(\w+)")
BUILT_IN = {"__rate_interval": "5m", "__interval": "1m", "__interval_ms": "60000", "__range": "1h", "__range_s": "3600"}


class Tokens:
    def __init__(self, expression):
        self.items = TOKEN.findall(expression)
        self.at = 0

    def peek(self):
        return self.items[self.at] if self.at < len(self.items) else ""

    def next(self):
        token = self.peek()
        self.at += 1
        return token

    def until(self, end):
        """Takes the tokens up to and with `end`; returns those before it, joined."""
        taken = []
        while self.peek() not in ("", end):
            taken.append(self.next())
        self.next()
        return "".join(taken)

    def matchers(self):
        if self.peek() != "{":
            return ""
        self.next()
        return self.until("}")

    def range(self):
        return self.next()[1:-1] if self.peek().startswith("[") else None


def selectors(expression):
    """Returns every selector of the expression, with the calls around it from outer to inner."""
    tokens, found, calls = Tokens(expression), [], []
    while tokens.peek():
        if is_name(tokens.peek()):
            read_name(tokens, calls, found)
        elif tokens.peek() == "{":
            found.append(Selector("", tokens.matchers(), tokens.range(), tuple(calls)))
        else:
            read_symbol(tokens, calls)
    return found


def is_name(token):
    return re.match(r"[a-zA-Z_:]", token) is not None


def read_name(tokens, calls, found):
    name = tokens.next()
    if tokens.peek() == "(" and name in GROUPING:
        tokens.until(")")
    elif tokens.peek() == "(" and name not in KEYWORDS:
        tokens.next()
        calls.append(name)
    elif tokens.peek() not in ("by", "without") and name.lower() not in KEYWORDS:
        found.append(Selector(name, tokens.matchers(), tokens.range(), tuple(calls)))


def read_symbol(tokens, calls):
    symbol = tokens.next()
    if symbol == "(":
        calls.append("")
    elif symbol == ")":
        del calls[-1:]


def substitute(expression):
    """Puts values in place of Grafana's variables, so that promtool can parse the expression."""
    return VARIABLE.sub(lambda match: BUILT_IN.get(match[1] or match[2], "x"), expression)


def promtool_errors(expressions):
    """Yields (index, message) of each expression that promtool cannot parse."""
    groups = [{"name": f"g{i}", "rules": [{"record": f"x:y:z{i}", "expr": substitute(e)}]}
              for i, e in enumerate(expressions)]
    with tempfile.NamedTemporaryFile("w", suffix=".yml", encoding="utf-8") as rules:
        json.dump({"groups": groups}, rules)
        rules.flush()
        run = subprocess.run(["promtool", "check", "rules", "--lint=none", rules.name],
                             capture_output=True, text=True, check=False)
    if run.returncode == 0:
        return
    output = run.stdout + run.stderr
    hits = re.findall(r'group "g(\d+)".*?: (could not parse expression.*|.*error.*)', output)
    yield from [(int(i), message) for i, message in hits] or [(None, output.strip())]


# --- rules: each yields messages ------------------------------------------------------------------------------------

def check_dashboard(board):
    if board.get("editable", True):
        yield "editable must be false"
    if not re.fullmatch(r"[a-zA-Z0-9_-]{8,40}", board.get("uid", "")):
        yield "uid must be 8-40 of [A-Za-z0-9_-]"
    if board.get("id") is not None:
        yield "id must be absent"
    if board.get("schemaVersion") != SCHEMA_VERSION:
        yield f"schemaVersion must be {SCHEMA_VERSION}"
    for key in ("title", "description", "tags", "refresh"):
        if not board.get(key):
            yield f"no {key}"


def check_template_datasource(board):
    variable = variables(board).get("datasource", {})
    if variable.get("type") != "datasource":
        yield "no variable 'datasource' of type datasource"
    elif variable.get("label") != "Data source":
        yield "the label must be 'Data source'"


def check_template_target(board):
    for name in ("job", "instance"):
        variable = variables(board).get(name)
        if not variable:
            yield f"{name}: missing"
            continue
        if not uses_datasource_variable(variable):
            yield f"{name}: must use ${{datasource}}"
        if not variable.get("multi") or not variable.get("includeAll"):
            yield f"{name}: must be multi and include All"
        if variable.get("allValue") != ".+":
            yield f"{name}: allValue must be .+"


def check_template_reload(board):
    for variable in variables(board).values():
        if variable.get("type") == "query" and variable.get("refresh") != 2:
            yield f"{variable['name']}: refresh must be 2, on time change"


def check_variables(board):
    text = json.dumps([board.get(k) for k in ("panels", "annotations", "links", "templating", "title")])
    used = set(re.findall(r"\$\{?([a-zA-Z]\w*)", text))
    defined = set(variables(board))
    for name in sorted(defined - used):
        yield f"{name}: not used"
    for name in sorted(used - defined):
        yield f"{name}: not defined"


def check_panel_ids(board):
    ids = [p.get("id") for p in all_panels(board)]
    for identity, count in collections.Counter(ids).items():
        if count > 1:
            yield f"{count} panels have id {identity}"


def check_panel_types(board):
    for panel in all_panels(board):
        if panel.get("type") not in QUERY_PANELS | OTHER_PANELS:
            yield f"{name_of(panel)}: type '{panel.get('type')}' is not known here"


def overlap(a, b):
    return (a["x"] < b["x"] + b["w"] and b["x"] < a["x"] + a["w"] and
            a["y"] < b["y"] + b["h"] and b["y"] < a["y"] + a["h"])


def check_grid(board):
    placed = []
    for panel in all_panels(board):
        grid = panel.get("gridPos", {})
        if set(grid) != {"x", "y", "w", "h"} or min(grid.values()) < 0 or 0 in (grid["w"], grid["h"]):
            yield f"{name_of(panel)}: no usable gridPos"
            continue
        if grid["x"] + grid["w"] > GRID_WIDTH:
            yield f"{name_of(panel)}: wider than {GRID_WIDTH}"
        for other, title in placed:
            if overlap(grid, other):
                yield f"{name_of(panel)} overlaps {title}"
        placed.append((grid, name_of(panel)))


def check_panel_text(board):
    for panel in query_panels(board):
        for key in ("title", "description"):
            if not (panel.get(key) or "").strip():
                yield f"{name_of(panel)}: no {key}"


def check_datasources(board):
    for panel in query_panels(board):
        if not all(uses_datasource_variable(t) for t in [panel, *panel.get("targets", [])]):
            yield f"{name_of(panel)}: must use ${{datasource}}"
    for annotation in annotations(board):
        if not annotation.get("builtIn") and not uses_datasource_variable(annotation):
            yield f"annotation {annotation.get('name')}: must use ${{datasource}}"


def check_units(board):
    for panel in query_panels(board):
        defaults = panel.get("fieldConfig", {}).get("defaults", {})
        if panel["type"] in UNIT_PANELS and not defaults.get("unit"):
            yield name_of(panel)


def check_targets(board):
    for panel in query_panels(board):
        refs = [t.get("refId") for t in panel.get("targets", [])]
        if not refs:
            yield f"{name_of(panel)}: none"
        if len(refs) != len(set(refs)):
            yield f"{name_of(panel)}: a refId twice"


def check_legends(board):
    for panel in query_panels(board):
        for target in panel.get("targets", []):
            if target.get("format") != "table" and target.get("legendFormat", "__auto") in ("", "__auto"):
                yield f"{name_of(panel)}: query {target.get('refId')} has none"


def check_links(board):
    links = [link for link in board.get("links", []) if link.get("type") == "link"]
    for panel in all_panels(board):
        links += panel.get("links", []) + panel.get("fieldConfig", {}).get("defaults", {}).get("links", [])
    for link in links:
        if not re.match(r"https://\S+$|/d/\S+$", link.get("url", "")):
            yield f"{link.get('title')}: '{link.get('url')}' is neither https:// nor /d/"


def check_matchers(board):
    """Every selector of a panel is bound to the chosen jobs and hosts."""
    for where, expression in panel_expressions(board):
        for selector in selectors(expression):
            for name in ("job", "instance"):
                if not re.search(rf'\b{name}=~"\$\{{?{name}\b', selector.matchers):
                    yield f'{where}: {selector.metric or "a selector"} has no {name}=~"${name}"'


def check_rate_interval(board):
    for where, expression in panel_expressions(board):
        for selector in selectors(expression):
            if RATE_FUNCTIONS & set(selector.calls) and selector.range not in (None, "$__rate_interval"):
                yield f"{where}: [{selector.range}] instead of [$__rate_interval]"


def check_counters(board):
    for where, expression in panel_expressions(board):
        for selector in selectors(expression):
            is_counter = selector.metric.endswith(COUNTER_SUFFIXES)
            if is_counter and selector.range is None and selector.metric not in STAIRCASE_COUNTERS:
                yield f"{where}: {selector.metric} without rate() or increase()"
            if not is_counter and selector.metric and RATE_FUNCTIONS & set(selector.calls):
                yield f"{where}: rate of the gauge {selector.metric}"


def check_staircase(board):
    for where, expression in all_expressions(board):
        for selector in selectors(expression):
            if selector.metric in STAIRCASE_COUNTERS and SLOPE_FUNCTIONS & set(selector.calls):
                yield f"{where}: the slope of {selector.metric} says nothing"


def check_promql(board):
    expressions = list(all_expressions(board))
    for index, message in promtool_errors([e for _, e in expressions]):
        where = "a query" if index is None else expressions[index][0]
        yield f"{where}: {message}"


def check_metrics(board, known):
    for where, expression in all_expressions(board):
        for metric in sorted({s.metric for s in selectors(expression)}):
            if metric.startswith("apu_") and metric not in known:
                yield f"{where}: {metric}"


RULES = [
    ("dashboard", check_dashboard),
    ("template-datasource", check_template_datasource),
    ("template-job-instance", check_template_target),
    ("template-on-time-change-reload", check_template_reload),
    ("variables", check_variables),
    ("panel-ids", check_panel_ids),
    ("panel-types", check_panel_types),
    ("grid", check_grid),
    ("panel-title-description", check_panel_text),
    ("datasources", check_datasources),
    ("panel-units", check_units),
    ("targets", check_targets),
    ("target-legends", check_legends),
    ("links", check_links),
    ("target-job-instance", check_matchers),
    ("target-rate-interval", check_rate_interval),
    ("target-counters", check_counters),
    ("hog-staircase", check_staircase),
    ("target-promql", check_promql),
]


# --- running --------------------------------------------------------------------------------------------------------

def canonical(board):
    return json.dumps(board, indent=2, ensure_ascii=False) + "\n"


def lint(board, known=None):
    """Returns "rule: message" for each finding; `known` is the set of metrics that exist, if it is to be checked."""
    findings = [f"{rule}: {message}" for rule, check in RULES for message in check(board)]
    if known is not None:
        findings += [f"unknown-metric: {message}" for message in check_metrics(board, known)]
    return findings


def lint_file(path, known=None):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    try:
        board = json.loads(text)
    except ValueError as error:
        return [f"{path}: json: {error}"]
    findings = lint(board, known)
    if text != canonical(board):
        findings.append("format: must be as json.dumps(indent=2, ensure_ascii=False) prints it, and a newline")
    return [f"{path}: {finding}" for finding in findings]


def metric_names(text):
    """Returns the metrics that a text exposition or a Markdown table names."""
    return set(re.findall(r"^# TYPE (\S+)", text, re.M)) | set(re.findall(r"^\| `(\w+)` \|", text, re.M))


def read_metric_names(path):
    with open(path, encoding="utf-8") as file:
        return metric_names(file.read())


def main():
    parser = argparse.ArgumentParser(description="Lint Grafana dashboards.")
    parser.add_argument("--metrics", metavar="FILE", help="names the metrics that exist")
    parser.add_argument("dashboards", nargs="+", metavar="dashboard.json")
    options = parser.parse_args()
    known = read_metric_names(options.metrics) if options.metrics else None
    findings = [f for path in options.dashboards for f in lint_file(os.path.relpath(path), known)]
    print("\n".join(findings) or "clean")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
