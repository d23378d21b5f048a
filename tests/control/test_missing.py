"""What nobody says is neither zero nor calm, wherever a decision or a sentence looks at it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from plimsoll import names
from plimsoll.control.scaling import decide
from plimsoll.control.situation import Bounds, Zero
from tests.control.situations import NOW, after, known, serving, signals, situation, ticks

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
