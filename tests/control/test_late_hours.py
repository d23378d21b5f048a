"""What hours have shown to be late, and what is made of it: room for what nobody foresees, and how busy a replica may be."""

import math
from dataclasses import replace

import pytest

from plimsoll.control import prompts
from plimsoll.control.demand import load_of
from plimsoll.control.latencies import Spread
from plimsoll.control.lateness import ALLOWED, FIRST_MINUTES, HOURS_MINUTES, Lateness
from plimsoll.control.law import LAW
from plimsoll.control.learning import learned
from plimsoll.control.memory import Learnt, LoadMemory
from plimsoll.control.need import asked
from plimsoll.control.prompts import StepMemory
from plimsoll.control.signals import LATENCY_S
from plimsoll.control.situation import Slo
from plimsoll.facts.histograms import Histogram
from plimsoll.planning.codec import decode, encode
from tests.control.situations import CAPACITY, NOW, SLO, known, serving, signals, situation, ticks

PLANNED = replace(CAPACITY, max_batched_tokens=2048)


@pytest.mark.parametrize(
    ("late", "after_s", "kept"),
    [
        (ALLOWED, 0.6, 1.0),
        (1.5 * ALLOWED, 0.6, 1.5),
        (5 * ALLOWED, 0.6, prompts.SPENT_MOST),
        (ALLOWED / 2, 0.6, 0.5),
        (0.0, 0.6, 0.0),
        (0.0, 5.0, prompts.SPENT_MOST),
    ],
    ids=[
        "at first",
        "where half as much again was late as may be",
        "where far more was late than may be",
        "where half of it was",
        "where nothing was late",
        "where nothing was late by another limit",
    ],
)
def test_room_for_what_nobody_foresees_is_kept_as_far_as_hours_have_shown_that_it_is_needed(
    late: float, after_s: float, kept: float
) -> None:
    promised = Slo(ttft_p99_s=0.6, itl_p99_s=0.1)
    there = situation(signals(2), serving(capacity=PLANNED), slo=promised)
    learnt = {"set-a": Learnt(steps=StepMemory(late=Lateness(share=late, limit_s=after_s)))}
    erratic, steady = (
        ticks(there, 2, memory=known(load=LoadMemory(surprise=by, record=by), learnt=learnt, learnt_at=NOW))
        .roles[0]
        .need.forecast
        for by in (2.0, 1.0)
    )
    holds = load_of(
        there.roles[0], known(learnt=learnt).of("serve"), now=NOW, lead_s=100, law=LAW, slo=promised
    ).holds
    assert holds.prompt is not None
    assert steady is not None
    # Bursts keep their room, whatever hours have shown.
    assert erratic == pytest.approx(max(steady, (1 + kept) * 4.0 / holds.prompt))


def test_where_no_first_token_is_promised_all_room_for_surprises_is_kept() -> None:
    role = situation(signals(2), serving(capacity=PLANNED)).roles[0]
    memory = known(learnt={"set-a": Learnt(steps=StepMemory(late=Lateness(share=0.0)))}).of("serve")
    assert load_of(role, memory, now=NOW, lead_s=100, law=LAW, slo=Slo()).holds.spent == 1


def test_a_promise_that_was_kept_for_hours_leaves_more_room_up_to_a_bound_and_one_that_was_not_the_same_as_a_new_one():
    def room(late: float) -> float:
        memory = StepMemory(lumps=4000.0, late_steady=Lateness(share=late, limit_s=2.0))
        return prompts.within_limit(memory, 8000.0, PLANNED, signals(2), 2.0)

    new = room(StepMemory().late_steady.share)
    assert new < room(0.7 * ALLOWED) < room(ALLOWED / prompts.EASE_MOST) == room(0.0)
    assert room(0.5) == new


@pytest.mark.parametrize(("slow", "risen"), [(0, False), (5, False), (20, True), (1000, True)])
def test_hours_show_how_many_first_tokens_are_late(slow: int, risen: bool):
    first = Spread.of(Histogram((0.5, 2.0, math.inf), (600.0, 1000.0 - slow, 1000.0), 400.0))
    said = replace(signals(2), latencies=replace(signals(2).latencies, ttft=first))
    new, minute = StepMemory(), StepMemory()
    for _ in range(2000):
        minute = prompts.learned(minute, said, PLANNED, settled=False, owing=False, ttft_s=2.0)
    assert (minute.late.share > new.late.share) is risen
    assert minute.late.share == pytest.approx(slow / 1000, abs=0.1 * max(new.late.share, slow / 1000))
    assert prompts.learned(new, said, PLANNED, settled=False, owing=False).late == new.late


@pytest.mark.parametrize(("settled", "owing"), [(False, False), (True, True), (True, False)])
def test_a_rush_that_nobody_foresaw_does_not_teach_how_busy_a_replica_may_be_without_one(
    *, settled: bool, owing: bool
) -> None:
    first = Spread.of(Histogram((0.5, 2.0, math.inf), (0.0, 400.0, 1000.0), 4000.0))
    said = replace(signals(2), latencies=replace(signals(2).latencies, ttft=first))
    none = Lateness(share=0.0, minutes=600, limit_s=2.0)
    before = StepMemory(late=none, late_steady=none)
    after = prompts.learned(before, said, PLANNED, settled=settled, owing=owing, ttft_s=2.0)
    assert after.late.share == pytest.approx(0.6 / HOURS_MINUTES)
    assert after.late_steady.share == (after.late.share if settled and not owing else 0.0)
    assert decode(StepMemory, encode(after)) == after


