"""What counts as being there: replicas that start are counted on, and for how long."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plimsoll import names
from plimsoll.control.decision import Action
from plimsoll.control.demand import load_of
from plimsoll.control.law import LAW
from plimsoll.control.memory import RoleMemory
from plimsoll.control.situation import ReplicaState, Role
from tests.control.situations import NOW, WIDE, after, replicas, serving, signals, situation, ticks

LEAD = 180.0


def two_and_one_more(age: float, state: ReplicaState = ReplicaState.STARTING, waiting: float = 0) -> Role:
    """Two that serve, and one that was asked for so many seconds ago: as `replicas` has it, 100 before it came into its state."""
    one = replicas(1, state, age=age - 100, first=9)
    each = replace(serving(), replicas=(*replicas(2), *one), wanted=3)
    return Role(sets=(each,), signals=signals(2, inflight=45, waiting=waiting, rate=4.5), bounds=WIDE)


@pytest.mark.parametrize(
    ("age", "state", "waiting", "counted"),
    [
        (LEAD - 15, ReplicaState.STARTING, 0, 3),
        (LEAD + 15, ReplicaState.STARTING, 0, 3),
        (2 * LEAD + 15, ReplicaState.STARTING, 0, 2),
        (LEAD - 15, ReplicaState.STARTING, 40, 3),
        (LEAD + 15, ReplicaState.STARTING, 40, 2),
        (LEAD + 15, ReplicaState.NODE_COMING, 40, 3),
        (2100, ReplicaState.NODE_COMING, 0, 2),
        (9000, ReplicaState.QUEUED, 40, 3),
        (LEAD - 15, ReplicaState.FAILED, 0, 2),
    ],
    ids=[
        "one that starts as long as most do",
        "one that is late, while nobody waits",
        "no longer one that takes twice as long",
        "one that starts as long as most do, beside a queue",
        "no longer one that is late, beside a queue",
        "one whose node is still being made",
        "no longer one whose node has not come for half an hour",
        "one that waits for its turn in a queue, however long",
        "never one that has failed",
    ],
)
def test_counted_on_is(age: float, state: ReplicaState, waiting: float, counted: int) -> None:
    role = two_and_one_more(age, state, waiting)
    load = load_of(role, RoleMemory(), now=NOW, lead_s=LEAD, law=LAW)
    assert (load.supply.ready, load.supply.counted) == (2, counted)


@pytest.mark.parametrize("waiting", [0, 40], ids=["nobody waits", "beside a queue"])
@pytest.mark.parametrize(
    ("loads", "counted"),
    [(20, 3), (2 * LEAD + 15, 2)],
    ids=["its node has just come", "its node came long ago"],
)
def test_one_that_waited_for_its_node_is_late_only_by_the_time_since_that_came(
    loads: float, counted: int, waiting: float
) -> None:
    """It was counted on while its node was made, or while an admin's queue had it wait, and has not begun to load before."""
    role = two_and_one_more(9000, waiting=waiting)
    *others, one = role.sets[0].replicas
    one = replace(one, scheduled=NOW - loads, since=NOW - loads)
    role = replace(role, sets=(replace(role.sets[0], replicas=(*others, one)),))
    load = load_of(role, RoleMemory(), now=NOW, lead_s=LEAD, law=LAW)
    assert (load.supply.ready, load.supply.counted) == (2, counted)


@pytest.mark.parametrize(("lost", "action"), [(0, Action.HOLD), (1, Action.UP)])
def test_in_place_of_one_on_a_silent_node_another_is_asked_for(lost: int, action: Action) -> None:
    """No other comes by itself before that node's pods are evicted, and often not then either. What is yet to be made does."""
    same = situation(signals(2, inflight=45, rate=4.5), replace(serving(2), wanted=3, lost=lost))
    decision = after(same, same)
    assert (decision.roles[0].action, decision.replicas) == (action, 3 + lost)
    assert ticks(same, 8).replicas == 3 + lost, "and no more"


def test_one_on_a_silent_node_is_told_as_one_and_is_none_that_can_be_had() -> None:
    lost = replace(serving(2), wanted=3, lost=1)
    asked = [
        situation(signals(2, inflight=45, rate=4.5), lost, bounds=replace(WIDE, max=most)) for most in (4, 3)
    ]
    up, none = (after(*[each] * 2) for each in asked)
    assert (
        "; not all of the 3 count, as some are late, have failed, find no node or are on one that does not answer"
        in up.roles[0].message
    )
    (told,) = [one.message for one in none.conditions if one.type == names.SCALING]
    assert told.startswith("3 replicas are wanted, 2 can be had: scaling.max is 3")


@pytest.mark.parametrize(("late", "action"), [(False, Action.HOLD), (True, Action.UP)])
def test_while_requests_wait_another_is_asked_for_in_place_of_one_that_starts_late(
    late: bool, action: Action
) -> None:
    role = two_and_one_more(LEAD + 60 if late else LEAD - 60, waiting=40)
    same = replace(situation(role.signals), roles=(role,))
    decision = after(same, same)
    assert decision.roles[0].action is action, decision.roles[0].message


@pytest.mark.parametrize("late", [False, True])
def test_a_step_up_beyond_what_is_wanted_says_that_not_all_that_were_asked_for_count(late: bool) -> None:
    """Otherwise the sixth where 4.2 are wanted would have no reason."""
    one = replicas(1, ReplicaState.STARTING, age=2 * LEAD if late else 0, first=9)
    each = replace(serving(), replicas=(*replicas(2), *one), wanted=3)
    role = Role(sets=(each,), signals=signals(2, inflight=45, rate=4.5 if late else 20), bounds=WIDE)
    same = replace(situation(role.signals), roles=(role,))
    decided = after(same, same).roles[0]
    assert decided.action is Action.UP
    said = "; not all of the 3 count, as some are late, have failed, find no node or are on one that does not answer"
    assert (said in decided.message) == late, decided.message


@pytest.mark.parametrize(("full", "action"), [(None, Action.HOLD), (0.0, Action.UP)])
def test_a_set_that_can_grow_no_more_shortens_no_wait_for_a_node_of_another(
    full: float | None, action: Action
) -> None:
    """The last one has loaded for longer than replicas take, though not for as long as a node and two of them do."""
    come = replicas(1, ReplicaState.STARTING, age=600, first=9)[0]
    sets = (
        replace(serving(2), provision_s=full, price_per_hour=1.0),
        serving(name="b", pool="b", price_per_hour=2.0, replicas=(come,), wanted=1, provision_s=600.0),
    )
    same = situation(signals(2, inflight=45, rate=4.5), *sets)
    decision = after(same, same)
    assert decision.roles[0].action is action, decision.roles[0].message
