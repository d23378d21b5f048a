"""What nobody says is neither zero nor calm, wherever a decision or a sentence looks at it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from plimsoll import names
from plimsoll.control.scaling import decide
from plimsoll.control.situation import NO_LIMITS, Bounds, ReplicaState, Situation, Zero
from tests.control.situations import NOW, after, known, replicas, serving, signals, situation, ticks

WORDS = frozenset({"kv_fraction", "finished", "preemptions", "ttft", "itl"})
ABSENT: dict[str, tuple[dict[str, Any], str]] = {
    "kv_fraction": ({"kv": None}, "how much of its pool is in use"),
    "finished": ({"finished": None, "arrived": None}, "how many requests end"),
    "preemptions": ({"preemptions": None}, "whether requests are preempted"),
    "ttft": ({}, "when first tokens come"),
    "itl": ({}, "how long gaps between tokens are"),
}
"""What each figure takes from a replica's signals, and what is said of it."""
SLOW: dict[str, Any] = {"ttft": 9.0, "inflight": 2, "kv": 0.1, "rate": 0.5}


@pytest.mark.parametrize(
    ("told", "unattainable"),
    [
        ({}, True),
        ({"running": None, "waiting": None}, False),
        ({"inflight": 40}, False),
    ],
    ids=["few requests", "nobody says how many", "many requests"],
)
def test_a_limit_is_called_unattainable_only_where_few_requests_are_known_to_run(told, unattainable):
    decision = ticks(situation(signals(2, **{**SLOW, **told})), 8, memory=known(slow_since=0.0))
    said = {each.type: each.reason for each in decision.conditions}
    assert (said.get(names.SLO) == "Unattainable") is unattainable


def lacking(figure: str, words: frozenset[str] = WORDS, **told: Any) -> Situation:
    """Three replicas that have little to do, and do not say one figure."""
    absent, _ = ABSENT.get(figure, ({}, ""))
    said = signals(3, **{"inflight": 5, "inflight_most": 9.0, "rate": 0.7, "kv": 0.1, **absent, **told})
    seen = said.latencies
    latencies = {"ttft": replace(seen, ttft=None), "itl": replace(seen, itl=None)}.get(figure, seen)
    plain = situation(replace(said, latencies=latencies))
    return replace(plain, roles=(replace(plain.roles[0], exports=words),))


CALM: dict[str, Any] = {"wishes": ((NOW - 100, 1.0),), "ready": 3}


@pytest.mark.parametrize("figure", ABSENT)
def test_no_replica_goes_while_none_says_what_its_engine_has_a_word_for(figure: str):
    assert ticks(lacking("none"), 1, memory=known(**CALM)).replicas == 2
    held = ticks(lacking(figure), 1, memory=known(**CALM))
    assert held.replicas == 3
    assert f"no replica says {ABSENT[figure][1]}" in held.roles[0].message


@pytest.mark.parametrize("figure", ABSENT)
def test_what_an_engine_has_no_word_for_is_not_missed(figure: str):
    assert ticks(lacking(figure, WORDS - {figure}), 1, memory=known(**CALM)).replicas == 2


IDLE: dict[str, Any] = {"inflight": 0, "inflight_most": 0.0, "rate": 0.0}


@pytest.mark.parametrize("figure", ["finished", "preemptions", "ttft", "itl"])
def test_idle_replicas_go_though_nothing_is_counted_of_what_none_of_them_did(figure: str):
    assert ticks(lacking(figure, **IDLE), 1, memory=known(**CALM)).replicas == 2


@pytest.mark.parametrize(
    ("figure", "told"),
    [
        ("ttft", {"finished": 5.0}),
        ("itl", {"finished": 5.0}),
        ("itl", {"generation_tokens": 84.0}),
        ("itl", {"generation_tokens": None}),
    ],
    ids=["few end", "few answers end", "answers of one token", "nobody counts tokens"],
)
def test_a_p99_is_missed_only_where_so_many_requests_ended_that_there_would_be_one(figure: str, told):
    assert ticks(lacking(figure, **told), 1, memory=known(**CALM)).replicas == 2


def test_a_p99_that_nobody_promised_is_not_missed():
    for figure in ("ttft", "itl"):
        free = replace(lacking(figure), slo=NO_LIMITS)
        assert ticks(free, 1, memory=known(**CALM)).replicas == 2


@pytest.mark.parametrize("queue", range(8), ids=lambda ticks: f"{15 * (7 - ticks)} s ago")
def test_more_replicas_are_not_called_useless_while_latencies_are_of_a_queue_that_came_and_went(queue):
    calm = situation(signals(2, **SLOW))
    row = [calm] * 8
    row[queue] = situation(signals(2, **{**SLOW, "waiting": 30}))
    decision = after(*row, memory=known(slow_since=0.0))
    assert names.SLO not in {each.type for each in decision.conditions}
    later = after(*[calm] * 22, memory=decision.memory, begin=NOW + 8 * 15)
    (said,) = [each for each in later.conditions if each.type == names.SLO]
    assert "no queue for minutes: more replicas would not help" in said.message


@pytest.mark.parametrize(
    ("zero", "why"),
    [
        (Zero(waiting=0.0), "nobody asks"),
        (Zero(), "nobody asks"),
        (Zero(silent=True), "the wake query has no answer"),
    ],
    ids=["none waits", "no query", "no answer"],
)
def test_who_sleeps_is_told_that_nobody_asks_only_where_somebody_said_so(zero, why):
    asleep = situation(signals(0), serving(0), zero=zero, bounds=Bounds(min=0, max=4))
    decision = ticks(asleep, 2)
    assert decision.replicas == 0
    assert why in decision.roles[0].message