@pytest.mark.parametrize("late", [0.0, 0.5])
def test_hours_within_one_limit_say_nothing_of_another_one(late: float):
    first = Spread.of(Histogram((1.0, 2.0, math.inf), (1000.0, 1000.0, 1000.0), 400.0))
    said = replace(signals(2), latencies=replace(signals(2).latencies, ttft=first))
    before = StepMemory(late=Lateness(share=late, minutes=600, limit_s=2.0))
    same, other, new = (
        prompts.learned(memory, said, PLANNED, settled=False, owing=False, ttft_s=limit)
        for memory, limit in ((before, 2.0), (before, 1.0), (StepMemory(), 1.0))
    )
    assert same.late.share == pytest.approx(late, rel=0.01)
    assert other == new
    assert decode(StepMemory, encode(other)) == other


def test_an_hour_shows_half_of_what_is_late_and_each_minute_after_some_hours_the_same():
    none = Spread.of(Histogram((1.0, 2.0, math.inf), (1000.0, 1000.0, 1000.0), 400.0))
    said = replace(signals(2), latencies=replace(signals(2).latencies, ttft=none))
    shares = [StepMemory().late.share]
    memory = StepMemory()
    for _ in range(1000):
        memory = prompts.learned(memory, said, PLANNED, settled=False, owing=False, ttft_s=2.0)
        shares.append(memory.late.share)
    assert shares[FIRST_MINUTES] == pytest.approx(shares[0] / 2)
    assert shares[1000] == pytest.approx((1 - 1 / HOURS_MINUTES) * shares[999])
    assert memory.late.minutes < 1000, "no more is kept than is asked for"


@pytest.mark.parametrize("slow", [0, 20, 1000])
def test_hours_show_how_many_gaps_are_longer_than_promised(slow: int):
    gaps = Spread.of(Histogram((0.1, 0.3, math.inf), (500.0, 1000.0 - slow, 1000.0), 100.0))
    said = replace(signals(2), latencies=replace(signals(2).latencies, itl=gaps))
    after = StepMemory()
    for _ in range(2000):
        after = prompts.learned(after, said, PLANNED, settled=False, owing=True, itl_s=0.3)
    assert after.late_gaps.share == pytest.approx(slow / 1000, rel=0.01, abs=1e-4)
    assert after.late == StepMemory().late
    assert decode(StepMemory, encode(after)) == after
    assert (prompts.longest_gap_s(after, 0.2, 0.3) == 0.2) is (slow == 0)
    assert prompts.longest_gap_s(after, 0.2, 0.4) == 0.2, "of another limit nobody knows"


def test_too_few_first_tokens_show_nothing():
    few = Spread.of(Histogram((2.0, math.inf), (0.0, 20.0), 100.0))
    said = replace(signals(2), latencies=replace(signals(2).latencies, ttft=few))
    assert prompts.learned(
        StepMemory(), said, PLANNED, settled=False, owing=False, ttft_s=2.0
    ) == prompts.learned(StepMemory(), said, PLANNED, settled=False, owing=False)


def hours(gaps: float, firsts: float = 0.0) -> StepMemory:
    """What hours have shown of which share of each was late."""
    return StepMemory(
        late=Lateness(share=firsts, limit_s=SLO.ttft_p99_s),
        late_gaps=Lateness(share=gaps, limit_s=SLO.itl_p99_s),
    )


BORNE = pytest.mark.parametrize(
    ("itl", "ttft", "steps", "borne"),
    [
        (1.1, 0.5, hours(0.5 * ALLOWED), True),
        (1.1, 0.5, StepMemory(), False),
        (1.1, 0.5, hours(1.1 * ALLOWED), False),
        (1.3, 0.5, hours(0.0), False),
        (0.5, 1.1, hours(0.0), True),
        (1.1, 1.1, hours(0.0, 1.1 * ALLOWED), False),
        (0.5, 1.1, hours(1.1 * ALLOWED), True),
    ],
    ids=[
        "a gap, where hours had fewer late than may be",
        "a gap, and nobody has seen hours",
        "a gap, where hours had more",
        "a gap that is far beyond its limit",
        "a first token",
        "both, and hours had too many first tokens late",
        "a first token, where hours had too many gaps late",
    ],
)
"""Times their limits that both latencies are."""


@BORNE
def test_a_latency_little_beyond_its_limit_teaches_nothing_and_asks_later_where_hours_have_left_room(
    itl: float, ttft: float, steps: StepMemory, borne: bool
) -> None:
    assert Slo(ttft_p99_s=2.0, itl_p99_s=0.1) == SLO
    said = signals(4, itl=0.1 * itl, ttft=2.0 * ttft, kv=0.6, inflight=30, rate=2.0)
    learnt = {"set-a": Learnt(concurrency=45.0, steps=steps)}
    memory = replace(known(ready=4, learnt=learnt).of("serve"), since=NOW - 10_000, changed=NOW - 10_000)
    role = situation(said, serving(4)).roles[0]
    load = load_of(role, memory, now=NOW, lead_s=100, law=LAW, slo=SLO)
    shown = learned(memory, role, load, slo=SLO, now=NOW, law=LAW).learnt["set-a"].concurrency
    assert shown is not None
    assert (shown >= 45) is borne
    asks = {
        lasts: asked(
            role, replace(memory, slow_since=NOW - lasts), load, slo=SLO, now=NOW, law=LAW
        ).need.latency
        for lasts in (LAW.slow_s - 1, LAW.slow_s, LATENCY_S - 1, LATENCY_S)
    }
    more = pytest.approx(4 * max(itl, ttft)) if max(itl, ttft) < 1.25 else 5.0
    assert asks == {
        LAW.slow_s - 1: None,
        LAW.slow_s: None if borne else more,
        LATENCY_S - 1: None if borne else more,
        LATENCY_S: more,
    }
