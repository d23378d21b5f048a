"""The alerts, judged by Prometheus' own programs: each fires when it should, and none when it should not."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import alert_case
import alert_cases
import alert_edges
import alert_series
import dashboard_cases
from cluster.metrics import promtool
from common import ROOT
from plimsoll.alerts import ALERTS
from plimsoll.alerts.dashboards import DASHBOARDS
from plimsoll.alerts.operator_gone import OPERATOR_GONE
from plimsoll.alerts.thresholds import TABLE
from plimsoll.alerts.ttft_over_slo import TTFT_OVER_SLO

RULES = ROOT / "charts" / "plimsoll" / "files" / "rules.yaml"


def test_the_rules_can_be_read() -> None:
    said = promtool("check", "rules", "--lint-fatal", RULES)
    assert said.returncode == 0, said.stdout + said.stderr


def test_every_alert_fires_when_it_should_and_no_other_does(tmp_path: Path) -> None:
    file = tmp_path / "tests.json"
    file.write_text(json.dumps(alert_case.tests(str(RULES), alert_cases.CASES)))
    said = promtool("test", "rules", file)
    assert said.returncode == 0, said.stdout + said.stderr


def test_beyond_each_number_its_alert_fires_and_just_before_it_does_not(tmp_path: Path) -> None:
    assert set(alert_edges.EDGES) == set(TABLE)
    file, rules = tmp_path / "tests.json", tmp_path / "rules.yaml"
    # What fires is to be what holds: a queue that shrinks was longer a moment before.
    rules.write_text(re.sub(r"^ *keep_firing_for: .*\n", "", RULES.read_text(), flags=re.MULTILINE))
    file.write_text(json.dumps(alert_case.tests(str(rules), alert_edges.cases())))
    said = promtool("test", "rules", file)
    assert said.returncode == 0, said.stdout + said.stderr


def test_an_alert_about_a_promise_says_what_was_promised_beside_what_was_measured(tmp_path: Path) -> None:
    late = alert_series.ttft(le_0_5=0, le_3=60, le_10=60, inf=60)
    read = alert_case.tests(str(RULES), [alert_case.case("late", late, "TTFTOverSLO")])
    (one,) = read["tests"]
    one["alert_rule_test"] = [{"eval_time": "30m", "alertname": TTFT_OVER_SLO.alert, "exp_alerts": []}]
    file = tmp_path / "tests.json"
    file.write_text(json.dumps(read))
    found = promtool("test", "rules", file)
    assert "99 of 100 take up to 2.975s, and 2s is promised in" in found.stdout + found.stderr


def test_every_query_of_a_runbook_can_be_read(tmp_path: Path) -> None:
    pages = [(ROOT / alert.runbook).read_text() for alert in ALERTS]
    spans = [span for page in pages for span in re.findall(r"`([^`\n]+)`", page)]
    queries = [span for span in spans if re.search(r"\bv?llm:|\bplimsoll_", span)]
    assert len(queries) > 30
    rules = [{"record": f"found:{number}", "expr": query} for number, query in enumerate(queries)]
    file = tmp_path / "rules.json"
    file.write_text(json.dumps({"groups": [{"name": "runbooks", "rules": rules}]}))
    said = promtool("check", "rules", file)
    assert said.returncode == 0, said.stdout + said.stderr


def of(cluster: str, labels: str) -> str:
    return labels.replace("{", f'{{cluster="{cluster}",', 1)


def of_two_clusters() -> dict[str, Any]:
    """All cases, each beside a cluster in which the same deployment is well: what fires is of the other one."""
    read = alert_case.tests(str(RULES), alert_cases.CASES)
    well = [{"series": of("us-1", name), "values": values} for name, values in alert_series.WELL.items()]
    for one in read["tests"]:
        series = [{**each, "series": of("eu-1", each["series"])} for each in one["input_series"]]
        one["input_series"] = [*series, *well]
        (asked,) = one["promql_expr_test"]
        asked["expr"] = 'count by (alertname, severity, cluster) (ALERTS{alertstate="firing"})'
        # That none acts is told only where none does in either.
        asked["exp_samples"] = [
            {**said, "labels": of("eu-1", said["labels"])}
            for said in asked["exp_samples"]
            if OPERATOR_GONE.alert not in said["labels"]
        ]
    return read


def test_of_two_clusters_with_the_same_deployment_each_is_alerted_about_by_itself(tmp_path: Path) -> None:
    file = tmp_path / "tests.json"
    file.write_text(json.dumps(of_two_clusters()))
    said = promtool("test", "rules", file)
    assert said.returncode == 0, said.stdout + said.stderr


def test_every_level_of_every_alert_is_seen_to_fire_and_not_to() -> None:
    levels = {(alert.alert, level.severity) for alert in ALERTS for level in alert.levels}
    assert set().union(*(one.fires for one in alert_cases.CASES)) == levels


def test_every_query_of_the_dashboards_finds_something_where_all_is_there(tmp_path: Path) -> None:
    queries = [
        target["expr"]
        for one in DASHBOARDS
        for panel in one.to_data()["panels"]
        for target in panel.get("targets", ())
    ]
    chosen = {"$cluster": "", "$namespace": "team", "$llm": "chat", "$__rate_interval": "5m"}
    for name, value in chosen.items():
        queries = [query.replace(name, value) for query in queries]
    file = tmp_path / "tests.json"
    file.write_text(json.dumps(dashboard_cases.found(str(RULES), queries)))
    said = promtool("test", "rules", file)
    assert said.returncode == 0, said.stdout + said.stderr
    assert len(queries) > 40