@pytest.mark.parametrize("dark_s", [45, 300, 4000], ids=["three ticks", "five minutes", "asleep for an hour"])
def test_what_came_before_an_outage_is_not_forecast_after_it(dark_s):
    """The outage of an hour is one of the operator itself, which looks no more in it."""
    busy, calm = situation(signals(2, rate=4.0)), situation(signals(2, rate=0.5))
    dark = situation(replace(busy.roles[0].signals, reachable=False, replicas=()))
    memory = after(*[busy] * 20, memory=known()).memory
    now = NOW + 20 * 15
    for _ in range(dark_s // 15 if dark_s < 600 else 0):
        memory, now = decide(now=now, situation=dark, memory=memory).memory, now + 15
    now += dark_s if dark_s >= 600 else 0
    for _ in range(2):
        decision = decide(now=now, situation=calm, memory=memory)
        memory, now = decision.memory, now + 15
    alone = ticks(calm, 2, memory=known())
    assert memory.of("serve").load.level == alone.memory.of("serve").load.level == pytest.approx(1.0)
    assert memory.of("serve").load.trend == 0.0


def starting_beside(speak: int, ready: int = 4, starting: int = 4, **told: Any) -> Situation:
    """Some of those that serve say what they have to do; further ones are on their way. No window has asked for these."""
    there = (*replicas(ready), *replicas(starting, ReplicaState.NODE_COMING, age=1000, first=ready))
    said = signals(speak, live=ready, **{"inflight": 33, "rate": 2.0, "kv": 0.3, **told})
    return situation(said, serving(replicas=there))


@pytest.mark.parametrize(
    ("speak", "told", "left", "why"),
    [
        (4, {}, 4, None),
        (3, {}, 8, "the 4 left would be 66% full, above 60%"),
        (2, {}, 8, "the 4 left would be 66% full, above 60%"),
        (3, {"inflight": 10, "rate": 0.7}, 4, None),
        (2, {"inflight": 10, "rate": 0.7}, 4, None),
    ],
    ids=[
        "all speak, and these are enough",
        "one does not, so it is full",
        "two do not, so they are full",
        "one does not, and the others are calm without it",
        "two do not, and the others are calm without them",
    ],
)
def test_replicas_that_start_stay_where_those_that_do_not_say_how_full_they_are_may_need_them(
    speak: int, told: dict[str, Any], left: int, why: str | None
) -> None:
    memory = known(ready=4, up_at=NOW - 4000, wishes=((NOW - 100, 2.6),))
    decision = ticks(starting_beside(speak, **told), 1, memory=memory)
    assert decision.replicas == left, decision.roles[0].message
    assert why is None or why in decision.roles[0].message


@pytest.mark.parametrize(
    ("starting", "why"),
    [
        (0, "up to 4 were wanted in the last 8 minutes, those among them that do not say"),
        (4, "only 1 of 4 ready replicas say how many requests they have"),
    ],
)
def test_no_replica_goes_where_fewer_than_half_say_how_many_requests_they_have(
    starting: int, why: str
) -> None:
    asked = starting_beside(1, starting=starting, inflight=1, rate=0.1, kv=0.01)
    mute = [
        replace(asked.roles[0].signals.replicas[0], replica=f"pod-{i:03}", waiting=None) for i in (1, 2, 3)
    ]
    said = replace(asked.roles[0].signals, replicas=(*asked.roles[0].signals.replicas, *mute))
    decision = ticks(
        replace(asked, roles=(replace(asked.roles[0], signals=said),)),
        1,
        memory=known(ready=4, up_at=NOW - 4000, wishes=((NOW - 100, 1.0),)),
    )
    assert decision.replicas == 4 + starting
    assert why in decision.roles[0].message


@pytest.mark.parametrize(
    ("figure", "told", "watched_s", "after"),
    [
        ("none", {}, 3600, 3),
        ("ttft", {}, 3600, 4),
        ("itl", {}, 3600, 4),
        ("ttft", {"rate": 0.01}, 3600, 3),
        ("ttft", {}, 30, 3),
    ],
    ids=[
        "all is known",
        "first tokens are not",
        "gaps are not",
        "hardly a request ends",
        "not asked for yet",
    ],
)
def test_somewhat_more_than_there_is_starts_nothing_only_where_it_is_known_that_nothing_is_late(
    figure: str, told: dict[str, Any], watched_s: float, after: int
) -> None:
    asked = lacking(figure, **{"inflight": 20, "inflight_most": 20.0, "kv": 0.74, "rate": 1.0, **told})
    decision = ticks(asked, 2, memory=known(ready=3, begun=NOW - watched_s))
    assert decision.replicas == after, decision.roles[0].message
    assert ("while nothing is late" in decision.roles[0].message) is (after == 3)


@pytest.mark.parametrize(
    ("figure", "told", "since"),
    [
        ("ttft", {"ttft": 9.0}, NOW - 300),
        ("ttft", {"ttft": 9.0, "rate": 0.01}, None),
        ("none", {"ttft": 0.5}, None),
        ("none", {"ttft": 9.0}, NOW - 300),
    ],
    ids=["not known", "hardly a request ends", "in time", "late"],
)
def test_a_look_that_does_not_know_how_late_first_tokens_are_does_not_take_them_for_in_time(
    figure: str, told: dict[str, Any], since: float | None
) -> None:
    decision = ticks(lacking(figure, **told), 1, memory=known(ready=3, slow_since=NOW - 300))
    assert decision.memory.of("serve").slow_since == since
