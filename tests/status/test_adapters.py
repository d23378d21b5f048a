"""On how many replicas an adapter is, and why not on the others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plimsoll import names
from plimsoll.api.conditions import get_condition
from plimsoll.api.v1alpha1.status import LLMDeploymentStatus
from plimsoll.engines.adapters import adapter_id
from plimsoll.facts.report import AdapterSeen, Report
from plimsoll.facts.serving import Stage
from plimsoll.status.adapters import adapters_of
from plimsoll.status.told import status_after
from tests.status.stories import NOW, pod, story

SQL, LAW = {"name": "sql", "source": "hf://acme/sql"}, {"name": "law", "source": "pvc://adapters/law"}
AT_RUN_TIME = {"adapters": {"runtimeLoading": True, "items": [SQL, LAW]}}
FIXED = {"adapters": {"items": [SQL, LAW]}}


def reports(*replicas, spec):
    """What each replica tells of its adapters: state, or state with reason, message and remedy."""
    ids = {item.name: adapter_id(item) for item in spec.adapters.items}
    found = {}
    for number, adapters in enumerate(replicas):
        seen = []
        for name, said in (adapters or {}).items():
            state, *rest = (said,) if isinstance(said, str) else said
            more = dict(zip(("reason", "message", "remedy"), rest, strict=False))
            seen.append(AdapterSeen(name=name, id=ids.get(name, "other"), state=state, **more))
        found[str(number)] = Report(state="serving", adapters=None if adapters is None else tuple(seen))
    return found


def one(*replicas, said=AT_RUN_TIME, port=8079, **others):
    pods = [pod(number=number, runtime_port=port) for number in range(len(replicas))]
    made = story(*pods, spec={**said, "replicas": len(replicas)}, **others)
    spec = made.deployment.spec
    return replace(made, adapters=spec.adapters, reports=reports(*replicas, spec=spec))


def seen(*replicas, **others):
    return {found.name: found for found in adapters_of(one(*replicas, **others))}


BOTH = {"sql": "Loaded", "law": "Loaded"}


def test_an_adapter_counts_as_loaded_once_all_replicas_that_serve_have_it():
    found = seen(BOTH, BOTH | {"law": ("Waiting", "", "the engine does not answer")})
    assert list(found) == ["law", "sql"]
    assert (found["sql"].state, found["sql"].loaded, found["sql"].replicas, found["sql"].message) == (
        "Loaded",
        2,
        2,
        None,
    )
    assert (found["law"].state, found["law"].loaded, found["law"].reason) == ("Loading", 1, "Waiting")
    assert found["law"].message == "on 1 of 2 replicas: the engine does not answer"


def test_one_that_a_replica_cannot_load_has_failed_with_its_reason_and_remedy():
    refused = ("Failed", "AdapterRank", "its rank is 64", "spec.adapters.maxRank: 64")
    found = seen(BOTH | {"sql": ("Waiting", "", "w")}, BOTH | {"sql": refused})
    assert (found["sql"].state, found["sql"].reason) == ("Failed", "AdapterRank")
    assert found["sql"].message == "on 0 of 2 replicas: its rank is 64. Remedy: spec.adapters.maxRank: 64"
    assert found["law"].state == "Loaded"


def test_a_set_whose_supervisor_was_never_told_of_a_list_says_what_it_takes():
    """Of the release before; it keeps serving as it is, so nothing would ever come of waiting."""
    made = one(None)
    status = status_after(made, LLMDeploymentStatus(), NOW)
    assert [(found.state, found.reason) for found in status.adapters] == [("Failed", "NoList")] * 2
    assert "Remedy: a new set (any edit of spec.podAnnotations)" in str(status.adapters[0].message)
    for report in ({}, {"0": Report(state="starting")}):
        found = adapters_of(replace(made, reports=report))
        assert {(each.state, each.reason) for each in found} == {("Loading", "ListUntold")}


@pytest.mark.parametrize("adapters", [{}, {"other": "Loaded"}])
def test_what_was_told_of_an_earlier_list_counts_for_nothing(adapters):
    found = seen(adapters)
    assert (found["sql"].state, found["sql"].loaded, found["sql"].reason) == ("Loading", 0, "ListUntold")


def test_another_revision_than_the_declared_one_is_not_it():
    made = one(BOTH)
    earlier = AdapterSeen(name="sql", id="of another revision", state="Loaded")
    made = replace(made, reports={"0": Report(state="serving", adapters=(earlier,))})
    assert adapters_of(made)[1].state == "Loading"


def test_without_a_supervisor_it_is_said_who_would_load_them():
    made = one(None, port=None)
    status = status_after(made, LLMDeploymentStatus(), NOW)
    assert [found.reason for found in status.adapters] == ["NoSupervisor"] * 2
    degraded = get_condition(status.conditions, names.DEGRADED)
    assert degraded is not None
    assert (degraded.status, degraded.reason) == ("True", "AdapterFailed")
    assert "runtime.enabled" in degraded.message
    assert "adapter law (and 1 more)" in degraded.message


def test_while_nobody_serves_they_are_on_their_way():
    made = one(None)
    loading = replace(made.serving.sets[0], pods=(pod(Stage.LOADING),))
    made = replace(made, serving=replace(made.serving, sets=(loading,)))
    assert [(found.state, found.replicas, found.message) for found in adapters_of(made)] == [
        ("Loading", 0, "no replica serves yet")
    ] * 2


def test_those_in_the_engines_words_are_there_when_it_serves():
    found = seen(None, None, said=FIXED, port=None)
    assert {name: (each.state, each.loaded, each.replicas) for name, each in found.items()} == {
        "law": ("Loaded", 2, 2),
        "sql": ("Loaded", 2, 2),
    }


def test_names_that_every_replica_answers_for_stand_beside_the_models_own():
    made = replace(one(BOTH | {"law": "Fetching"}), endpoint="http://chat.team-a.svc", model_names=("chat",))
    status = status_after(made, LLMDeploymentStatus(), NOW)
    assert status.endpoint is not None
    assert status.endpoint.model_names == ("chat", "sql")
    assert [found.state for found in status.adapters] == ["Loading", "Loaded"]
    degraded = get_condition(status.conditions, names.DEGRADED)
    assert degraded is not None
    assert degraded.status == "False"


def test_a_list_that_was_emptied_leaves_the_status():
    before = status_after(one(BOTH), LLMDeploymentStatus(), NOW)
    assert before.adapters
    made = replace(one({}, said={"adapters": {"runtimeLoading": True}}))
    assert status_after(made, before, NOW).adapters == ()
