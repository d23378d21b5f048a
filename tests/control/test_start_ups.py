"""Which times are learned as start-ups: of a replica that comes to serve, and not of one that serves again."""

from dataclasses import replace

import pytest

from plimsoll.control.law import LAW
from plimsoll.control.learning import lead_s, started
from plimsoll.control.memory import RoleMemory
from plimsoll.control.situation import Replica, ReplicaState, Role
from tests.control.situations import NOW, serving, signals

HOURS_S = 18_000.0


def of(*listed: Replica) -> Role:
    return Role(sets=(serving(replicas=listed),), signals=signals(len(listed)))


def ready(took_s: float, *, restarts: int = 0, ago_s: float = 5.0, number: int = 0) -> Replica:
    """It has come to be ready so long ago, and so long after it got its GPUs."""
    at, since = NOW - ago_s - took_s, NOW - ago_s
    return Replica(
        id=f"pod-{number}",
        state=ReplicaState.READY,
        since=since,
        created=at - 10,
        scheduled=at,
        restarts=restarts,
    )


@pytest.mark.parametrize(
    ("replica", "until_ago_s", "starts"),
    [
        (ready(120), 60.0, (120.0,)),
        (ready(120), None, (120.0,)),
        (ready(HOURS_S), 5000.0, ()),
        (ready(HOURS_S), None, ()),
        (ready(900, restarts=1), 600.0, ()),
        (ready(900, restarts=1), None, ()),
        (ready(900, restarts=1), 950.0, (900.0,)),
        (ready(2400), 3000.0, (2400.0,)),
        (replace(ready(1200), served=True), 1080.0, ()),
        (replace(ready(1200), served=True), None, ()),
    ],
    ids=[
        "it came, and others while it started",
        "it came, and nobody has looked before",
        "it was not ready for a moment",
        "it was not, and nobody has looked before",
        "its engine ended and came back",
        "its engine did, and nobody has looked before",
        "its engine ended before it ever served",
        "a model of a terabyte",
        "it missed a probe soon after it came",
        "it did, and what was learned is lost",
    ],
)
def test_a_start_up_is_learned_of_who_comes_and_not_of_who_comes_back(
    replica: Replica, until_ago_s: float | None, starts: tuple[float, ...]
):
    before = RoleMemory(started_until=0.0 if until_ago_s is None else NOW - until_ago_s)
    found = started(before, of(replica), LAW)
    assert found.starts == starts
    assert found.started_until == replica.since, "and it is looked at once"


@pytest.mark.parametrize("restarts", [0, 1], ids=["not ready for a moment", "the engine ended"])
def test_a_node_that_is_silent_for_a_moment_makes_nobody_wait_for_half_an_hour(restarts: int):
    blip = (ready(HOURS_S, restarts=restarts, number=number) for number in range(3))
    before = RoleMemory(starts=(120.0,) * 10, started_until=NOW - 10_000)
    found = started(before, of(*blip), LAW)
    assert lead_s(found, of(), LAW) == 120.0
