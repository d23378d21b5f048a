"""A surge that was asked for, on a fleet that is full: it waits, says for what and what else would do, and goes on by itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from plimsoll.control.retune import Phase
from plimsoll.facts.serving import PodSeen, Serving, SetSeen, Stage
from plimsoll.kube.applier import Applied
from plimsoll.reconcile.decide import decide
from plimsoll.reconcile.decision import Decision
from plimsoll.reconcile.seen import Seen
from plimsoll.reconcile.turn import _story
from plimsoll.status.said import conditions_of
from tests.planning.asking import deployment, pool
from tests.reconcile.test_decide import after, seen
from tests.reconcile.test_direction import directed, step, targets

FULL = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu"
QUOTA = "exceeded quota: gpus, requested: requests.nvidia.com/gpu=1"


def edited(**rollout: Any) -> tuple[Seen, str, str]:
    """Two replicas serve, and an edit has just made another set of them."""
    asked = seen(spec={"replicas": 2, "rollout": rollout}, pools=(pool(nodes=1),))
    first = decide(asked)
    now = replace(
        after(first, asked), deployment=deployment(replicas=2, rollout=rollout, podLabels={"team": "search"})
    )
    moved = decide(now)
    assert moved.rollout is not None
    old, new = (
        next(one.name for one in moved.rollout.targets if one.planned is planned) for planned in (False, True)
    )
    return replace(now, revisions={**now.revisions, **moved.revisions}, kept=moved.kept), old, new


def with_new(asked: Seen, new: str, *, refused: str = "", **pod: Any) -> Seen:
    """With the new set's first replica as it is now."""
    pods = (PodSeen(name=f"{new}-0", uid="x", created=asked.now, **pod),) if pod else ()
    there = SetSeen(name=new, replicas=1, refused=refused, pods=pods)
    return replace(asked, serving=Serving(sets=(*asked.serving.sets, there)))


def ready_says(asked: Seen, decision: Decision) -> tuple[str, str]:
    return next(
        (one.reason, one.message)
        for one in conditions_of(_story(asked, decision, Applied()))
        if one.type == "Ready"
    )


@pytest.mark.parametrize("days", [0, 3])
@pytest.mark.parametrize(
    ("refused", "pod", "reason"),
    [
        ("", {"stage": Stage.UNSCHEDULED, "message": FULL}, "WaitingForGPUs"),
        ("", {"stage": Stage.GATED}, "WaitingForQuota"),
        (QUOTA, {}, "WaitingForQuota"),
    ],
    ids=["no node", "a queue", "a quota"],
)
def test_who_asked_for_a_surge_is_told_that_no_old_replica_goes_for_it_and_what_would_help(
    refused: str, pod: dict[str, Any], reason: str, days: int
) -> None:
    asked, old, new = edited(strategy="surge")
    waits = replace(with_new(asked, new, refused=refused, **pod), now=asked.now + days * 86400)
    found = decide(waits)
    assert found.rollout is not None
    assert {one.name: one.replicas for one in found.rollout.targets} == {old: 2, new: 1}
    said, message = ready_says(waits, found)
    assert said == reason
    since = " has waited since 1970-01-01 00:16 UTC, and" if pod else ""
    assert message.endswith(
        f"; spec.rollout.strategy is surge, so no replica that serves goes for it: it{since} goes on once there is room for 1 GPU "
        "more, or with spec.rollout.strategy: replace"
    )


def test_it_goes_on_by_itself_once_there_is_room() -> None:
    asked, old, new = edited(strategy="surge")
    serves = with_new(asked, new, stage=Stage.READY, node="n")
    found = decide(replace(serves, now=asked.now + 3 * 86400))
    assert found.rollout is not None
    assert {one.name: one.replicas for one in found.rollout.targets}[old] == 1
    assert "strategy" not in ready_says(serves, found)[1]


@pytest.mark.parametrize("rollout", [{}, {"strategy": "replace"}], ids=str)
def test_who_did_not_ask_for_one_is_told_nothing_of_it(rollout: dict[str, Any]) -> None:
    asked, _, new = edited(**rollout)
    waits = with_new(asked, new, stage=Stage.UNSCHEDULED, message=FULL)
    said, message = ready_says(waits, decide(waits))
    assert said == "WaitingForGPUs"
    assert "spec.rollout.strategy" not in message


def test_the_way_back_of_the_only_replica_is_told_as_what_waits_and_whose_consent_it_needs() -> None:
    asked = seen(spec={"replicas": 1}, pools=(pool(nodes=1),))
    first = decide(asked)
    chosen = first.plan.sets[0]
    knob = str(chosen.settings.max_num_seqs)
    served = after(first, asked)
    tried = step(chosen.digest, Phase.VERIFYING, knob, replicas=1)
    verified = after(
        decide(directed(after(decide(directed(served, None, tried)), served), None, tried)), served
    )
    (old,) = first.revisions
    back = directed(verified, None, step(chosen.digest, Phase.ROLLING_BACK, knob, rolled=0))
    nowhere = PodSeen(name=f"{old}-0", uid="x", stage=Stage.UNSCHEDULED, message=FULL, created=asked.now)
    sets = tuple(one for one in back.serving.sets if one.name != old)
    there = SetSeen(name=old, replicas=1, pods=(nowhere,))
    waits = replace(back, serving=Serving(sets=(*sets, there)), now=asked.now + 86400)
    found = decide(waits)
    assert targets(found)[old] == 1
    assert sorted(targets(found).values()) == [1, 1]
    said, message = ready_says(waits, found)
    assert said == "WaitingForGPUs"
    assert message.endswith(
        "; spec.tuning.allowDisruption is not true, so the only replica that serves does not go for it: it has waited since "
        "1970-01-01 00:16 UTC, and goes on once there is room for 1 GPU more, or with spec.tuning.allowDisruption: true"
    )
