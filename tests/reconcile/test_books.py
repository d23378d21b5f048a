"""What turns leave for the operator's own metrics: bounded words, nothing unknown told as zero, and nothing of what is gone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from plimsoll import names
from plimsoll.api.config import OperatorConfig
from plimsoll.api.v1alpha1.deployment import LLMDeployment
from plimsoll.api.v1alpha1.status import LLMDeploymentStatus, RampStatus, SetStatus
from plimsoll.control.decision import Told
from plimsoll.control.retune.steps import Phase
from plimsoll.facts.gpus import Gpu, UnknownGpu
from plimsoll.facts.serving import PodSeen, Serving, SetSeen, Stage
from plimsoll.reconcile import books
from plimsoll.reconcile.books import OTHER, Books, Figures
from plimsoll.status.told import News, ramp_news, unreadable
from tests.control.test_properties import DONE

CONFIG = OperatorConfig()
STATUS = LLMDeploymentStatus.model_validate({
    "conditions": [
        {"type": kind, "status": status, "reason": "R", "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        for kind, status in (("Ready", "True"), ("Degraded", "False"), ("MetricsAvailable", "Unknown"))
    ],
    "replicaStatus": {"wanted": 3, "ready": 1, "waitingForGpus": 2, "starting": 0},
    "plan": {
        "digest": "d", "layout": "tp2", "gpu": "L40S-48GB", "gpusPerReplica": 2, "kvTokens": 1000,
        "predictedTtftMs": 500, "predictedItlMs": 25, "predictedRunning": 32,
    },
})  # fmt: skip


def deployment(uid: str = "u", **spec: Any) -> LLMDeployment:
    return LLMDeployment.observed(
        {
            "metadata": {"name": "chat", "namespace": "team", "uid": uid, "generation": 1},
            "spec": {"model": {"source": "hf://Qwen/Qwen3-8B"}, **spec},
        }
    )


def serving(**restarts: int) -> Serving:
    pods = tuple(PodSeen(name=uid, uid=uid, stage=Stage.READY, restarts=n) for uid, n in restarts.items())
    return Serving(sets=(SetSeen(name="chat-0a1b2c3d", replicas=1, pods=pods),))


def figures(books: Books) -> Figures:
    ((key, found),) = books
    assert key == "team/chat"
    return found


def noted(status: LLMDeploymentStatus = STATUS, **spec: Any) -> Figures:
    books = Books()
    books.note(deployment(**spec), status, Serving(), CONFIG, 0.0)
    return figures(books)


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("Missing", [False]),
        ("OutOfDate", [False]),
        ("Outage", [False]),
        ("QueryRefused", []),
        ("QueryUnanswered", []),
        ("QueryFailed", []),
    ],
)
def test_a_wake_query_that_is_refused_or_finds_nothing_leaves_nobody_in_the_dark(
    reason: str, told: list[bool]
) -> None:
    (_, _, metrics) = STATUS.conditions
    said = metrics.model_copy(update={"status": "False", "reason": reason})
    found = noted(STATUS.model_copy(update={"conditions": [said]}))
    assert [holds for kind, holds in found.conditions if kind == names.METRICS] == told


def test_a_status_becomes_figures() -> None:
    found = noted(slo={"ttftP99Ms": 2000, "availabilityPercent": "99.9"})
    assert dict(found.replicas)["wanted"] == 3
    assert dict(found.replicas)["waiting_gpus"] == 2
    assert found.devices == 6
    assert found.slo == (("ttft_p99", 2.0),)
    assert found.availability == 0.999
    assert dict(found.predicted) == {"ttft_p99": 0.5, "itl_p99": 0.025}
    assert (found.tensor, found.link) == (2, "pcie")


@pytest.mark.parametrize(
    ("sets", "devices"),
    [
        ([("tp2", 2), ("tp8-pp2-dp2-ep", 1)], 2 * 2 + 32),
        ([("tp4", 1)], 4 + 2 * 2),
        ([("tp2", 3), ("tp1", 1)], 3 * 2 + 1),
        ([("", 3)], 3 * 2),
    ],
    ids=[
        *("two pools", "what no set runs yet counts as the first's", "a canary beside all that are wanted"),
        "a layout that is not told",
    ],
)
def test_each_set_takes_devices_of_its_own(sets: list[tuple[str, int]], devices: int) -> None:
    told = tuple(
        SetStatus(name=f"chat-{place}", layout=layout or None, replicas=replicas)
        for place, (layout, replicas) in enumerate(sets)
    )
    assert noted(STATUS.model_copy(update={"sets": told})).devices == devices


@pytest.mark.parametrize(
    ("status", "reason", "besides", "told"),
    [
        ("True", "GPUsUnavailable", (), ("GPUsUnavailable",)),
        ("True", "BudgetExhausted", ("GPUsUnavailable",), ("BudgetExhausted", "GPUsUnavailable")),
        ("True", "BudgetExhausted", None, ("BudgetExhausted",)),
        ("True", "SetReplicas", ("GPUsUnavailable",), ("SetReplicas",)),
        ("True", "0xdeadbeef", ("0xdead", "0xbeef"), (OTHER,)),
        ("False", "GPUsUnavailable", (), ()),
    ],
    ids=[
        *("a reason", "a further one beside it", "before control has decided", "turns tell another"),
        *("words that are not ours", "nothing limits it"),
    ],
)
def test_what_limits_scaling_is_told_by_all_its_reasons_while_it_does(
    status: str, reason: str, besides: tuple[str, ...] | None, told: tuple[str, ...]
) -> None:
    (ready, _, _) = STATUS.conditions
    limited = ready.model_copy(update={"type": names.SCALING, "status": status, "reason": reason})
    after = STATUS.model_copy(update={"conditions": (limited,)})
    of_control = "BudgetExhausted" if reason == "SetReplicas" else reason
    live = () if besides is None else (Told(names.SCALING, "True", of_control, "m", besides),)
    books = Books()
    books.note(deployment(), after, Serving(), CONFIG, 0.0, live=live)
    assert figures(books).limited == told


def test_what_is_not_known_is_left_out_and_never_zero() -> None:
    assert dict(noted().kv_tokens) == {"predicted": 1000}
    assert dict(noted().conditions) == {"Ready": True, "Degraded": False}
    nothing = noted(LLMDeploymentStatus())
    assert nothing == Figures()


@pytest.mark.parametrize(
    ("gpu", "layout", "link"),
    [
        ("H100-SXM-80GB", "tp8", "nvlink"),
        ("H100-SXM-80GB, L40S-48GB", "tp4-pp2", "nvlink"),
        ("L40S-48GB", "tp4", "pcie"),
        ("H100-SXM-80GB", "tp16", "pcie"),
        ("Made-Up-9000", "tp2", "unknown"),
    ],
)
def test_what_joins_the_gpus_of_a_layer_is_told_by_the_catalogue(gpu: str, layout: str, link: str) -> None:
    plan = STATUS.plan
    assert plan is not None
    status = STATUS.model_copy(update={"plan": plan.model_copy(update={"gpu": gpu, "layout": layout})})
    assert noted(status).link == link


def test_names_like_that_of_a_gpu_that_nobody_knows_are_looked_for_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """That takes six times as long as all the rest of a turn with nothing to do, and a fleet has thousands of these."""
    asked = []

    def unknown(name: str) -> Gpu:
        asked.append(name)
        raise UnknownGpu(name, ())

    monkeypatch.setattr(books, "gpu_named", unknown)
    plan = {"digest": "d", "layout": "tp2", "gpu": "Nobody-Knows-1GB, one node"}
    status = LLMDeploymentStatus.model_validate({"plan": plan})
    assert [(found.tensor, found.link) for found in (noted(status), noted(status))] == [(2, "unknown")] * 2
    assert asked == ["Nobody-Knows-1GB"]


def test_the_promise_is_the_effective_one() -> None:
    config = OperatorConfig.model_validate(
        {"defaults": [{"namespace": "team", "spec": {"slo": {"itlP99Ms": 50}}}]}
    )
    books = Books()
    books.note(deployment(slo={"ttftP99Ms": 2000}), STATUS, Serving(), config, 0.0)
    assert dict(figures(books).slo) == {"ttft_p99": 2.0, "itl_p99": 0.05}


def test_restarts_count_on_when_pods_are_replaced_and_those_of_before_this_program_do_not_count() -> None:
    books = Books()
    for seen in (serving(a=1), serving(a=3, b=0), serving(b=2), serving(b=2), serving(b=2, c=1)):
        books.note(deployment(), STATUS, seen, CONFIG, 0.0)
    assert figures(books).restarts == 2 + 2 + 1


def group(*restarts: int) -> Serving:
    pods = tuple(
        PodSeen(name=f"p{rank}", uid=f"u{rank}", stage=Stage.READY, group=0, rank=rank, restarts=n)
        for rank, n in enumerate(restarts)
    )
    return Serving(sets=(SetSeen(name="chat-0a1b2c3d", replicas=1, pods=pods, pods_per_replica=len(pods)),))


def test_a_group_of_pods_that_fails_has_restarted_once_however_its_pods_are_seen_to_come_back() -> None:
    books = Books()
    looks = ((4, 0, 0, 0), (5, 0, 0, 0), (5, 1, 1, 1), (6, 2, 1, 1), (6, 2, 2, 2))
    for minute, restarts in enumerate(looks):
        books.note(deployment(), STATUS, group(*restarts), CONFIG, 60.0 * minute)
    assert (figures(books).restarts, figures(books).again) == (2, 1)


def test_a_replica_that_restarts_within_the_hour_does_so_again_and_others_beside_it_do_not() -> None:
    books = Books()
    looks: tuple[tuple[float, dict[str, int]], ...] = (
        (0, {}),
        (60, {"a": 1, "b": 1, "c": 1}),
        (600, {"a": 2, "b": 1, "c": 1}),
        (4500, {"a": 3, "b": 2, "c": 1}),
    )
    for now, restarts in looks:
        books.note(deployment(), STATUS, serving(**{"a": 0, "b": 0, "c": 0, **restarts}), CONFIG, now)
    assert (figures(books).restarts, figures(books).again) == (6, 1)


def test_of_several_restarts_between_two_looks_all_but_the_first_are_one_again() -> None:
    books = Books()
    for restarts in (0, 3):
        books.note(deployment(), STATUS, serving(a=restarts), CONFIG, 0.0)
    assert (figures(books).restarts, figures(books).again) == (3, 2)


def test_of_one_that_cannot_be_read_its_conditions_are_told_and_its_restarts_count_on() -> None:
    books, seen = Books(), deployment(slo={"ttftP99Ms": 2000})
    for restarts in (0, 3):
        books.note(seen, STATUS, serving(a=restarts), CONFIG, 0.0)
    before = figures(books)
    books.note_unreadable(seen.metadata, unreadable("spec: what is that", 2, "2026-01-01T00:00:00Z"))
    assert figures(books) == Figures(
        conditions=(("Ready", False), ("Stalled", True)), restarts=before.restarts, again=before.again
    )
    books.note(seen, STATUS, serving(a=3), CONFIG, 0.0)
    assert figures(books) == before


def test_another_resource_of_the_same_name_begins_anew() -> None:
    books = Books()
    for uid, restarts in (("u", 0), ("u", 3), ("v", 1), ("v", 2)):
        books.note(deployment(uid), STATUS, serving(a=restarts), CONFIG, 0.0)
    assert figures(books).restarts == 1


def test_nothing_is_left_of_what_is_gone() -> None:
    books = Books()
    books.note(deployment(), STATUS, serving(a=3), CONFIG, 0.0)
    books.forget("team/chat")
    assert list(books) == []


def test_a_word_that_is_not_ours_makes_no_series_of_its_own() -> None:
    books = Books()
    told = News("Warning", "Ready", "Starting", "m")
    books.decided([told, replace(told, reason="0xdeadbeef"), replace(told, about="0xdeadbeef")])
    assert dict(books.decisions) == {("Ready", "Starting"): 1, ("Ready", OTHER): 1, (OTHER, OTHER): 1}


def test_what_control_does_is_counted_by_its_own_reasons() -> None:
    books = Books()
    books.decided([News("Normal", "Scale", "Rising", "m")] * 2)
    assert dict(books.decisions) == {("Scale", "Rising"): 2}


def test_every_reason_of_what_control_does_is_known_beforehand() -> None:
    assert {reason for _, reason in DONE} == books.ACTS["Scale"]
    assert {f"Retune{phase.value}" for phase in Phase} < books.ACTS["Retune"]


def test_what_became_of_a_ramp_is_counted_as_the_event_says_it() -> None:
    books = Books()
    for taken in (True, False):
        books.decided(ramp_news(None, RampStatus(record="a", taken=taken, message="m")))
    assert dict(books.decisions) == {("RampRecorded", "RampTaken"): 1, ("RampRecorded", "RampRefused"): 1}
