"""Somewhat more may be wanted than there is, while nobody waits for it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from plimsoll.control.demand import weights
from plimsoll.control.law import LAW
from plimsoll.control.memory import LoadMemory, Memory
from plimsoll.control.situation import ReplicaState, Situation
from plimsoll.control.wish import standing
from tests.control.situations import CAPACITY, NOW, WIDE, after, known, replicas, serving, signals, situation

FOUR = known(ready=4)
CALM: dict[str, Any] = {"rate": 1.0, "inflight": 20.0}


def wanting(kv: float, **more: Any) -> Situation:
    """Four replicas whose pools are so full; of the law's 70% that is how many are wanted."""
    return situation(signals(4, kv=kv, **{**CALM, **more}), serving(4))


def seen(*situations: Situation, memory: Memory = FOUR):
    return after(*situations, memory=memory).roles[0]


@pytest.mark.parametrize(
    ("kv", "replicas"),
    [(0.70, 4), (0.72, 4), (0.76, 4), (0.78, 5), (0.86, 5), (0.94, 5), (0.97, 6)],
)
def test_a_tenth_more_than_there_is_starts_nothing_and_beyond_it_as_many_come_as_bear_it(
    kv: float, replicas: int
):
    assert seen(*3 * [wanting(kv)]).replicas == replicas


def test_what_is_borne_is_said_and_asks_for_no_more_than_there_is():
    role = seen(*3 * [wanting(0.76)])
    assert (role.reason, role.wanted) == ("Enough", 4)
    assert role.message == (
        "wanted are 4.4 by tokens in the pool, 2.3 by requests in flight, 2.4 by the load 180 s ahead; up to 10% more than there is starts nothing, "
        "while nothing is late and the load does not rise"
    )


@pytest.mark.parametrize(
    ("calm", "late"),
    [
        ({"kv": 0.3, "rate": 4.2}, {"waiting": 3}),
        ({"kv": 0.76}, {"kv": 0.96, "inflight": 5.0}),
        ({"kv": 0.76}, {"ttft": 2.1}),
        ({"kv": 0.76}, {"itl": 0.11}),
    ],
    ids=["a queue", "half at their limit", "first tokens", "gaps"],
)
def test_nothing_is_borne_where_something_is_late(calm: dict[str, Any], late: dict[str, Any]):
    slow = known(ready=4, slow_since=NOW - 300, since=NOW - 9000)
    four, memory = serving(4), slow if "waiting" not in late else FOUR
    calm = CALM | calm
    assert seen(*3 * [situation(signals(4, **calm), four)], memory=FOUR).replicas == 4
    assert seen(*3 * [situation(signals(4, **calm | late), four)], memory=memory).replicas > 4


@pytest.mark.parametrize(
    ("queue", "known_since"),
    [(lambda look: 4 if look % 12 == 0 else 0, 9000.0), (lambda look: 0, 10.0)],
    ids=["a queue now and then", "others that have just come"],
)
def test_what_was_late_in_the_last_minutes_is_late_though_nobody_knows_yet_whose_doing_it_is(
    queue: Callable[[int], int], known_since: float
):
    looks = [wanting(0.76, ttft=2.1, waiting=queue(look)) for look in range(1, 4)]
    since = NOW - known_since
    assert seen(*looks, memory=known(ready=4, since=since, changed=since)).replicas == 5


@pytest.mark.parametrize(("trend", "replicas"), [(0.0, 4), (0.001, 4), (0.01, 5)])
def test_nothing_is_borne_where_the_load_rises_by_as_much_until_another_one_would_serve(
    trend: float, replicas: int
):
    rising = LoadMemory(at=NOW - 15, level=4.0, trend=trend, most=8.0, rush=8.0)
    role = seen(
        *3 * [wanting(0.76)], memory=Memory(roles={"serve": replace(FOUR.roles["serve"], load=rising)})
    )
    assert role.replicas == replicas


def test_one_that_is_on_its_way_bears_it_too():
    coming = serving(5, replicas=(*replicas(4), *replicas(1, ReplicaState.STARTING, age=20, first=4)))
    asked = seen(*3 * [situation(signals(4, kv=0.93, **CALM), coming)])
    assert asked.replicas == 5


def test_what_is_borne_keeps_those_that_are_there():
    """For as long as the window is: what a tenth less would ask for takes none of them away."""
    hour = [wanting(0.76)] * (int(LAW.down_window_s // 15) + 40)
    assert seen(*hour).replicas == 4


def test_those_that_were_borne_are_said_to_be_all_that_there_are_and_not_more():
    role = seen(*3 * [wanting(0.76)], wanting(0.60))
    assert role.message.endswith("none is taken away: all 4 were wanted in the last 8 minutes")


def test_of_a_set_that_carries_more_than_the_first_no_fewer_stay_asked_for_than_bear_it():
    """Four of the second carry as twelve of the first, and two were asked for before the load came back."""
    larger = replace(CAPACITY, kv_tokens=300_000, concurrency=150, requests_per_second=15.0, max_num_seqs=192)
    sets = serving(0, name="a", replicas=(), wanted=0), serving(4, name="b", capacity=larger, wanted=4)
    full = signals(4, kv=0.73, rate=3.0, inflight=60.0, kv_tokens=300_000)
    decision = after(*3 * [situation(full, *sets)], memory=FOUR)
    role = decision.roles[0]
    assert (role.reason, role.wanted) == ("Enough", 12)
    assert standing(2, role, decision.memory.of("serve"), WIDE, weights(sets)) == 4
