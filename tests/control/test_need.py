"""What latencies and full replicas ask for: at once where half are at their limit, never much more than there is, and never twice."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plimsoll.control.law import LAW
from plimsoll.control.situation import ReplicaState, Situation
from tests.control.situations import NOW, known, replicas, serving, signals, situation, ticks


def at_their_limit(full: int, of: int) -> Situation:
    """So many replicas whose pool is full, of as many, under a load that asks for more than there are."""
    said = signals(of, inflight=48, rate=4.8)
    crowded = tuple(replace(each, kv_fraction=LAW.panic_kv) for each in said.replicas[:full])
    return situation(replace(said, replicas=(*crowded, *said.replicas[full:])))


@pytest.mark.parametrize(
    ("full", "of", "reason"),
    [(1, 2, "Panic"), (2, 3, "Panic"), (1, 3, "Rising"), (2, 4, "Panic")],
    ids=["just half", "more than half", "less than half", "two of four"],
)
def test_where_half_of_the_replicas_are_at_their_limit_no_second_look_is_waited_for(
    full: int, of: int, reason: str
) -> None:
    (role,) = ticks(at_their_limit(full, of), 1, memory=known(ready=of)).roles
    assert role.reason == reason


def test_one_step_doubles_what_is_there_or_adds_four_and_no_more() -> None:
    for there, after in ((1, 5), (3, 7), (6, 12)):
        asked = situation(signals(there, inflight=64, waiting=300.0, rate=40.0, kv=0.97))
        (role,) = ticks(asked, 1, memory=known(ready=there)).roles
        assert (role.reason, role.replicas) == ("Panic", after)
        assert role.wanted > after


def late(there: int, ttft: float, *, coming: int = 0, up_at: float | None = None) -> float | None:
    """Replicas that latencies ask for, where first tokens have come so late for minutes."""
    starting = replicas(coming, ReplicaState.STARTING, age=-40, first=there)
    each = serving(there, replicas=(*replicas(there), *starting))
    memory = known(ready=there, slow_since=NOW - 2 * LAW.slow_s, up_at=up_at)
    asked = situation(signals(there, ttft=ttft, kv=0.6), each)
    (role,) = ticks(asked, 1, memory=memory).roles
    return role.need.latency


def test_latencies_ask_for_as_many_times_what_there_is_as_they_are_beyond_their_limit_up_to_a_bound() -> None:
    assert late(8, 2.2) == pytest.approx(8 * 1.1)
    assert late(8, 2.0 * LAW.latency_most) == pytest.approx(8 * LAW.latency_most)
    assert late(8, 9.0) == pytest.approx(8 * LAW.latency_most)


def test_latencies_ask_for_no_more_while_replicas_of_the_last_step_up_are_on_their_way() -> None:
    assert late(8, 9.0, coming=1, up_at=NOW - 60) == 9
    assert late(8, 9.0, coming=1) == pytest.approx(8 * LAW.latency_most), "nobody asked for that one lately"
    assert late(8, 9.0, up_at=NOW - 60) == pytest.approx(8 * LAW.latency_most), "those have all come"
