"""Alerts as data: complete, about fields that exist, told in names of metrics that exist, and their files up to date."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel

from plimsoll.alerts import ALERTS
from plimsoll.alerts.base import WHO, Alert
from plimsoll.alerts.generate import generated_files
from plimsoll.alerts.pages import MARK, SECTIONS, alerts_page, runbook
from plimsoll.alerts.records import (
    DRAINING,
    FINISHED,
    ITL,
    KV_USAGE,
    PREEMPTIONS,
    PROMPT,
    RECORDS,
    REFUSED,
    RUNNING,
    TTFT,
    WAITING,
    WORDS,
    Record,
)
from plimsoll.alerts.rules import rules
from plimsoll.alerts.waiting_for_gpus import PAUSE, WAITING_FOR_GPUS
from plimsoll.alerts.waiting_for_nodes import WAITING_FOR_NODES
from plimsoll.api.config import OperatorConfig
from plimsoll.api.v1alpha1.deployment import LLMDeployment
from plimsoll.control.law import LAW
from plimsoll.control.situation import NODE_LEAST_S
from plimsoll.facts.engines import bundled_versions, engine_facts, engine_names, engine_profile
from plimsoll.handlers.alerted import MOST_ALERTS, PATH
from plimsoll.prometheus import own
from plimsoll_runtime.exposition import exposition
from plimsoll_runtime.said import Said

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "runbooks"

SLOWLY_S = 180.0
"""For a scrape and two groups of rules, each once a minute."""

SUPERVISED = exposition(Said(["vllm", "serve"], 0.0).facts(0.0))
"""What a supervisor exports."""

every_alert = pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)


def exists(path: str) -> bool:
    """Whether a resource has such a field, as users spell it."""
    model: type[BaseModel] | None = LLMDeployment
    for part in path.split("."):
        if model is None:
            return False
        found = [field for name, field in model.model_fields.items() if part == (field.alias or name)]
        if not found:
            return False
        below = [one for one in _types(found[0].annotation) if isinstance(one, type)]
        model = next((one for one in below if issubclass(one, BaseModel)), None)
    return True


def _types(annotation: Any) -> list[Any]:
    inner = [one for part in getattr(annotation, "__args__", ()) for one in _types(part)]
    return inner or [annotation]


@pytest.mark.parametrize("path", generated_files(ROOT))
def test_a_file_made_from_the_alerts_is_up_to_date(path: str) -> None:
    assert (ROOT / path).read_text() == generated_files(ROOT)[path], "run `make generate`"


def test_alerts_are_sorted_and_each_has_a_name_of_its_own() -> None:
    assert [alert.name for alert in ALERTS] == sorted({alert.name for alert in ALERTS}, key=str.lower)


@every_alert
def test_levels_rise(alert: Alert) -> None:
    severities = [level.severity for level in alert.levels]
    assert severities == sorted(set(severities), reverse=True)
    assert severities


@every_alert
def test_the_fields_that_an_alert_names_exist(alert: Alert) -> None:
    named = re.findall(
        r"\b(?:spec|status)(?:\.[a-zA-Z0-9]+)+", alert.description + (ROOT / alert.runbook).read_text()
    )
    assert [path for path in named if not exists(path)] == []


@every_alert
def test_a_runbook_says_cause_check_and_cure(alert: Alert) -> None:
    _, _, written = (ROOT / alert.runbook).read_text().partition(MARK)
    titles = re.findall(r"^## (.*)$", written, re.MULTILINE)
    assert tuple(titles) == SECTIONS
    bodies = re.split(r"^## .*$", written, flags=re.MULTILINE)[1:]
    assert [title for title, body in zip(titles, bodies, strict=True) if len(body.split()) < 15] == []


def test_no_runbook_is_left_of_an_alert_that_is_gone() -> None:
    assert {f"docs/runbooks/{page.name}" for page in PAGES.iterdir()} == {alert.runbook for alert in ALERTS}


def test_what_is_written_on_a_runbook_stays_when_its_head_is_made_again() -> None:
    page = runbook(ALERTS[0]) + "\nWhat somebody found.\n"
    assert runbook(ALERTS[0], page) == page


@every_alert
def test_an_alert_about_a_resource_tells_which(alert: Alert) -> None:
    assert (WHO in alert.summary) is (alert.name not in {"OperatorGone", "TurnsFailing"})


def test_every_metric_that_rules_name_is_in_the_vocabulary() -> None:
    histograms = {f"{name}{suffix}" for name in _exported() for suffix in ("_bucket", "_count", "_sum")}
    known = {
        *_exported(),
        *histograms,
        *(metric.name for metric in own.ALL),
        *(record.name for record in RECORDS),
        *re.findall(r"plimsoll_runtime_[a-z_]+", SUPERVISED),
    }
    exprs = [record.expr for record in RECORDS] + [level.expr for alert in ALERTS for level in alert.levels]
    named = {
        word
        for expr in exprs
        for word in re.findall(r"\b[a-z]+:[a-z0-9_:]+|\b(?:plimsoll|tgi|trtllm)_[a-z_]+", expr)
    }
    assert named - known == set()
    assert len(named) > 20


def test_a_pod_drains_by_a_series_that_its_supervisor_exports() -> None:
    said, _, value = DRAINING.partition(" == ")
    assert value == "1"
    assert f"\n{said} " in SUPERVISED


@pytest.mark.parametrize("engine", engine_names())
@pytest.mark.parametrize(
    ("word", "record"),
    [
        ("running", RUNNING),
        ("waiting", WAITING),
        ("kvUsage", KV_USAGE),
        ("preemptions", PREEMPTIONS),
        ("requestSuccess", FINISHED),
        ("admissionRejections", REFUSED),
        ("timeToFirstToken", TTFT),
        ("interToken", ITL),
        ("promptLength", PROMPT),
    ],
)
def test_what_an_engine_exports_is_recorded_whichever_engine_and_version_it_is(
    engine: str, word: str, record: Record
) -> None:
    versions = [engine_facts(engine, version).metrics for version in bundled_versions(engine)]
    told = {
        name
        for metrics in (engine_profile(engine).metrics, *versions)
        for name in metrics.get(word, metrics.get("timePerOutputToken", ()) if word == "interToken" else ())
    }
    assert [name for name in told if name not in record.expr] == []


def test_what_is_made_of_all_buckets_of_all_replicas_is_worked_out_once_a_minute() -> None:
    groups = {group["name"]: group for group in rules()["groups"]}
    assert groups["plimsoll.latencies"]["interval"] == "1m"
    often = [
        rule["expr"]
        for group in groups.values()
        if "interval" not in group
        for rule in group["rules"]
        if "_bucket{" in rule["expr"]
    ]
    assert often == []


def test_every_record_is_worked_out_after_those_that_it_is_told_in() -> None:
    names = {record.name for record in RECORDS}
    recorded = [
        [rule for rule in group["rules"] if "record" in rule]
        for group in rules()["groups"]
        if "record" in group["rules"][0]
    ]
    for group in recorded:
        there: set[str] = set()
        for rule in group:
            assert {name for name in names if name in rule["expr"]} <= there
            there.add(rule["record"])
    assert sorted(rule["record"] for group in recorded for rule in group) == sorted(names)


def test_what_rules_add_up_or_hold_together_is_of_one_cluster() -> None:
    exprs = [rule["expr"] for group in rules()["groups"] for rule in group["rules"]]
    grouped = [found for expr in exprs for found in re.findall(r"\b(?:by|on) \(([^)]*)\)", expr)]
    assert [one for one in grouped if not one.startswith("cluster")] == []
    assert len(grouped) > 50
    plain = [expr for expr in exprs if re.search(r"\b(?:sum|avg|max|min|count) ?\((?!.*\bby\b)", expr)]
    assert plain == [], "adds up all clusters"


@pytest.mark.parametrize(
    ("alert", "given_up"), [(WAITING_FOR_GPUS, LAW.withdraw_s), (WAITING_FOR_NODES, NODE_LEAST_S)]
)
def test_a_replica_without_a_place_is_told_of_before_the_law_gives_it_up(
    alert: Alert, given_up: float
) -> None:
    """Else nobody would ever be told of those that are asked for again and again."""
    (level,) = alert.levels
    assert minutes(level.lasting) * 60 + SLOWLY_S < given_up


def test_an_alert_about_missing_gpus_lasts_while_replicas_are_given_up_and_asked_for_again() -> None:
    (level,) = WAITING_FOR_GPUS.levels
    assert minutes(PAUSE) * 60 > LAW.retry_most_s + minutes(level.lasting) * 60 + SLOWLY_S


def minutes(text: str) -> int:
    return int(text.removesuffix("m"))


def _exported() -> set[str]:
    return {name for names in WORDS.names.values() for name in names}


def test_the_operators_metrics_keep_the_customs_of_prometheus() -> None:
    names = [metric.name for metric in own.ALL]
    assert len(names) == len(set(names))
    for metric in own.ALL:
        assert (metric.kind == "counter") == metric.name.endswith("_total"), metric.name
        assert metric.text.endswith("."), metric.name
        assert not {"namespace", "pod", "container", "job", "instance"} & set(metric.labels), metric.name


def test_the_page_tells_alertmanager_where_and_how_much_the_operator_hears() -> None:
    (shown,) = re.findall(r"^```yaml\n(.*?)^```$", alerts_page(), re.MULTILINE | re.DOTALL)
    (webhook,) = yaml.safe_load(shown)["receivers"][0]["webhook_configs"]
    assert webhook["url"].endswith(PATH)
    assert webhook["max_alerts"] == MOST_ALERTS


def test_the_page_s_route_is_no_slower_than_the_loop_that_it_is_to_shorten() -> None:
    (shown,) = re.findall(r"^```yaml\n(.*?)^```$", alerts_page(), re.MULTILINE | re.DOTALL)
    (route,) = yaml.safe_load(shown)["route"]["routes"]
    assert route["group_by"] == ["namespace", "llm"]
    assert route["group_wait"] == "0s"
    assert int(route["group_interval"].removesuffix("s")) <= OperatorConfig().control.interval_seconds
