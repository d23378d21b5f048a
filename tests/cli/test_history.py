"""`plimsoll history` against a server that answers lists: a table for people, data for programs."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from plimsoll import names
from plimsoll.control.record import Act, Record
from plimsoll.control.retune import Past, Phase, RetuneMemory
from plimsoll.reconcile.kept import CONTROL_KEY, Kept
from tests.cli.running import plimsoll
from tests.kube.api_server import Api, serving
from tests.render.building import plan_of, resource
from tests.status.test_live import STEP

MAPS = "/api/v1/configmaps"
RECORD = Record(
    replicas=4,
    acts=(
        Act(at=1_800_000_060.0, what="scale", before="1", after="4", reason="LoadRose", message="1 to 4 replicas: 3.7 by requests"),
    ),
)  # fmt: skip


def kept(record: Record | None, name: str = "chat") -> dict[str, Any]:
    whole = Kept(plan=plan_of(resource()), control=record)
    assert whole.plan is not None
    return {
        "metadata": {
            "name": f"{name}-plan",
            "namespace": "team-a",
            "labels": {names.LABEL_DEPLOYMENT: name},
        },
        "data": {**whole.beside(), names.PLAN_KEY: whole.plan.to_bytes().decode()},
    }


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Api]:
    with serving(tmp_path) as server:
        server.lists[MAPS] = [kept(RECORD), kept(None, "other")]
        yield server


def test_each_decision_is_a_row_with_its_reason(cluster: Api) -> None:
    ran = plimsoll("history", "chat")
    assert ran.code == 0, ran.err
    assert "team-a/chat" in ran.out
    assert "1 → 4" in ran.out
    assert "LoadRose" in ran.out
    assert "3.7 by requests" in ran.out


def test_a_pause_is_told_with_what_ends_it(cluster: Api) -> None:
    paused = replace(RECORD, retune=replace(RECORD.retune, paused_at=1_800_000_000.0))
    cluster.lists[MAPS] = [kept(paused)]
    said = " ".join(plimsoll("history", "chat").out.split())
    assert "since 2027-01-15T08:00:00Z: retunes failed repeatedly" in said
    assert f"a new value of the annotation {names.ANNOTATION_RESET} lets it try again" in said
    (found,) = json.loads(plimsoll("history", "chat", "-o", "json").out).values()
    assert found["pausedAt"] == "2027-01-15T08:00:00Z"


@pytest.mark.parametrize("what", ["watermark", "watermark on tp1 on H100-SXM-80GB", None])
def test_a_retune_that_is_under_way_says_of_which_set_it_is_where_there_are_several(
    cluster: Api, what: str | None
) -> None:
    """As its last decision does; that of one that is long under way may be forgotten."""
    acts = RECORD.acts
    if what is not None:
        acts += (replace(acts[0], what=what, reason="RetunePlanned"),)
    going = replace(RECORD, acts=acts, retune=RetuneMemory(step=STEP))
    cluster.lists[MAPS] = [kept(going)]
    said = " ".join(plimsoll("history", "chat").out.split())
    assert f"retune {what or 'watermark'} 0 to 31, Judging" in said


def test_programs_get_the_same_as_data(cluster: Api) -> None:
    ran = plimsoll("history", "chat", "-o", "json")
    (found,) = json.loads(ran.out).values()
    assert found["replicas"] == 4
    assert found["pausedAt"] is None
    assert found["decisions"][0]["reason"] == "LoadRose"
    assert found["decisions"][0]["at"] == "2027-01-15T08:01:00Z"


def test_what_a_dry_run_suggests_names_its_set_in_each_place(cluster: Api) -> None:
    one, other = "tp1 on H100-SXM-80GB", "tp1 on A100-SXM-80GB"
    suggested = tuple(
        Past(
            id=f"watermark-{place}", setting="watermark", before="0", after="31", symptom="preemptions",
            outcome=Phase.PLANNED, began=place, ended=place, reason=f"{of}: 30% are preempted", tried=False,
        )
        for place, of in ((2, one), (1, other))
    )  # fmt: skip
    acts = tuple(
        replace(RECORD.acts[0], what=f"watermark on {of}", reason="RetuneSuggested") for of in (one, other)
    )
    retune = RetuneMemory(suggested=suggested[0], suggested_before=suggested[1:])
    cluster.lists[MAPS] = [kept(replace(RECORD, acts=acts, retune=retune))]
    said = "".join(plimsoll("history", "chat").out.split())
    for of in (one, other):
        assert f"watermark on {of}".replace(" ", "") in said
    (found,) = json.loads(plimsoll("history", "chat", "-o", "json").out).values()
    assert [(each["state"], each["reason"]) for each in found["retunes"]] == [
        ("DryRun", f"{of}: 30% are preempted") for of in (one, other)
    ]


def test_where_nothing_was_decided_it_is_said(cluster: Api) -> None:
    assert "nothing was decided" in plimsoll("history", "other").out
    cluster.lists[MAPS] = [kept(replace(RECORD, acts=()))]
    assert "nothing was decided" in plimsoll("history", "chat").out


@pytest.mark.parametrize("name", ["team-a/chat", "chat,x=y", "", "a" * 64])
def test_what_can_be_no_name_is_said_of_the_name_and_asked_of_no_cluster(cluster: Api, name: str) -> None:
    """In a selector it is a bad request, or another request than was meant."""
    ran = plimsoll("history", name)
    assert (ran.code, ran.out) == (3, "")
    assert f"NAME: {name!r} is no name of an LLMDeployment" in ran.err
    assert "-n NAMESPACE" in ran.err
    assert cluster.asked == []


def test_a_name_that_is_not_there_is_an_error_that_says_so(cluster: Api) -> None:
    cluster.lists["/api/v1/namespaces/team-b/configmaps"] = []
    ran = plimsoll("history", "nobody", "-n", "team-b")
    assert (ran.code, ran.out) == (3, "")
    assert "nobody" in ran.err


def test_a_cluster_that_lets_nobody_look_is_an_error(cluster: Api) -> None:
    cluster.lists[MAPS] = 403
    cluster.lists["/api/v1/namespaces/team-a/configmaps"] = 403
    ran = plimsoll("history", "chat")
    assert ran.code == 3
    assert "403 Forbidden" in ran.err
    assert "name a namespace that you may list: -n NAMESPACE" in ran.err
    assert "list must be allowed" in plimsoll("history", "chat", "-n", "team-a").err


def test_what_cannot_be_read_is_not_told_as_nothing(cluster: Api) -> None:
    torn = kept(RECORD)
    torn["data"][CONTROL_KEY] = "{"
    cluster.lists[MAPS] = [torn]
    ran = plimsoll("history", "chat")
    assert (ran.code, ran.out) == (3, "")
    assert "team-a/chat: what was decided is kept there, and this release cannot read it" in ran.err
    other = kept(RECORD)
    other["metadata"]["namespace"] = "team-b"
    cluster.lists[MAPS] = [torn, other]
    ran = plimsoll("history", "chat", "-o", "json")
    assert (ran.code, list(json.loads(ran.out))) == (0, ["team-b/chat"])
    assert "team-a/chat: what was decided is kept there" in ran.err
