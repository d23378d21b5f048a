"""Replicas move between sets in a small world that does what it is told: pods start, become ready, fail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.control.rollout import Rules, move
from plimsoll.control.rollout.targets import Rollout, Wanted
from plimsoll.facts.serving import PodSeen, Serving, SetSeen, Stage

START = 60.0
RULES = Rules(deadline_seconds=600)


@dataclass
class World:
    """Sets by name; a new pod loads for a minute, and is ready unless its set is broken."""

    serving: Serving
    now: float = 1000.0
    broken: frozenset[str] = frozenset()
    stuck: frozenset[str] = frozenset()
    fewest_ready: int = 10**6
    most: int = 0

    def turn(self, wanted: Sequence[Wanted], rules: Rules = RULES) -> Rollout:
        rollout = move(wanted, self.serving, rules, self.now)
        marks = dict(rollout.failed)
        sets = []
        for target in rollout.targets:
            seen = self.serving.set_named(target.name) or SetSeen(
                name=target.name, replicas=0, created=self.now
            )
            keep = sorted(seen.pods, key=lambda pod: pod.stage is not Stage.READY)[: target.replicas]
            names = (
                f"{target.name}-{n}" for n in count() if f"{target.name}-{n}" not in {p.name for p in keep}
            )
            keep += [
                PodSeen(name=name, uid=name, stage=Stage.LOADING, created=self.now, since=self.now)
                for name, _ in zip(names, range(target.replicas - len(keep)), strict=False)
            ]
            failed = marks.get(target.name, seen.failed)
            sets.append(replace(seen, replicas=target.replicas, pods=tuple(keep), failed=failed))
        self.serving = Serving(sets=tuple(sets))
        self.most = max(self.most, sum(seen.replicas for seen in sets))
        self.fewest_ready = min(self.fewest_ready, self.ready)
        return rollout

    def pass_time(self, seconds: float = START) -> None:
        self.now += seconds
        sets = [
            replace(seen, pods=tuple(self._later(seen.name, pod) for pod in seen.pods))
            for seen in self.serving.sets
        ]
        self.serving = Serving(sets=tuple(sets))

    def _later(self, name: str, pod: PodSeen) -> PodSeen:
        if pod.stage is Stage.READY or name in self.stuck:
            return pod
        if name in self.broken:
            return replace(pod, stage=Stage.FAILED, restarts=pod.restarts + 1, reason="CrashLoopBackOff")
        return replace(pod, stage=Stage.READY, since=self.now)

    def settle(self, wanted: Sequence[Wanted], rules: Rules = RULES, turns: int = 100) -> Rollout:
        rollout = self.turn(wanted, rules)
        for _ in range(turns):
            self.pass_time()
            rollout = self.turn(wanted, rules)
        return rollout

    @property
    def ready(self) -> int:
        return sum(seen.ready for seen in self.serving.sets)

    @property
    def replicas(self) -> dict[str, int]:
        return {seen.name: seen.replicas for seen in self.serving.sets}


def serving(name: str, replicas: int) -> World:
    world = World(Serving())
    world.settle([Wanted(name, replicas)], turns=3)
    world.fewest_ready = world.ready
    world.most = replicas
    return world


def test_the_first_plan_gets_its_numbers_at_once() -> None:
    assert [(t.name, t.replicas) for t in move([Wanted("a", 3)], Serving(), RULES, 0).targets] == [("a", 3)]


def test_a_surge_serves_with_no_replica_fewer_and_takes_one_more() -> None:
    world = serving("a", 3)
    rollout = world.settle([Wanted("b", 3)])
    assert (world.replicas, rollout.settled) == ({"b": 3}, True)
    assert (world.fewest_ready, world.most) == (3, 4)


def test_a_full_cluster_gives_the_old_replica_away_first() -> None:
    world = serving("a", 3)
    rollout = world.settle([Wanted("b", 3)], Rules(surge=0))
    assert (world.replicas, rollout.settled) == ({"b": 3}, True)
    assert (world.fewest_ready, world.most) == (2, 3)


def test_the_only_replica_of_a_full_cluster_moves_too() -> None:
    world = serving("a", 1)
    assert world.settle([Wanted("b", 1)], Rules(surge=0)).settled


def test_the_old_set_stays_whole_while_the_new_one_does_not_serve() -> None:
    world = serving("a", 2)
    world.stuck = frozenset({"b"})
    world.turn([Wanted("b", 2)])
    world.pass_time(30)
    world.turn([Wanted("b", 2)])
    assert world.replicas == {"a": 2, "b": 1}


def test_a_replica_that_has_been_ready_for_a_moment_takes_no_old_one_away() -> None:
    world = serving("a", 1)
    world.turn([Wanted("b", 1)])
    world.pass_time()
    rollout = world.turn([Wanted("b", 1)])
    assert (world.replicas, rollout.look_again_seconds) == ({"a": 1, "b": 1}, 10)
    world.now += 10
    world.turn([Wanted("b", 1)])
    assert world.replicas == {"a": 0, "b": 1}


def test_a_new_set_whose_engine_dies_is_given_up_and_the_old_one_serves() -> None:
    world = serving("a", 2)
    world.broken = frozenset({"b"})
    rollout = world.settle([Wanted("b", 2)])
    assert (world.replicas, world.fewest_ready) == ({"a": 2, "b": 0}, 2)
    assert rollout.reason == "RolledBack"
    assert "CrashLoopBackOff" in rollout.message
    assert not rollout.settled


def test_a_set_is_marked_as_failed_once() -> None:
    world = serving("a", 1)
    world.broken = frozenset({"b"})
    marks: list[tuple[str, str]] = []
    for _ in range(10):
        marks += world.turn([Wanted("b", 1)]).failed
        world.pass_time()
    assert [name for name, _ in marks] == ["b"]


def test_a_set_that_is_late_is_given_up_too() -> None:
    world = serving("a", 1)
    world.stuck = frozenset({"b"})
    world.turn([Wanted("b", 1)])
    world.pass_time(601)
    assert world.turn([Wanted("b", 1)]).reason == "RolledBack"


def test_with_manual_rollback_the_failure_is_told_and_both_sets_stay() -> None:
    world = serving("a", 2)
    world.broken = frozenset({"b"})
    rollout = world.settle([Wanted("b", 2)], Rules(automatic=False))
    assert (world.replicas, rollout.reason) == ({"a": 2, "b": 1}, "DeadlineExceeded")


def test_waiting_for_gpus_is_no_failure_however_long_it_takes() -> None:
    pods = (PodSeen(name="p", uid="p", stage=Stage.UNSCHEDULED, reason="Unschedulable"),)
    sets = (SetSeen(name="a", replicas=1, pods=pods),)
    assert not move([Wanted("a", 1)], Serving(sets=sets), RULES, 10**9).failed


def test_with_nothing_to_go_back_to_a_failing_set_is_told_and_kept() -> None:
    world = World(Serving(), broken=frozenset({"a"}))
    rollout = world.settle([Wanted("a", 2)])
    assert (world.replicas, rollout.reason) == ({"a": 2}, "DeadlineExceeded")
    assert [target.state for target in rollout.targets] == ["Failed"]


def test_a_third_plan_after_a_failed_one_is_tried() -> None:
    world = serving("a", 2)
    world.broken = frozenset({"b"})
    world.settle([Wanted("b", 2)])
    assert world.settle([Wanted("c", 2)]).settled
    assert (world.replicas, world.fewest_ready) == ({"c": 2}, 2)


@pytest.mark.parametrize("turns", range(12))
def test_going_back_in_the_middle_never_takes_away_what_serves(turns: int) -> None:
    world = serving("a", 4)
    for _ in range(turns):
        world.turn([Wanted("b", 4)])
        world.pass_time(40)
    rollout = world.settle([Wanted("a", 4)])
    assert (world.replicas, rollout.settled, world.fewest_ready) == ({"a": 4}, True, 4)


def test_a_canary_waits_at_each_step() -> None:
    world = serving("a", 10)
    rules = Rules(percents=(10, 50), hold_seconds=300)
    seen = []
    for _ in range(40):
        world.turn([Wanted("b", 10)], rules)
        seen.append(world.replicas.get("b", 0))
        world.pass_time()
    assert seen[:5] == [1, 1, 1, 1, 1]
    assert 5 in seen
    assert seen.count(5) >= 5
    assert world.replicas == {"b": 10}
    assert world.fewest_ready == 10


def test_a_canary_says_when_to_look_again() -> None:
    world = serving("a", 10)
    rules = Rules(percents=(10,), hold_seconds=300)
    world.turn([Wanted("b", 10)], rules)
    world.pass_time()
    world.now += 20
    assert world.turn([Wanted("b", 10)], rules).look_again_seconds == 280


def test_hold_stops_where_the_rollout_stands() -> None:
    world = serving("a", 4)
    world.turn([Wanted("b", 4)])
    world.pass_time()
    world.turn([Wanted("b", 4)])
    stands = dict(world.replicas)
    rollout = world.settle([Wanted("b", 4)], Rules(hold=True), turns=5)
    assert (sum(world.replicas.values()), world.replicas["b"]) == (4, stands["b"])
    assert rollout.reason == "Held"


def test_a_held_replica_that_loads_is_not_told_as_one_that_moved() -> None:
    world = serving("a", 2)
    world.stuck = frozenset({"b"})
    world.turn([Wanted("b", 2)])
    moving, held = (world.turn([Wanted("b", 2)], replace(RULES, hold=hold)).message for hold in (False, True))
    assert moving == "0 of 2 replicas are on the new set, 2 on the old"
    assert held == f"{moving}; spec.rollout.hold is true"


def test_a_smaller_number_during_a_rollout_leaves_no_surplus() -> None:
    world = serving("a", 6)
    world.turn([Wanted("b", 6)])
    world.pass_time()
    assert world.settle([Wanted("b", 2)]).settled
    assert world.replicas == {"b": 2}


def test_zero_replicas_end_both_sets() -> None:
    world = serving("a", 3)
    world.turn([Wanted("b", 3)])
    world.settle([Wanted("b", 0)])
    assert sum(world.replicas.values()) == 0


def test_groups_keep_the_numbers_of_those_that_serve() -> None:
    def pods(number: int, stage: Stage) -> tuple[PodSeen, ...]:
        return tuple(PodSeen(name=f"{number}-{r}", uid="", stage=stage, group=number, rank=r) for r in (0, 1))

    seen = SetSeen(
        name="a",
        replicas=3,
        pods_per_replica=2,
        groups=(0, 1, 4),
        pods=(*pods(0, Stage.LOADING), *pods(1, Stage.READY), *pods(4, Stage.READY)),
    )

    def numbers(replicas: int) -> tuple[int, ...]:
        return move([Wanted("a", replicas)], Serving(sets=(seen,)), RULES, 0).targets[0].groups

    assert [numbers(2), numbers(3), numbers(5)] == [(1, 4), (0, 1, 4), (0, 1, 2, 3, 4)]


def test_a_surge_whose_replica_took_the_last_room_goes_on_as_a_surge() -> None:
    world = serving("a", 1)
    world.turn([Wanted("b", 1)], Rules(surge=1))
    assert world.replicas == {"a": 1, "b": 1}
    world.now += 5
    world.turn([Wanted("b", 1)], Rules(surge=0))
    assert world.replicas == {"a": 1, "b": 1}
    assert world.settle([Wanted("b", 1)], Rules(surge=0)).settled
    assert world.fewest_ready == 1


@pytest.mark.parametrize("wanted", [0, 1, 2, 4])
def test_after_a_rollback_the_number_is_obeyed(wanted: int) -> None:
    world = serving("a", 2)
    world.broken = frozenset({"b"})
    world.settle([Wanted("b", 2)])
    world.settle([Wanted("b", wanted)])
    assert world.replicas.get("a", 0) == wanted


def test_what_was_come_back_to_sleeps_and_is_what_wakes() -> None:
    world = serving("a", 2)
    world.broken = frozenset({"b"})
    world.settle([Wanted("b", 2)])
    asleep = world.settle([Wanted("b", 0)])
    assert (asleep.reason, world.replicas) == ("RolledBack", {"a": 0, "b": 0})
    world.settle([Wanted("b", 1)])
    assert world.replicas == {"a": 1, "b": 0}


def test_what_was_come_back_to_is_not_the_plan() -> None:
    world = serving("a", 2)
    world.broken = frozenset({"b"})
    rollout = world.settle([Wanted("b", 2)])
    assert {target.name: target.planned for target in rollout.targets} == {"a": False, "b": False}


plans = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(0, 6), st.booleans(), st.integers(1, 4)),
    min_size=1,
    max_size=6,
)


@given(plans, st.sampled_from([0, 1, 2]), st.sets(st.sampled_from("abc"), max_size=2))
def test_whatever_is_asked_on_the_way_it_ends_at_the_last_plan_or_at_one_that_serves(
    plans: list[tuple[str, int, bool, int]], surge: int, broken: set[str]
) -> None:
    world = World(Serving(), broken=frozenset(broken))
    rules = Rules(surge=surge, step=1)
    for name, replicas, _, turns in plans:
        for _ in range(turns):
            rollout = world.turn([Wanted(name, replicas)], rules)
            assert all(target.replicas >= 0 for target in rollout.targets)
            assert len({target.name for target in rollout.targets}) == len(rollout.targets)
            world.pass_time(40)
    name, replicas, _, _ = plans[-1]
    rollout = world.settle([Wanted(name, replicas)], rules, turns=30)
    again = move([Wanted(name, replicas)], world.serving, rules, world.now)
    assert {t.name: t.replicas for t in again.targets} == world.replicas
    if name not in broken:
        assert rollout.settled
        assert world.replicas == {name: replicas}
