"""A replica on a node that is drained: one more first where there is room, and never a node that cannot be drained."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plimsoll.control.rollout import Rules, move
from plimsoll.control.rollout.beside import Beside, move_beside
from plimsoll.control.rollout.leaving import HELD_SECONDS, leave
from plimsoll.control.rollout.rules import PLACE_SECONDS
from plimsoll.control.rollout.targets import Rollout, Wanted
from plimsoll.facts.serving import PodSeen, Serving, SetSeen, Stage

NOW = 10_000.0
RULES = Rules(deadline_seconds=600)
FULL = Rules(surge=0, deadline_seconds=600)
DRAINED = "node n1, which is cordoned"


def pod(number: int, stage: Stage = Stage.READY, *, leaves: str = "", age: float = 1000.0) -> PodSeen:
    return PodSeen(
        name=f"chat-a-{number}",
        uid=str(number),
        stage=stage,
        leaves=leaves,
        created=NOW - age,
        since=NOW - age,
    )


def missed(number: int, ago: float) -> PodSeen:
    """One that has served for long, and whose engine runs on while its readiness probe fails."""
    return replace(pod(number, Stage.LOADING, age=99999), unready=NOW - ago)


def seen(*pods: PodSeen, replicas: int, each: int = 1) -> Serving:
    return Serving(sets=(SetSeen(name="chat-a", replicas=replicas, pods_per_replica=each, pods=pods),))


def moved(serving: Serving, wanted: int, rules: Rules = RULES) -> Rollout:
    return move([Wanted("chat-a", wanted)], serving, rules, NOW)


def shape(rollout: Rollout) -> tuple[str, int, int, int | None]:
    """Reason, replicas, those beyond the wanted, and the pods that stay whatever is evicted."""
    (target,) = rollout.targets
    return rollout.reason, target.replicas, target.beyond, rollout.stay


SERVES, GOES = pod(0), pod(1, leaves=DRAINED)
ALL_GO = tuple(pod(number, leaves=DRAINED) for number in range(1, 5))


@pytest.mark.parametrize(
    ("serving", "wanted", "rules", "expected"),
    [
        pytest.param(seen(SERVES, replicas=1), 1, RULES, ("RolledOut", 1, 0, None), id="nobody leaves"),
        pytest.param(seen(GOES, replicas=1), 1, RULES, ("Moving", 2, 1, None), id="one more comes first"),
        pytest.param(
            seen(GOES, pod(2, Stage.LOADING, age=9), replicas=2), 1, FULL, ("Moving", 2, 1, None),
            id="it has taken the room that it was judged by",
        ),
        pytest.param(
            seen(GOES, pod(2), replicas=2), 1, RULES, ("Moving", 2, 1, None), id="it serves, and the old one is there yet"
        ),
        pytest.param(
            seen(pod(1, Stage.LEAVING, leaves=DRAINED), pod(2), replicas=2), 1, RULES, ("RolledOut", 1, 0, None),
            id="the old one goes",
        ),
        pytest.param(seen(GOES, replicas=1), 1, FULL, ("Moving", 1, 0, 0), id="there is no room: it may go"),
        pytest.param(
            seen(SERVES, GOES, pod(2, leaves=DRAINED), replicas=3), 3, FULL, ("Moving", 3, 0, 2),
            id="there is no room: one after the other",
        ),
        pytest.param(
            seen(pod(1, Stage.LEAVING, leaves=DRAINED), *ALL_GO[1:], pod(5, Stage.LOADING, age=9), replicas=4), 4, FULL,
            ("Moving", 4, 0, 3), id="none goes while the one that came for another starts",
        ),
        pytest.param(
            seen(*ALL_GO[1:], replicas=4), 4, FULL, ("Moving", 4, 0, 3), id="nor before it is made"
        ),
        pytest.param(
            seen(*ALL_GO[1:], pod(5, Stage.UNSCHEDULED, age=PLACE_SECONDS), replicas=4), 4, FULL, ("Moving", 4, 0, 2),
            id="the one that came for another finds no node: the next may go",
        ),
        pytest.param(
            seen(*ALL_GO, pod(5, Stage.UNSCHEDULED, age=PLACE_SECONDS), replicas=5), 4, RULES, ("Moving", 5, 1, 3),
            id="the further one finds no node: one after the other",
        ),
        pytest.param(
            seen(*ALL_GO[1:], pod(5, Stage.FAILED, age=99999), replicas=4), 4, RULES, ("Moving", 4, 0, 2),
            id="another has failed long ago: one after the other",
        ),
        pytest.param(
            seen(*ALL_GO[1:], missed(5, 9), replicas=4), 4, FULL, ("Moving", 4, 0, 3),
            id="another has missed its probes for a moment: none goes",
        ),
        pytest.param(
            seen(*ALL_GO[1:], missed(5, 600), replicas=4), 4, FULL, ("Moving", 4, 0, 2),
            id="another has missed its probes for long: one after the other",
        ),
        pytest.param(
            seen(*ALL_GO[1:], replace(missed(5, 9), since=NOW - 1), replicas=4), 4, FULL, ("Moving", 4, 0, 2),
            id="another is started again and again: one after the other",
        ),
        pytest.param(
            seen(GOES, *(pod(number) for number in range(2, 6)), replicas=5), 5, FULL, ("Moving", 5, 0, 4),
            id="those elsewhere stay",
        ),
        pytest.param(
            seen(GOES, pod(2, Stage.UNSCHEDULED, age=PLACE_SECONDS), replicas=2), 1, RULES, ("Moving", 2, 1, 0),
            id="the further one finds no node",
        ),
        pytest.param(
            seen(GOES, pod(2, Stage.FAILED, age=PLACE_SECONDS + 600), replicas=2), 1, RULES, ("Moving", 2, 1, 0),
            id="the further one does not come to serve",
        ),
        pytest.param(
            seen(pod(1, Stage.LOADING, leaves=DRAINED, age=9), replicas=1), 1, RULES, ("RolledOut", 1, 0, None),
            id="who does not serve may go anyway",
        ),
        pytest.param(
            seen(pod(0, leaves=DRAINED), replicas=0), 0, RULES, ("RolledOut", 0, 0, None), id="it is stopped"
        ),
    ],
)  # fmt: skip
def test_what_a_drain_meets(
    serving: Serving, wanted: int, rules: Rules, expected: tuple[str, int, int, int | None]
) -> None:
    assert shape(moved(serving, wanted, rules)) == expected


FORGOTTEN = replace(GOES, leaves_since=NOW - HELD_SECONDS)


@pytest.mark.parametrize(
    ("serving", "wanted", "expected"),
    [
        pytest.param(seen(FORGOTTEN, replicas=1), 1, ("RolledOut", 1, 0, 0), id="it may go, should the drain come"),
        pytest.param(
            seen(FORGOTTEN, pod(2), replicas=2), 1, ("RolledOut", 1, 0, 1), id="the further one is not kept"
        ),
        pytest.param(seen(SERVES, FORGOTTEN, replicas=2), 2, ("RolledOut", 2, 0, 1), id="the others stay"),
        pytest.param(
            seen(replace(GOES, leaves_since=NOW - HELD_SECONDS + 1), replicas=1), 1, ("Moving", 2, 1, None),
            id="a drain may be going on",
        ),
        pytest.param(
            seen(FORGOTTEN, pod(0, leaves=DRAINED), replicas=2), 2, ("Moving", 3, 1, None),
            id="another node is cordoned just now",
        ),
    ],
)  # fmt: skip
def test_a_cordon_that_nobody_follows_up_holds_no_further_replica_for_ever(
    serving: Serving, wanted: int, expected: tuple[str, int, int, int | None]
) -> None:
    assert shape(moved(serving, wanted)) == expected


def test_it_looks_again_when_a_cordon_has_lasted_for_too_long() -> None:
    held = moved(seen(replace(GOES, leaves_since=NOW - 60), pod(2), replicas=2), 1)
    assert held.look_again_seconds == HELD_SECONDS - 60
    assert "nobody drained it in the 4 hours since" in moved(seen(FORGOTTEN, replicas=1), 1).message


def test_it_looks_again_when_the_further_one_is_late() -> None:
    late = moved(seen(GOES, pod(2, Stage.UNSCHEDULED, age=100), replicas=2), 1)
    assert late.look_again_seconds == PLACE_SECONDS - 100
    assert "cordoned" in late.message


@pytest.mark.parametrize(
    ("rules", "why"),
    [
        (FULL, "there is no room for one more before"),
        (Rules(surge=0, replaces=True), "replicas are replaced"),
    ],
)
def test_it_says_why_none_comes_before(rules: Rules, why: str) -> None:
    assert moved(seen(GOES, replicas=1), 1, rules).message.endswith(f"it may go first, since {why}")


def test_a_quota_that_is_used_up_holds_no_drain_up() -> None:
    (there,) = seen(*ALL_GO, replicas=5).sets
    refused = Serving(sets=(replace(there, refused="exceeded quota: gpus"),))
    assert shape(moved(refused, 4)) == ("Moving", 5, 1, 3)


def test_a_rollout_moves_replicas_off_the_node_by_itself() -> None:
    old = SetSeen(name="chat-old", replicas=1, pods=(GOES,))
    rollout = move([Wanted("chat-a", 1)], Serving(sets=(old,)), RULES, NOW)
    assert (rollout.reason, rollout.stay) == ("RollingOut", None)


def of(name: str, *pods: PodSeen, failed: str = "") -> SetSeen:
    named = tuple(replace(one, name=f"{name}-{one.uid}") for one in pods)
    return SetSeen(name=name, replicas=len(pods), pods=named, failed=failed)


OLD, NEW = of("old", GOES, pod(2), pod(3)), of("new", pod(0))
STARTS = of("new", pod(0, Stage.LOADING, age=9))
FAILED = of("new", pod(0, Stage.FAILED), failed="it ended 3 times")


@pytest.mark.parametrize(
    ("sets", "rules", "stay"),
    [
        pytest.param((OLD, NEW), Rules(hold=True), 3, id="held"),
        pytest.param((OLD, NEW), Rules(percents=(25,), hold_seconds=86_400), 3, id="canary"),
        pytest.param((OLD, of("new", GOES)), Rules(percents=(25,), hold_seconds=86_400), 3, id="canary leaves too"),
        pytest.param(
            (of("old", pod(2), pod(3), pod(4)), of("new", GOES)), Rules(hold=True), 3, id="the new one leaves"
        ),
        pytest.param((OLD, STARTS), Rules(hold=True), 3, id="one starts"),
        pytest.param((of("old", *ALL_GO), FAILED), Rules(automatic=False), 3, id="the new set failed, and a person goes back"),
        pytest.param((of("old", *ALL_GO), of("new", pod(0, Stage.UNSCHEDULED, age=99))), RULES, None, id="rolling out"),
        pytest.param(
            (of("old", *ALL_GO), of("new", pod(0, Stage.UNSCHEDULED, age=PLACE_SECONDS))), RULES, 3,
            id="rolling out, and the new one finds no node",
        ),
    ],
)  # fmt: skip
def test_a_drain_beside_another_set_takes_one_pod_and_no_further_comes(
    sets: tuple[SetSeen, ...], rules: Rules, stay: int | None
) -> None:
    rollout = move([Wanted("new", 4)], Serving(sets=sets), rules, NOW)
    assert rollout.stay == stay
    assert all(target.beyond == 0 for target in rollout.targets)


def test_a_tried_set_leaves_as_another_does_and_counts_for_what_stays() -> None:
    beside = Beside(tried="b", serves="a", replicas=1, surge=False)

    def tried(a: SetSeen, b: SetSeen, rules: Rules = RULES) -> Rollout:
        serving = Serving(sets=(a, b))
        return leave(move_beside([Wanted("a", 4)], beside, serving, rules, NOW), serving, rules, NOW)

    rollout = tried(of("a", pod(1), pod(2), pod(3)), of("b", GOES))
    assert (rollout.stay, [target.replicas for target in rollout.targets]) == (3, [3, 1])
    rollout = tried(of("a", GOES, pod(2), pod(3)), of("b", pod(1)))
    assert (rollout.stay, [target.replicas for target in rollout.targets]) == (None, [4, 1]), "one more first"
    rollout = tried(of("a", GOES, pod(2), pod(3)), of("b", pod(1)), FULL)
    assert (rollout.stay, [target.replicas for target in rollout.targets]) == (3, [3, 1])


@pytest.mark.parametrize(
    ("sets", "rules", "reason"),
    [
        pytest.param((OLD, NEW), Rules(hold=True), "Held", id="held"),
        pytest.param((OLD, NEW), Rules(percents=(25,), hold_seconds=86_400), "Canary", id="canary"),
        pytest.param((OLD, FAILED), Rules(automatic=False), "DeadlineExceeded", id="given up"),
        pytest.param((OLD, FAILED), RULES, "RolledBack", id="rolled back"),
    ],
)
def test_a_drain_hides_nothing_that_a_person_waits_for(
    sets: tuple[SetSeen, ...], rules: Rules, reason: str
) -> None:
    stays = tuple(replace(one, pods=tuple(replace(pod, leaves="") for pod in one.pods)) for one in sets)
    calm = move([Wanted("new", 4)], Serving(sets=stays), rules, NOW)
    rollout = move([Wanted("new", 4)], Serving(sets=sets), rules, NOW)
    assert (rollout.reason, rollout.message) == (calm.reason, calm.message)
    assert rollout.reason == reason
    assert rollout != calm
