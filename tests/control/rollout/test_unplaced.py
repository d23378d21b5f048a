"""A new set whose pods find no node: an old replica goes only for what it holds itself; for what an edit got wrong the set is given up."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plimsoll.control.rollout import Rollout, Rules, move
from plimsoll.control.rollout.rules import PLACE_SECONDS
from plimsoll.control.rollout.targets import Wanted
from plimsoll.facts.serving import PodSeen, Serving, SetSeen, Stage
from tests.control.rollout.halls import FULL, Hall

NOW, DEADLINE = 100_000.0, 600
NONE_HELPS = " preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
CLAIM = f'0/3 nodes are available: persistentvolumeclaim "nope" not found.{NONE_HELPS}'
TAINT = "0/3 nodes are available: 3 node(s) had untolerated taint {team: other}."
LARGE = f"0/3 nodes are available: 3 Insufficient cpu.{NONE_HELPS}"
CORDONED = "0/3 nodes are available: 3 node(s) were unschedulable."
UNHEARD = ""

RULES = Rules(deadline_seconds=DEADLINE, by_room=True)
OLD = SetSeen(name="old", replicas=1, pods=(PodSeen(name="old-0", uid="o", stage=Stage.READY),))


def new(message: str, waited: float, stage: Stage = Stage.UNSCHEDULED) -> SetSeen:
    at = NOW - waited
    pod = PodSeen(name="new-0", uid="n", stage=stage, message=message, created=at, since=at)
    return SetSeen(name="new", replicas=1, pods=(pod,))


def moved(*sets: SetSeen, rules: Rules = RULES) -> Rollout:
    return move([Wanted("new", 1)], Serving(sets=sets), rules, NOW)


def numbers(rollout: Rollout) -> dict[str, int]:
    return {one.name: one.replicas for one in rollout.targets}


@pytest.mark.parametrize(
    ("message", "stays"),
    [(FULL, 0), (CLAIM, 1), (UNHEARD, 1), (TAINT, 1), (LARGE, 1), (CORDONED, 1)],
    ids=["full", "no claim", "no scheduler", "a taint", "too large", "cordoned"],
)
def test_what_serves_goes_only_for_a_pod_that_waits_for_what_it_holds(message: str, stays: int) -> None:
    rollout = moved(OLD, new(message, PLACE_SECONDS))
    assert numbers(rollout) == {"new": 1, "old": stays}
    assert rollout.reason == "RollingOut"


GIVEN_UP = {
    CLAIM: f"new: new-0 had no node within 600 s: {CLAIM}; old serves again",
    UNHEARD: "new: no scheduler looked at new-0 within 600 s: see spec.scheduling.schedulerName; old serves again",
}


@pytest.mark.parametrize("message", GIVEN_UP, ids=["no claim", "no scheduler"])
@pytest.mark.parametrize("strategy", ["as there is room", "surge", "replace"])
def test_a_set_that_no_room_would_give_a_node_is_given_up_when_it_is_late(
    message: str, strategy: str
) -> None:
    rules = replace(RULES, by_room=strategy == "as there is room", replaces=strategy == "replace")
    in_time = moved(OLD, new(message, DEADLINE - 7), rules=rules)
    assert (in_time.reason, in_time.look_again_seconds) == ("RollingOut", 7)
    late = moved(OLD, new(message, DEADLINE + 1), rules=rules)
    assert (late.reason, late.message) == ("RolledBack", GIVEN_UP[message])
    assert numbers(late) == {"old": 1, "new": 0}
    assert [name for name, _ in late.failed] == ["new"]


def test_what_made_room_for_such_a_set_comes_back() -> None:
    gone = replace(OLD, replicas=0, pods=())
    for message in GIVEN_UP:
        rollout = moved(gone, new(message, DEADLINE + 1))
        assert (rollout.reason, numbers(rollout)) == ("RolledBack", {"old": 1, "new": 0})
        assert rollout.message.endswith("; old comes back")


@pytest.mark.parametrize(
    ("waits", "rules"),
    [
        (new(FULL, 10**6), replace(RULES, by_room=False)),
        (new("", 10**6, Stage.GATED), replace(RULES, by_room=False)),
        (new(CORDONED, 10**6), RULES),
        (new(TAINT, 10**6), RULES),
        (new(LARGE, 10**6), RULES),
    ],
    ids=["the fleet is full", "a queue", "all nodes are cordoned", "a taint", "too large for each node"],
)
def test_waiting_for_a_node_is_no_failure_however_long_it_takes(waits: SetSeen, rules: Rules) -> None:
    rollout = moved(OLD, waits, rules=rules)
    assert not rollout.failed
    assert (rollout.reason, numbers(rollout)) == ("RollingOut", {"new": 1, "old": 1})


def test_a_first_set_that_names_what_is_not_there_is_told_and_waits_on() -> None:
    for message in (CLAIM, UNHEARD):
        rollout = moved(new(message, DEADLINE + 1))
        assert (rollout.reason, numbers(rollout)) == ("DeadlineExceeded", {"new": 1})
        assert not rollout.failed
        assert rollout.look_again_seconds is None, "nothing more comes of waiting"


@pytest.mark.parametrize("fewer", [2, 1])
def test_a_surge_that_waits_in_a_full_fleet_goes_on_in_the_place_of_those_that_a_smaller_load_lets_go(
    fewer: int,
) -> None:
    hall = Hall(nodes=3, strategy="surge")
    hall.run(20)
    hall.wanted = "new"
    hall.run(40)
    assert hall.asked == {"old": 3, "new": 1}
    hall.replicas = hall.least = fewer
    hall.turn()
    assert hall.asked == {"old": fewer, "new": 1}, "old ones go, as the new one would be started for nothing"
    assert hall.run(40, lambda rollout: rollout.settled).settled
    assert hall.asked["new"] == fewer
    assert hall.least == fewer
