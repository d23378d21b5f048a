"""What the chart brings for those who watch: rules and dashboards as they are generated, only where they are asked for."""

from __future__ import annotations

import json

import pytest

from chart import VALUES, objects, rendered
from plimsoll.alerts.dashboards import DASHBOARDS, dashboard_json
from plimsoll.alerts.rules import rules


def test_the_rules_are_those_of_the_alerts_and_their_runbooks_are_where_the_admin_says() -> None:
    (rule,) = (one for one in objects(rendered(VALUES["everything"])) if one["kind"] == "PrometheusRule")
    at = "https://git.example/plimsoll/blob/v1/docs/runbooks/"
    assert rule["spec"] == json.loads(json.dumps(rules()).replace("docs/runbooks/", at))
    assert rule["metadata"]["labels"]["release"] == "prometheus"


@pytest.mark.parametrize(
    ("given", "at"), [("https://git.example/plimsoll", "https://git.example/plimsoll/docs/"), ("", "docs/")]
)
def test_a_repository_needs_no_slash_at_its_end(given: str, at: str) -> None:
    asked = ("--set", "metrics.rules.enabled=true", "--set", f"metrics.rules.repository={given}")
    (rule,) = (one for one in objects(rendered(VALUES["default"], *asked)) if one["kind"] == "PrometheusRule")
    told = [
        each["annotations"]["runbook_url"]
        for group in rule["spec"]["groups"]
        for each in group["rules"]
        if "alert" in each
    ]
    assert told
    assert all(url.startswith(f"{at}runbooks/") for url in told)


def test_the_dashboards_are_those_that_are_generated() -> None:
    found = objects(rendered(VALUES["everything"]))
    (held,) = (one for one in found if one["metadata"]["name"].endswith("-dashboards"))
    assert held["data"] == {f"plimsoll-{one.file}": dashboard_json(one).strip() for one in DASHBOARDS}
    assert held["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert len(json.dumps(held)) < 900_000, "an object holds a megabyte"


def test_neither_is_there_unasked() -> None:
    found = objects(rendered(VALUES["default"]))
    assert {one["kind"] for one in found} & {"PrometheusRule"} == set()
    assert [one for one in found if one["metadata"]["name"].endswith(("-dashboards", "-alerts"))] == []


@pytest.mark.parametrize("given", ["alerts.certificateSecret=tls", "alerts.tokenSecret=token"])
def test_alerts_are_not_heard_without_a_certificate_and_a_token(given: str) -> None:
    with pytest.raises(ValueError, match=r"alerts\.enabled needs alerts\."):
        rendered(VALUES["default"], "--set", f"alerts.enabled=true,{given}")
