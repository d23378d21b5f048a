"""Groups over nodes that get only a part of them: said, let go after a while, and tried again one at a time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plimsoll.control.rollout import Rules, move
from plimsoll.control.rollout.beside import Beside, move_beside
from plimsoll.control.rollout.groups import HALF_SECONDS, halves, let_go, told
from plimsoll.control.rollout.targets import Target, Wanted
from plimsoll.facts.serving import NOWHERE, PodSeen, Serving, SetSeen, Stage

RULES = Rules(deadline_seconds=600)


def pods(number: int, *stages: Stage, since: float = 0.0) -> tuple[PodSeen, ...]:
    return tuple(
        PodSeen(
            name=f"a-{number}-{rank}",
            uid=f"a-{number}-{rank}",
            stage=stage,
            group=number,
            rank=rank,
            node=None if stage in NOWHERE else f"node-{number}-{rank}",
            since=since,
            message="0/2 nodes are available: 2 Insufficient nvidia.com/gpu."
            if stage is Stage.UNSCHEDULED
            else "",
        )
        for rank, stage in enumerate(stages)
    )


def a_set(*groups: tuple[PodSeen, ...]) -> SetSeen:
    numbers = tuple(sorted({pod.group for group in groups for pod in group if pod.group is not None}))
    return SetSeen(
        name="a",
        replicas=len(numbers),
        pods_per_replica=2,
        pods=tuple(pod for group in groups for pod in group),
        groups=numbers,
    )


def ended(group: tuple[PodSeen, ...]) -> tuple[PodSeen, ...]:
    return tuple(replace(pod, restarts=4) for pod in group)


WAITS, LOADS, READY, LEAVES = Stage.UNSCHEDULED, Stage.LOADING, Stage.READY, Stage.LEAVING
FAILED, GATED = Stage.FAILED, Stage.GATED


@pytest.mark.parametrize(
    ("groups", "half"),
    [
        ([pods(0, LOADS, WAITS)], [0]),
        ([pods(0, WAITS, WAITS)], []),
        ([pods(0, READY, READY)], []),
        ([pods(0, LEAVES, WAITS)], []),
        ([pods(0, READY, READY), pods(1, WAITS, LOADS), pods(2, LOADS, WAITS)], [1, 2]),
        ([pods(0, LOADS, GATED), pods(1, GATED, GATED)], [0]),
    ],
)
def test_a_group_is_half_scheduled_while_some_of_its_pods_have_nodes(
    groups: list[tuple[PodSeen, ...]], half: list[int]
) -> None:
    assert [one.number for one in halves(a_set(*groups))] == half


def test_a_group_has_its_time_from_the_last_of_its_pods_that_got_a_node() -> None:
    """A node pool makes nodes one after another, each of them minutes after the pods began to wait."""
    first, second = pods(0, LOADS, WAITS)
    (half,) = halves(a_set((replace(first, scheduled=900.0), second)))
    assert half.since == 900.0


def kept(seen: SetSeen, now: float, replicas: int) -> tuple[int, ...]:
    return move([Wanted("a", replicas)], Serving(sets=(seen,)), RULES, now).targets[0].groups


def test_of_two_that_each_hold_what_the_other_lacks_one_is_let_go_and_waits_for_the_other() -> None:
    seen = a_set(pods(0, LOADS, WAITS), pods(1, WAITS, LOADS))
    assert kept(seen, HALF_SECONDS - 1, 2) == (0, 1)
    assert kept(seen, HALF_SECONDS, 2) == (0,)
    alone = a_set(pods(0, LOADS, WAITS))
    assert kept(alone, HALF_SECONDS + 30, 2) == (0,), "it is given the time to take what became free"
    assert kept(a_set(pods(0, LOADS, LOADS)), HALF_SECONDS + 30, 2) == (0, 1), (
        "and then the other comes again"
    )


def test_one_that_lacks_a_node_for_good_gives_its_gpus_back_at_last() -> None:
    seen = a_set(pods(0, LOADS, WAITS))
    assert let_go(seen, 2 * HALF_SECONDS - 1) == (frozenset(), 1.0)
    assert kept(seen, 2 * HALF_SECONDS, 1) == ()


def test_what_serves_is_never_let_go() -> None:
    seen = a_set(pods(0, READY, READY), pods(1, LOADS, WAITS), pods(2, LOADS, WAITS))
    assert kept(seen, 10 * HALF_SECONDS, 3) == (0,)


@pytest.mark.parametrize(
    ("groups", "stay"),
    [
        ([pods(0, LOADS, FAILED), pods(1, READY, READY)], (1,)),
        ([pods(0, LOADS, FAILED), pods(1, LOADS, LOADS)], (1,)),
        ([ended(pods(0, LOADS, LOADS)), pods(1, LOADS, LOADS)], (1,)),
        ([ended(pods(0, READY, READY)), pods(1, READY, READY)], (0,)),
        ([pods(0, LOADS, FAILED), pods(1, WAITS, WAITS)], (1,)),
        ([pods(0, WAITS, WAITS), pods(1, LOADS, LOADS)], (1,)),
        ([pods(0, LOADS, WAITS), pods(1, LOADS, LOADS)], (1,)),
        ([pods(0, GATED, GATED), pods(1, LOADS, LOADS)], (1,)),
    ],
    ids=[
        "before one that serves",
        "before one that loads",
        "the same while it loads once more",
        "not because it ended once, where it serves",
        "before one that waits, which may take its GPUs",
        "one that waits before one that loads",
        "one with a node for a part of it too",
        "one whose turn has not come too",
    ],
)
def test_where_one_goes_it_is_one_whose_engine_ends_and_then_one_without_a_node(
    groups: list[tuple[PodSeen, ...]], stay: tuple[int, ...]
) -> None:
    assert kept(a_set(*groups), 0, 1) == stay


def test_the_first_groups_of_a_set_come_together() -> None:
    assert move([Wanted("a", 3)], Serving(), RULES, 0).targets[0].groups == (0, 1, 2)


def test_the_turn_comes_back_when_the_time_of_a_group_is_over() -> None:
    seen = a_set(pods(0, LOADS, WAITS), pods(1, LOADS, WAITS))
    rollout = move([Wanted("a", 2)], Serving(sets=(seen,)), RULES, 20)
    assert rollout.look_again_seconds == HALF_SECONDS - 20


def test_it_is_said_with_the_schedulers_own_words() -> None:
    seen = a_set(pods(0, LOADS, WAITS))
    said = told(seen)
    assert said is not None
    assert "group 0 has nodes for 1 of its 2 pods" in said
    assert "Insufficient nvidia.com/gpu" in said
    assert told(replace(seen, pods=pods(0, READY, READY))) is None


def as_one(*groups: tuple[PodSeen, ...]) -> SetSeen:
    """The same of a LeaderWorkerSet, which has no object for each group."""
    return replace(a_set(*groups), groups=(), one_object=True)


def born(made: tuple[PodSeen, ...], at: float) -> tuple[PodSeen, ...]:
    return tuple(replace(pod, created=at, since=at) for pod in made)


def taken(seen: SetSeen, now: float) -> list[str]:
    """Pods that are to go."""
    target = move([Wanted("a", seen.replicas)], Serving(sets=(seen,)), RULES, now).targets[0]
    return [pod.name for pod in target.let_go]


@pytest.mark.parametrize(
    ("groups", "half"),
    [
        ([pods(0, LOADS, WAITS)], [0]),
        ([pods(0, WAITS, LOADS)], [0]),
        ([pods(0, WAITS, WAITS)], []),
        ([pods(0, READY, READY)], []),
        ([pods(0, READY, READY), pods(1, WAITS, LOADS), pods(2, LOADS, WAITS)], [1, 2]),
        # Its workers are still there, and go with the leader that they had.
        ([pods(0, LEAVES, WAITS, LOADS)], []),
        ([(born(pods(0, LOADS), 9)[0], *pods(0, LEAVES, WAITS, LOADS)[1:])], []),
        ([(born(pods(0, WAITS), 9)[0], *born(pods(0, WAITS, LOADS), 9)[1:])], [0]),
    ],
)
def test_a_group_of_a_leaderworkerset_is_told_by_its_pods_alone(
    groups: list[tuple[PodSeen, ...]], half: list[int]
) -> None:
    assert [one.number for one in halves(as_one(*groups))] == half


def test_a_half_scheduled_leaderworkerset_is_said_as_any_other() -> None:
    halfway = pods(0, LOADS, WAITS)
    assert told(as_one(halfway)) == told(a_set(halfway)) is not None


def test_a_group_of_a_leaderworkerset_goes_by_its_leader_and_the_others_have_time_to_take_what_became_free() -> (
    None
):
    two = (pods(0, LOADS, WAITS), pods(1, WAITS, LOADS))
    assert taken(as_one(*two), HALF_SECONDS - 1) == []
    assert taken(as_one(*two), HALF_SECONDS) == ["a-1-0"], "the one that lacks least has twice the time"
    queued = (pods(0, LOADS, GATED), pods(1, GATED, LOADS))
    assert taken(as_one(*queued), HALF_SECONDS) == ["a-1-0"], "a queue may let in only some of a group too"
    three = (*two, pods(2, LOADS, WAITS))
    assert taken(as_one(*three), HALF_SECONDS) == ["a-2-0"], "one at a time"
    again = as_one(*two, born(pods(2, WAITS, WAITS), HALF_SECONDS + 5))
    assert taken(again, HALF_SECONDS + 60) == []
    over, left = let_go(again, HALF_SECONDS + 60)
    assert (over, left) == (frozenset(), 60.0)
    assert taken(again, 2 * HALF_SECONDS + 5) == ["a-1-0"]


def test_what_loads_anew_holds_back_no_release() -> None:
    now = 2 * HALF_SECONDS
    assert taken(as_one(pods(0, LOADS, WAITS), born(pods(1, LOADS, LOADS), now - 1)), now) == ["a-0-0"]


def test_a_leader_that_leaves_already_is_not_taken_again() -> None:
    assert taken(as_one(pods(0, LEAVES, WAITS, LOADS)), 9 * HALF_SECONDS) == []


def test_no_pod_goes_by_itself_where_its_group_has_objects_of_its_own() -> None:
    assert taken(a_set(pods(0, LOADS, WAITS), pods(1, WAITS, LOADS)), 9 * HALF_SECONDS) == []


def targeted(seen: SetSeen, replicas: int) -> Target:
    return move([Wanted("a", replicas)], Serving(sets=(seen,)), RULES, 9999).targets[0]


@pytest.mark.parametrize("sick", [LOADS, WAITS, FAILED, LEAVES])
@pytest.mark.parametrize(("wanted", "asked"), [(3, 3), (2, 3), (1, 2), (0, 0)])
def test_a_leaderworkerset_keeps_those_that_serve_though_its_last_ones_go_first(
    sick: Stage, wanted: int, asked: int
) -> None:
    """Its StatefulSet of leaders goes by their numbers alone, and asks nobody who serves."""
    others = (pods(1, READY, READY), pods(2, READY, READY))
    target = targeted(as_one(pods(0, sick, sick), *others), wanted)
    assert (target.replicas, target.beyond) == (asked, asked - wanted)
    assert targeted(as_one(pods(0, READY, READY), *others), wanted).replicas == wanted
    assert targeted(a_set(pods(0, sick, sick), *others), wanted).replicas == wanted


def test_no_more_of_a_leaderworkerset_stay_than_serve_or_than_it_has() -> None:
    idle = (pods(0, LOADS, LOADS), pods(1, READY, READY), pods(2, LOADS, WAITS))
    assert targeted(as_one(*idle), 2).replicas == 2
    told_to_go = replace(as_one(pods(0, LOADS, LOADS), pods(1, READY, READY)), replicas=1)
    assert targeted(told_to_go, 1).replicas == 1


def test_who_stays_for_the_order_in_which_groups_go_is_told() -> None:
    seen = as_one(pods(0, LOADS, LOADS), pods(1, READY, READY))
    rollout = move([Wanted("a", 1)], Serving(sets=(seen,)), RULES, 0)
    assert rollout.message == (
        "1 of 1 replicas serve the plan; a keeps 2 groups, as a LeaderWorkerSet gives up its last ones first and one before them does not serve"
    )


def old_left(now: float, *sets: SetSeen, surge: int = 0) -> tuple[int, float | None]:
    """Groups that the old set keeps, and when that is looked at again."""
    rollout = move([Wanted("b", 2)], Serving(sets=sets), replace(RULES, surge=surge), now)
    (target,) = (one for one in rollout.targets if one.name == "a")
    return target.replicas, rollout.look_again_seconds


@pytest.mark.parametrize("sick", [LOADS, WAITS, FAILED])
def test_the_only_group_that_serves_of_an_old_leaderworkerset_stays_for_as_long_as_a_start_may_take(
    sick: Stage,
) -> None:
    """Without room, none would else ever come in its place."""
    old = as_one(pods(0, sick, sick), pods(1, READY, READY))
    new = replace(old, name="b", replicas=0, pods=(), created=1000.0)
    assert old_left(1000, old) == (2, 600), "before the new set is made"
    assert old_left(1000 + 599, old, new) == (2, 1)
    assert old_left(1000 + 600, old, new)[0] == 1
    assert old_left(1000, replace(old, pods=(*pods(0, sick, sick), *pods(1, sick, sick))), new)[0] == 1
    assert old_left(1000, replace(old, pods=(*pods(0, READY, READY), *pods(1, sick, sick))), new)[0] == 1


def test_no_rollout_waits_for_a_group_that_does_not_serve_while_others_do() -> None:
    old = as_one(pods(0, LOADS, WAITS), pods(1, READY, READY))
    new = replace(as_one(pods(0, READY, READY)), name="b", created=1000.0)
    assert old_left(1010, old, new, surge=1)[0] == 1, "one of the new set serves"
    more = as_one(*(pods(number, READY, READY) for number in (0, 2)), pods(1, WAITS, WAITS))
    assert old_left(1010, more, replace(new, replicas=0, pods=()))[0] == 2, "the first of the old set does"


def test_going_back_from_what_was_tried_keeps_its_last_group_that_serves_too() -> None:
    tried = as_one(pods(0, LOADS, LOADS), pods(1, READY, READY))
    serves = replace(as_one(pods(0, LOADS, LOADS)), name="b")
    beside = Beside(tried="a", serves="b", replicas=0, surge=False)
    rollout = move_beside([Wanted("b", 2)], beside, Serving(sets=(serves, tried)), RULES, 10)
    assert {one.name: one.replicas for one in rollout.targets} == {"b": 1, "a": 2}
