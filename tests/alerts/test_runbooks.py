"""Runbooks are read at night: what they say to type can be typed, and what an alert says is the resource's own."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from plimsoll import names
from plimsoll.alerts import ALERTS
from plimsoll.alerts.base import WHO, Alert
from plimsoll.alerts.pages import MARK, alerts_page, runbook
from plimsoll.alerts.records import WORDS
from plimsoll.cli.main import cli
from plimsoll.prometheus import own, vocabulary

ROOT = Path(__file__).parents[2]
FLEETS = {"fleet", "nodes_file", "snapshot_file", "context"}
OF_NO_NAMESPACE = {"nodes"}

every_alert = pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)


def commands(text: str, program: str) -> list[list[str]]:
    """What follows the program's name, in each command of the text and in each part of a pipe."""
    parts = (part for line in re.findall(r"`([^`\n]+)`", text) for part in line.split(" | "))
    split = (shlex.split(part) for part in parts if part.startswith(f"{program} "))
    return [words for _, *words in split]


@every_alert
def test_a_command_of_ours_can_be_typed_as_it_is_written(alert: Alert) -> None:
    for name, *words in commands((ROOT / alert.runbook).read_text(), "plimsoll"):
        command = cli.get_command(click.Context(cli), name)
        assert command is not None, name
        filled = ["team" if word == "NAMESPACE" else word for word in words]
        given = command.make_context(name, filled).params
        if given.keys() >= FLEETS:
            assert any(given[one] is not None for one in FLEETS), f"{name} {words} names no fleet"
        if "field" in given:
            assert given["field"] != "NAME", "explain takes a field, not a resource"


@every_alert
def test_a_command_for_kubectl_says_in_which_namespace(alert: Alert) -> None:
    for words in commands((ROOT / alert.runbook).read_text(), "kubectl"):
        if "--raw" not in words and not OF_NO_NAMESPACE & set(words):
            assert "-n NAMESPACE" in " ".join(words) or "-A" in words or "-n plimsoll" in " ".join(words), (
                words
            )


def test_how_to_find_a_deployments_pods_is_told_where_a_pod_is_looked_at() -> None:
    pages = [(ROOT / alert.runbook).read_text() for alert in ALERTS if WHO in alert.summary]
    asked = [page for page in pages if re.search(r"`kubectl [^`]*\bPOD\b", page)]
    assert asked
    found = f"kubectl get pods -n NAMESPACE -l {names.LABEL_DEPLOYMENT}=NAME"
    assert [page.splitlines()[0] for page in asked if found not in page] == []


@every_alert
def test_a_command_in_an_alert_names_the_resource_that_it_is_about(alert: Alert) -> None:
    for words in (*commands(alert.description, "plimsoll"), *commands(alert.description, "kubectl")):
        said = " ".join(words)
        assert "{{ $labels.llm }} -n {{ $labels.namespace }}" in said
    assert "{{" not in runbook(alert)


FLEET_WIDE = {metric.name for metric in own.ALL if "llm" not in metric.labels} | {own.DEVICES.name}
METRIC = re.compile(r"\b(?:llm|vllm):[a-z0-9_:]+|\bplimsoll_[a-z_]+")
HISTOGRAMS = {name for words in vocabulary.HISTOGRAMS.values() for name in WORDS.of(*words)}


@every_alert
def test_a_query_is_about_the_deployment_that_is_alerted_of_and_finds_something(alert: Alert) -> None:
    _, _, written = (ROOT / alert.runbook).read_text().partition("\n## Check\n")
    check, _, _ = written.partition("\n## Cure\n")
    for query in re.findall(r"`([^`\n]+)`", check):
        for found in METRIC.finditer(query):
            name, rest = found.group(), query[found.end() :]
            if name not in FLEET_WIDE:
                assert re.match(r'\{[^}]*namespace="NAMESPACE",(?:pod=~"NAME-|llm="NAME")', rest), query
            assert name not in HISTOGRAMS, f"{query}: there is no series of that name, but of its buckets"


@every_alert
def test_levels_of_one_alert_are_told_apart_by_more_than_a_word(alert: Alert) -> None:
    wheres = [level.where for level in alert.levels]
    assert len(set(wheres)) == len(wheres)
    rows = [row for row in alerts_page().splitlines() if row.startswith(f"| [{alert.alert}]")]
    assert len(rows) == len(wheres)
    assert all(where in row for where, row in zip(wheres, rows, strict=True))
    assert all(where in runbook(alert) for where in wheres)


@every_alert
def test_another_alert_is_a_link_to_its_runbook(alert: Alert) -> None:
    _, _, written = (ROOT / alert.runbook).read_text().partition(MARK)
    others = "|".join(one.name for one in ALERTS if one is not alert)
    assert re.findall(rf"(?<!\[)\bPlimsoll(?:{others})\b", written) == []
