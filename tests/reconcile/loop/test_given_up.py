"""An edit whose set was given up: what serves on, for days perhaps, is scaled as if nothing had been edited."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest

from plimsoll.api.config import OperatorConfig
from plimsoll.control.record import EMPTY, Record
from plimsoll.control.retune import RetuneMemory
from plimsoll.facts.serving import PodSeen, Serving, SetSeen, Stage
from plimsoll.reconcile.decide import decide
from plimsoll.reconcile.loop.grounds import Grounds
from plimsoll.reconcile.loop.situations import SetsSeen, situation_of
from plimsoll.reconcile.loop.subject import Subject, subject_of
from plimsoll.reconcile.seen import Seen
from tests.control.situations import signals
from tests.planning.asking import deployment, inventory, pool
from tests.reconcile.test_decide import after, seen
from tests.status.test_live import STEP

AUTO = {"scaling": {"min": 1, "max": 4}}
POOLS = (pool(nodes=4), pool("L4-24GB", nodes=4))
EDITS: dict[str, dict[str, Any]] = {
    "other labels": {"podLabels": {"team": "search"}},
    "fewer tokens": {"workload": {"contextTokens": 4096}},
    "other hardware": {"topology": {"gpuProducts": ["L4-24GB"]}},
}


@dataclass(frozen=True, kw_only=True)
class Edited:
    before: Subject
    after: Subject
    serving: Serving
    old: str


def edited(edit: dict[str, Any], *, given_up: bool = True) -> Edited:
    """Two replicas of what was before the edit; of what came with it none, since it failed, or one that starts."""
    asked = replace(seen(spec=AUTO), inventory=inventory(*POOLS))
    first = decide(asked)
    moved = decide(replace(after(first, asked), deployment=deployment(**AUTO, **edit)))
    (old,) = first.revisions
    (new,) = set(moved.revisions) - {old}
    starts = PodSeen(name="n", uid="n", stage=Stage.LOADING, node="n")
    serving = Serving(
        sets=(
            SetSeen(name=old, replicas=2, pods=pods(old, 2)),
            SetSeen(name=new, replicas=0, failed="n ended 3 times")
            if given_up
            else SetSeen(name=new, replicas=1, pods=(starts,)),
        )
    )
    return Edited(
        before=subject(asked, first.kept, first.revisions),
        after=subject(replace(asked, deployment=deployment(**AUTO, **edit)), moved.kept, moved.revisions),
        serving=serving,
        old=old,
    )


def subject(asked: Seen, kept: Any, revisions: Any) -> Subject:
    found = subject_of(asked.deployment, kept, asked.config, revisions)
    assert found is not None
    return found


def pods(name: str, count: int) -> tuple[PodSeen, ...]:
    return tuple(
        PodSeen(name=f"{name}-{n}", uid=f"{name}-{n}", stage=Stage.READY, node="n") for n in range(count)
    )


def situation(subject: Subject, serving: Serving, record: Record = EMPTY) -> Any:
    sets = SetsSeen().of(subject, serving, Grounds(inventory(*POOLS), OperatorConfig()))
    return situation_of(subject, record, serving, signals(2), sets, zero=None)


@pytest.mark.parametrize("edit", EDITS)
def test_while_the_edit_is_rolled_out_nothing_is_taken_away(edit: str) -> None:
    met = edited(EDITS[edit], given_up=False)
    assert situation(met.after, met.serving).busy == "a rollout is under way"


@pytest.mark.parametrize("edit", EDITS)
def test_what_serves_on_is_scaled_as_what_it_is(edit: str) -> None:
    """It has its own capacity and finds room on its own hardware, whatever the edit asks for."""
    met = edited(EDITS[edit])
    found = situation(met.after, met.serving)
    assert found.busy is None
    (one,) = found.roles[0].sets
    (before,) = situation(met.before, replace(met.serving, sets=met.serving.sets[:1])).roles[0].sets
    # What is wished is the plan's number, by the plan's name of it.
    assert (one.name, one.wanted) == (met.after.sets[0].name, met.after.replicas)
    assert one.present == 2
    assert one.entry == before.entry, "what is learned of it is not taken for the other's"
    assert (one.capacity, one.pool, one.gpus, one.product) == (
        before.capacity, before.pool, before.gpus, before.product,
    )  # fmt: skip


def test_what_serves_on_is_promised_devices_for_the_pods_that_it_is_still_to_get() -> None:
    asked = replace(seen(spec=AUTO), inventory=inventory(*POOLS))
    first = decide(asked)
    asked = replace(asked, deployment=deployment(**AUTO, **EDITS["other labels"]))
    moved = decide(replace(after(first, asked), deployment=asked.deployment))
    (old,) = first.revisions
    (new,) = set(moved.revisions) - {old}
    given_up = SetSeen(name=new, replicas=0, failed="n ended 3 times")
    serving = Serving(sets=(SetSeen(name=old, replicas=1), given_up))
    back = decide(replace(after(moved, asked), serving=serving))
    assert back.rollout is not None
    assert back.rollout.reason == "RolledBack"
    assert sum(one.pods for one in back.reservations) == 1


def test_what_sleeps_after_it_was_come_back_to_wakes_as_what_it_is() -> None:
    met = edited(EDITS["other hardware"])
    asleep = tuple(replace(one, replicas=0, pods=()) for one in met.serving.sets)
    (one,) = situation(met.after, replace(met.serving, sets=asleep)).roles[0].sets
    assert one.capacity == met.before.sets[0].capacity


def two_before(met: Edited) -> tuple[Subject, Serving]:
    third = SetSeen(name="chat-older", replicas=1, pods=pods("chat-older", 1))
    return met.after, replace(met.serving, sets=(*met.serving.sets, third))


def unread(met: Edited) -> tuple[Subject, Serving]:
    return replace(met.after, others={}), met.serving


def test_a_retune_is_no_less_under_way() -> None:
    met = edited(EDITS["other labels"])
    found = situation(met.after, met.serving, Record(retune=RetuneMemory(step=STEP)))
    assert found.busy == "a retune is under way"


def several(met: Edited) -> tuple[Subject, Serving]:
    (one,) = met.after.sets
    failed = next(each for each in met.serving.sets if each.failed)
    other = replace(failed, name="chat-other")
    sets = (one, replace(one, name="chat-other", digest="other"))
    return replace(met.after, sets=sets), replace(met.serving, sets=(*met.serving.sets, other))


@pytest.mark.parametrize("odd", [two_before, unread, several])
def test_where_nobody_knows_what_serves_on_nothing_is_taken_away_and_the_edit_is_asked_for(odd: Any) -> None:
    asked, serving = odd(edited(EDITS["other labels"]))
    assert (
        situation(asked, serving).busy
        == "the new set was given up, and the plan is not of what serves; edit the spec"
    )
