"""How many looks a step up takes, at the admin's interval."""

from dataclasses import replace

import pytest

from plimsoll.control.law import Law, up_window_s
from plimsoll.control.scaling import decide
from tests.control.situations import NOW, known, signals, situation

MUCH = situation(signals(2, inflight=45, rate=5.0, kv=0.8))


@pytest.mark.parametrize(
    ("interval_s", "asked", "looks"),
    [
        *((1, None, 30), (10, None, 3), (15, None, 2), (30, None, 2), (60, None, 2), (300, None, 2)),
        *((15, 0, 1), (15, 15, 1), (15, 60, 4), (60, 30, 1), (60, 180, 3)),
    ],
)
def test_one_look_asks_for_no_replica_at_any_interval_unless_somebody_wants_it_to(
    interval_s: int, asked: int | None, looks: int
):
    law = Law(tick_s=float(interval_s))
    watched = replace(MUCH, up_window_s=up_window_s(asked, law.tick_s))
    memory, now, seen = known(seen=NOW - interval_s), NOW, 0
    while seen < 40:
        decision = decide(now=now, situation=watched, memory=memory, law=law)
        memory, now, seen = decision.memory, now + interval_s, seen + 1
        if decision.replicas > 2:
            break
    assert seen == looks


def test_a_look_that_an_alert_asked_for_makes_no_wait_shorter():
    """More was wanted from 3 s after the look before on, so no sooner than 30 s after that one."""
    calm = situation(signals(2, inflight=10, rate=1.0, kv=0.3))
    memory, came = known(seen=NOW - 15), None
    for at, seen in ((0, calm), (3, MUCH), (18, MUCH), (33, MUCH)):
        decision = decide(now=NOW + at, situation=replace(seen, up_window_s=30.0), memory=memory)
        memory = decision.memory
        if came is None and decision.replicas > 2:
            came = at
    assert came == 33
