"""One deployment as the control law takes it: its sets by their entries in the plan, and what keeps them from more replicas."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from plimsoll.api.config import OperatorConfig
from plimsoll.control.record import Record
from plimsoll.control.retune import RetuneMemory
from plimsoll.control.signals import Signals
from plimsoll.facts.serving import NODE_LOST, PodSeen, Serving, SetSeen, Stage
from plimsoll.reconcile.decide import decide
from plimsoll.reconcile.loop.grounds import Grounds
from plimsoll.reconcile.loop.situations import SetsSeen, serving_set, situation_of
from plimsoll.reconcile.loop.subject import subject_of
from tests.control.situations import NOW
from tests.planning.asking import inventory, pool
from tests.reconcile.loop.test_given_up import EDITS, edited, situation
from tests.reconcile.test_decide import seen
from tests.status.test_live import STEP

AUTO = {"scaling": {"min": 1, "max": 4}}


def test_a_set_that_an_edit_renames_bears_the_same_entry_of_the_plan() -> None:
    kept = decide(seen(spec=AUTO)).kept
    asked = [seen(spec={**AUTO, "podAnnotations": {"team": team}}) for team in ("blue", "red")]
    grounds = Grounds(inventory(pool(nodes=1)), OperatorConfig())
    found = []
    for each in asked:
        subject = subject_of(each.deployment, kept, each.config, {})
        assert subject is not None
        (planned,) = subject.sets
        found.append(serving_set(planned, (), grounds.for_set(planned)))
    assert found[0].name != found[1].name
    assert found[0].entry == found[1].entry == planned.digest


def test_what_the_api_server_refuses_to_make_is_told_on() -> None:
    met = edited(EDITS["other labels"])
    (there, _) = met.serving.sets
    for why in ("", "exceeded quota: gpus"):
        (found,) = situation(met.before, Serving(sets=(replace(there, refused=why),))).roles[0].sets
        assert found.refused is bool(why)


def test_who_has_served_is_told_on_once_it_does_not_until_its_pod_is_gone() -> None:
    """Its time to come back is no time to start up."""
    met, sets = edited(EDITS["other labels"]), SetsSeen()
    (there, _) = met.serving.sets
    grounds = Grounds(inventory(pool(nodes=1)), OperatorConfig())
    (pod, other) = there.pods
    looks = (
        (pod,),
        (replace(pod, stage=Stage.LOADING), other),
        (replace(pod, reason=NODE_LOST), other),
        (pod, other),
        (other,),
        (pod, other),
    )
    found = []
    for pods in looks:
        (each,) = sets.of(met.before, Serving(sets=(replace(there, pods=pods),)), grounds)
        sets.over()
        found.append({one.id for one in each.replicas if one.served})
    both = {pod.uid, other.uid}
    assert found == [set(), {pod.uid}, {other.uid}, both, {other.uid}, {other.uid}]


def test_a_replica_on_a_silent_node_is_told_on_as_lost() -> None:
    met = edited(EDITS["other labels"])
    (there, _) = met.serving.sets
    silent = replace(there.pods[0], stage=Stage.FAILED, reason=NODE_LOST)
    for pods, lost in ((there.pods, 0), ((silent, *there.pods[1:]), 1)):
        (found,) = situation(met.before, Serving(sets=(replace(there, pods=pods),))).roles[0].sets
        assert (found.lost, found.present) == (lost, len(there.pods) - lost)


SERVES = PodSeen(name="new", uid="new", stage=Stage.READY, since=NOW - 60)
WAITS = PodSeen(name="new", uid="new", stage=Stage.UNSCHEDULED, created=NOW - 200, since=NOW - 200)


@pytest.mark.parametrize(
    ("new", "more", "held"),
    [
        ((WAITS,), {}, False),
        ((replace(WAITS, stage=Stage.GATED),), {}, False),
        ((), {"refused": "exceeded quota"}, False),
        ((replace(WAITS, since=NOW - 60),), {}, True),
        ((replace(WAITS, stage=Stage.LOADING),), {}, True),
        ((replace(WAITS, stage=Stage.FAILED),), {}, True),
        ((replace(SERVES, uid="also"), WAITS, replace(WAITS, uid="loads", stage=Stage.LOADING)), {}, True),
        ((SERVES,), {}, True),
        ((), {}, True),
    ],
    ids=[
        "it finds no node",
        "it waits for its turn",
        "a quota refuses it",
        "it may still find one",
        "it starts",
        "it fails",
        "another one starts",
        "it serves, and an old one goes next",
        "it is not made yet",
    ],
)
@pytest.mark.parametrize("what", ["a rollout", "a retune"])
def test_a_rollout_that_only_waits_for_room_keeps_no_replica_that_may_be_what_it_waits_for(
    what: str, new: tuple[PodSeen, ...], more: dict[str, Any], held: bool
) -> None:
    met = edited(EDITS["other labels"], given_up=False)
    (old, asked) = met.serving.sets
    sets: tuple[SetSeen, ...] = (old, replace(asked, pods=new, **more))
    if what == "a retune":
        sets = (replace(sets[1], replicas=3, pods=(*old.pods, *new)),)
    record = Record(retune=RetuneMemory(step=STEP)) if what == "a retune" else Record()
    found = situation(met.after, Serving(sets=sets), record)
    assert (found.busy, found.lets_go) == (f"{what} is under way", not held)


def test_where_one_that_serves_has_gone_first_nothing_more_goes_while_another_waits_for_its_place() -> None:
    """An old one would go next, though the load was weighed against those that serve now."""
    met = edited(EDITS["other labels"], given_up=False)
    (old, asked) = met.serving.sets
    (planned,) = met.after.sets
    two = replace(met.after, sets=(replace(planned, replicas=2),))
    sets = (replace(old, replicas=1, pods=old.pods[:1]), replace(asked, pods=(WAITS,)))
    assert not situation(two, Serving(sets=sets)).lets_go


def test_where_nobody_knows_what_serves_on_it_is_kept_whatever_finds_no_room() -> None:
    met = edited(EDITS["other labels"])
    (old, asked) = met.serving.sets
    unread = replace(met.after, others={})
    found = situation(unread, Serving(sets=(replace(old, pods=(*old.pods, WAITS)), asked)))
    assert found.busy is not None
    assert not found.lets_go


@pytest.mark.parametrize(
    ("sets", "record", "asked"),
    [
        (1, Record(replicas=3), {"set-0": 3}),
        (1, Record(), None),
        (2, Record(replicas=4, shares={"d-0": 1, "d-1": 3}), {"set-0": 1, "set-1": 3}),
        (2, Record(replicas=4), {}),
    ],
    ids=["of one set", "nothing yet", "of two sets", "of two sets, and nobody knows of which"],
)
def test_what_was_asked_for_and_is_not_planned_yet_is_told_on(
    sets: int, record: Record, asked: dict[str, int] | None
) -> None:
    made = seen(spec=AUTO)
    subject = subject_of(made.deployment, decide(made).kept, made.config, {})
    assert subject is not None
    (planned,) = subject.sets
    planned_sets = tuple(replace(planned, name=f"set-{i}", digest=f"d-{i}") for i in range(sets))
    several = replace(subject, sets=planned_sets)
    found = situation_of(several, record, Serving(), Signals(at=0.0, live=0, replicas=()), (), zero=None)
    assert found.roles[0].asked == asked
