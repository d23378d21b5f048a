"""What users of other operators complained about in groups of pods, played out with a scheduler that does its worst.

Each test is named after the complaint. What a plan shows is in `tests/planning/test_complaints.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest

from plimsoll.control.rollout import Rules, move
from plimsoll.control.rollout.groups import HALF_SECONDS, told
from plimsoll.control.rollout.targets import Wanted
from plimsoll.facts.serving import PodSeen, Serving, SetSeen, Stage
from tests.control.rollout import halls

Pod = tuple[int, int]
"""Group and rank."""
RULES = Rules(deadline_seconds=1800)
TURN = 15.0
LACKS = "0/4 nodes are available: 4 Insufficient nvidia.com/gpu."


def leaders_first(pod: Pod) -> Pod:
    """Every leader gets a node before any worker does."""
    group, rank = pod
    return rank, group


def workers_first(pod: Pod) -> Pod:
    group, rank = pod
    return -rank, group


def last_group_first(pod: Pod) -> Pod:
    group, rank = pod
    return rank, -group


@dataclass
class Hall:
    """Nodes that take one pod each, and a scheduler that knows nothing of groups."""

    nodes: int
    size: int
    replicas: int
    order: Callable[[Pod], Pod]
    now: float = 0.0
    born: dict[Pod, float] = field(default_factory=dict)
    placed: dict[Pod, float] = field(default_factory=dict)
    groups: tuple[int, ...] = ()

    @property
    def whole(self) -> set[int]:
        return {
            group for group in self.groups if all((group, rank) in self.placed for rank in range(self.size))
        }

    def seen(self) -> SetSeen:
        return SetSeen(
            name="a",
            replicas=self.replicas,
            pods_per_replica=self.size,
            pods=tuple(map(self._pod, sorted(self.born))),
            groups=self.groups,
        )

    def turn(self) -> None:
        there = Serving(sets=(self.seen(),)) if self.groups else Serving()
        (target,) = move([Wanted("a", self.replicas)], there, RULES, self.now).targets
        self.groups = target.groups
        wanted = {(group, rank) for group in self.groups for rank in range(self.size)}
        self.placed = {pod: at for pod, at in self.placed.items() if pod in wanted}
        self.born = {pod: self.born.get(pod, self.now) for pod in wanted}
        for pod in sorted(wanted - set(self.placed), key=self.order)[: self.nodes - len(self.placed)]:
            self.placed[pod] = self.now
        self.now += TURN

    def _pod(self, pod: Pod) -> PodSeen:
        group, rank = pod
        node, stage = None, Stage.UNSCHEDULED
        if pod in self.placed:
            node, stage = f"node-{group}-{rank}", Stage.READY if group in self.whole else Stage.LOADING
        return PodSeen(
            name=f"a-{group}-{rank}",
            uid=f"{pod}-{self.born[pod]}",
            stage=stage,
            group=group,
            rank=rank,
            node=node,
            since=self.placed.get(pod, self.born[pod]),
            message="" if node else LACKS,
        )


@pytest.mark.parametrize("order", [leaders_first, workers_first, last_group_first])
@pytest.mark.parametrize(
    ("nodes", "size", "replicas"), [(2, 2, 2), (3, 2, 2), (4, 4, 4), (4, 2, 4), (5, 3, 3), (6, 3, 2)]
)
def test_groups_each_take_some_of_the_nodes_and_wait_for_ever(
    nodes: int, size: int, replicas: int, order: Callable[[Pod], Pod]
) -> None:
    """KAITO 2174, LeaderWorkerSet 167 and 379: without a gang, leaders had nodes and their workers never got any."""
    hall, served = Hall(nodes=nodes, size=size, replicas=replicas, order=order), set[int]()
    for _ in range(int(4 * replicas * HALF_SECONDS / TURN)):
        hall.turn()
        assert served <= hall.whole, "what serves is never let go for what waits"
        served = set(hall.whole)
    assert len(served) == min(replicas, nodes // size)


def test_leaders_hold_gpus_for_ever_while_their_workers_have_no_nodes() -> None:
    """LeaderWorkerSet 167: where there is not room for one group, the GPUs of its leader are free again for others."""
    hall = Hall(nodes=2, size=3, replicas=1, order=leaders_first)
    free = []
    for _ in range(int(3 * HALF_SECONDS / TURN)):
        hall.turn()
        free.append(hall.nodes - len(hall.placed))
    assert min(free) == 0, "it tries"
    assert max(free) == 2, "and gives back what it got"


def test_workers_wait_and_nobody_says_for_what() -> None:
    """AIBrix 2210: pods waited to become one engine without a diagnosis."""
    hall = Hall(nodes=5, size=4, replicas=2, order=leaders_first)
    hall.turn()
    said = told(hall.seen())
    assert said is not None
    assert "group 0 has nodes for 3 of its 4 pods" in said
    assert "group 1 has nodes for 2 of its 4 pods" in said
    assert LACKS in said


def test_a_rollout_in_a_full_quota_is_stuck_behind_a_replica_that_stays_gated() -> None:
    """Kueue 8769: where a quota has no room for one more, who says so by the strategy `replace` gets none."""
    rules, counts, most = Rules(surge=0, replaces=True, proven_seconds=0), {"old": 3, "new": 0}, 0
    least = 3
    for turn in range(12):
        admitted = dict(counts)
        sets = tuple(whole(name, number) for name, number in admitted.items() if number)
        rollout = move([Wanted("new", 3)], Serving(sets=sets), rules, turn * TURN)
        counts = dict.fromkeys(counts, 0) | {one.name: one.replicas for one in rollout.targets}
        most, least = max(most, sum(counts.values())), min(least, sum(counts.values()))
    assert counts == {"old": 0, "new": 3}
    assert (least, most) == (2, 3), "one goes before one comes, and no more than one"


@pytest.mark.parametrize("stage", [Stage.GATED, Stage.UNSCHEDULED])
@pytest.mark.parametrize("pods", [1, 2])
def test_a_surge_that_found_no_room_holds_the_rollout_after_the_user_wants_none(
    stage: Stage, pods: int
) -> None:
    """Kueue 8769: the strategy is set to `replace` when the rollout is stuck already."""
    waiting = tuple(
        PodSeen(name=f"new-0-{rank}", uid=f"new-0-{rank}", stage=stage, message=LACKS, group=0, rank=rank)
        for rank in range(pods)
    )
    new = SetSeen(name="new", replicas=1, pods_per_replica=pods, groups=(0,), pods=waiting)
    old = whole("old", 2)
    serving = Serving(sets=(replace(old, pods_per_replica=pods, pods=old.pods[:: 3 - pods]), new))

    def numbers(rules: Rules) -> dict[str, int]:
        return {one.name: one.replicas for one in move([Wanted("new", 2)], serving, rules, 10**6).targets}

    assert numbers(Rules(surge=1)) == {"new": 1, "old": 2}, "who wants a surge waits for its room"
    assert numbers(Rules(surge=0)) == {"new": 1, "old": 2}, "room that was there a moment ago is no wish"
    assert numbers(Rules(surge=0, replaces=True)) == {"new": 1, "old": 1}, "an old one makes room for it"
    placed = tuple(replace(pod, stage=Stage.LOADING, created=10**6, since=10**6) for pod in waiting)
    serving = Serving(sets=(serving.sets[0], replace(new, pods=placed)))
    assert numbers(Rules(surge=0, replaces=True)) == {"new": 1, "old": 2}, "one that starts is waited for"


@pytest.mark.parametrize("old", ["broken", "unpulled"])
@pytest.mark.parametrize(("nodes", "strategy"), [(3, ""), (4, ""), (4, "surge"), (3, "replace"), (9, "")])
def test_old_replicas_that_do_not_serve_block_the_edit_that_would_mend_them(
    nodes: int, strategy: str, old: str
) -> None:
    """Kthena 743: with a wrong image as many were unavailable as may be, and so none was ever replaced."""
    hall = halls.Hall(nodes, wanted=old, strategy=strategy)
    hall.run(20)
    assert (hall.ready, hall.asked) == (0, {old: 3})
    hall.wanted = "mended"
    assert hall.run(80, lambda rollout: rollout.settled).settled
    assert (hall.ready, hall.asked) == (3, {"mended": 3})


@pytest.mark.parametrize("wanted", [1, 2, 5, 8])
@pytest.mark.parametrize("strategy", ["", "surge", "replace"])
def test_an_edit_of_numbers_and_pods_at_once_makes_pods_of_the_old_kind_that_go_at_once(
    strategy: str, wanted: int
) -> None:
    """Kthena 1795: the new numbers were given to what was outdated first, whose pods were made and taken away."""
    hall = halls.Hall(9, strategy=strategy)
    hall.run(20, lambda rollout: rollout.settled)
    hall.wanted, hall.replicas = "new", wanted
    olds = []
    while not hall.turn().settled:
        olds.append(hall.asked.get("old", 0))
        hall.pass_time()
    assert olds == sorted(olds, reverse=True)
    assert max(olds) <= 3
    assert hall.made == 3 + wanted, "each is made once"


def test_the_old_pod_is_gone_and_nothing_comes_after_it() -> None:
    """Kthena 372: of one replica the old pod was deleted, and that was all."""
    hall = halls.Hall(1, replicas=1)
    hall.run(20, lambda rollout: rollout.settled)
    hall.wanted = "new"
    assert hall.run(20, lambda rollout: rollout.settled).settled
    assert (hall.ready, hall.asked["new"]) == (1, 1)


def test_a_group_that_fails_is_made_again_and_again() -> None:
    """LeaderWorkerSet PR 877 and 1048: thirty times in 90 seconds, each time with a new back-off. Here its pods stay, whose restarts
    the kubelet makes seldom, and the third end is told."""
    group, told_at = whole("a", 1), []
    for ends in range(12):
        pods = tuple(
            replace(pod, stage=Stage.FAILED, restarts=ends, reason="CrashLoopBackOff") for pod in group.pods
        )
        rollout = move(
            [Wanted("a", 1)], Serving(sets=(replace(group, pods=pods),)), RULES, HALF_SECONDS * ends
        )
        (target,) = rollout.targets
        assert target.groups == (0,), "the group is never made anew"
        if target.state == "Failed":
            told_at.append(ends)
    assert told_at == list(range(3, 12))
    assert "ended 11 times" in rollout.message


def whole(name: str, replicas: int) -> SetSeen:
    """Groups of two that serve."""
    pods = tuple(
        PodSeen(
            name=f"{name}-{group}-{rank}",
            uid=f"{name}-{group}-{rank}",
            stage=Stage.READY,
            group=group,
            rank=rank,
            node=f"node-{name}-{group}-{rank}",
        )
        for group in range(replicas)
        for rank in range(2)
    )
    return SetSeen(name=name, replicas=replicas, pods_per_replica=2, groups=tuple(range(replicas)), pods=pods)
