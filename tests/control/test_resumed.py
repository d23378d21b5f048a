"""What nobody decided by for a while begins anew: a pause, a number that a person set, a program that was away."""

from dataclasses import replace
from typing import Any

import pytest

from plimsoll.control.law import LAW
from plimsoll.control.memory import Memory
from plimsoll.control.record import Record
from plimsoll.control.scaling import decide
from plimsoll.control.situation import Bounds, Situation
from plimsoll.control.wish import standing
from tests.control.situations import NOW, WIDE, after, known, serving, signals, situation

HELD = {
    "paused": Bounds(min=1, max=20, pause="spec.paused is true"),
    "fixed": Bounds(min=10, max=10, fixed=10),
}
CALM = situation(signals(10, inflight=5, rate=0.5), serving(10))
BUSY = situation(signals(10, inflight=30, rate=3.0), serving(10))
HOT = situation(signals(10, inflight=60, rate=6.0, kv=0.9), serving(10))


def bounded(asked: Situation, bounds: Bounds) -> Situation:
    return replace(asked, roles=(replace(asked.roles[0], bounds=bounds),))


def held(before: Situation, bounds: Bounds, ticks: int) -> tuple[Memory, float]:
    """What is remembered once so many looks decided nothing by the load, and when the next look is."""
    memory = after(*[before] * 60, memory=known(ready=10)).memory
    now = NOW + 60 * 15
    for _ in range(ticks):
        memory = decide(now=now, situation=bounded(before, bounds), memory=memory).memory
        now += 15
    return memory, now


@pytest.mark.parametrize("bounds", HELD.values(), ids=HELD)
def test_a_dip_in_which_scaling_begins_again_takes_nothing_away_before_a_window_was_watched(bounds: Bounds):
    memory, now = held(BUSY, bounds, 240)
    decision = decide(now=now, situation=bounded(CALM, WIDE), memory=memory)
    assert decision.replicas == 10
    assert "of watching" in decision.roles[0].message
    later = after(*[CALM] * 40, memory=memory, begin=now)
    assert later.replicas < 10, "but later it does"


@pytest.mark.parametrize("bounds", HELD.values(), ids=HELD)
@pytest.mark.parametrize("ticks", [1, 240], ids=["a moment", "an hour"])
def test_a_hot_look_with_which_scaling_begins_again_is_the_first_of_two(bounds: Bounds, ticks: int):
    memory = known(ready=10, over_since=NOW - 15)
    for tick in range(ticks):
        now = NOW + 15 * tick
        memory = decide(now=now, situation=bounded(HOT, bounds), memory=memory).memory
    assert memory.of("serve").over_since is None, "nobody wants more where a person says how many"
    first, second = (after(*[HOT] * looks, memory=memory, begin=now + 15) for looks in (1, 2))
    assert first.replicas == 10
    assert second.replicas > 10


def test_a_pause_of_one_look_forgets_no_window():
    memory, now = held(CALM, HELD["paused"], 1)
    assert memory.of("serve").wishes
    assert decide(now=now, situation=CALM, memory=memory).memory.of("serve").begun == NOW - 20_000


@pytest.mark.parametrize("away_s", [60.0, 300.0])
def test_a_program_that_was_away_for_minutes_goes_on_with_no_timer_of_the_load_before(away_s: float):
    timed = {"over_since": NOW - 60, "owing_since": NOW - 600, "slow_since": NOW - 600}
    memory = Record(memory=known(ready=10, **timed)).read(NOW + away_s).memory
    role = memory.of("serve")
    assert (role.over_since, role.owing_since, role.slow_since) == (None, None, None)
    assert decide(now=NOW + away_s, situation=HOT, memory=memory).replicas == 10


@pytest.mark.parametrize(
    ("exports", "wanted"), [({"finished"}, 3.0), (set(), 13.7)], ids=["counts", "gauges"]
)
def test_a_queue_at_a_first_look_is_paid_back_and_not_given_replicas_of_its_own(
    exports: set[str], wanted: float
):
    """By one look at counters no rate is known. Where no engine counts, none ever will be, and a queue alone shows that more comes than is
    answered."""
    once: dict[str, Any] = {
        "finished": None,
        "arrived": None,
        "recently": None,
        "inflight_mean": None,
        "span_s": 0.0,
    }
    seen = situation(signals(1, inflight=60, waiting=600, kv=0.6, recent_span_s=0.0, **once), serving(1))
    seen = replace(seen, roles=(replace(seen.roles[0], exports=frozenset(exports)),))
    need = after(*[seen] * 2, memory=known(ready=1)).roles[0].need
    assert need is not None
    assert need.running == pytest.approx(wanted, abs=0.1)


@pytest.mark.parametrize(
    ("looks", "asked"), [(1, 7), (29, 7), (31, 5)], ids=["one look", "nearly a window", "a whole window"]
)
@pytest.mark.parametrize(
    "away_s", [0.0, 60.0, 4000.0], ids=["no restart", "a restart", "a jump of the clock"]
)
def test_what_a_plan_has_no_gpus_for_stays_asked_for_until_a_whole_window_asked_for_less(
    away_s: float, looks: int, asked: int
) -> None:
    """The plan has five of seven that were wished, and a dip comes with the restart."""
    full, dip = (situation(signals(5, kv=kv, rate=1.0), serving(5, wanted=5)) for kv in (0.95, 0.55))
    memory, now, wish = known(ready=5), NOW, 5
    for tick in range(20 + looks):
        if tick == 20 and away_s:
            now += away_s
            memory = Record(memory=memory).unwatched(now, LAW.jump_s).memory
        seen = full if tick < 20 else dip
        decision = decide(now=now, situation=seen, memory=memory)
        memory, now = decision.memory, now + 15
        wish = standing(wish, decision.roles[0], memory.of("serve"), WIDE)
    assert wish == asked
