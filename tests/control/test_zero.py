"""Who was woken is left alone for a while."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import pytest

from plimsoll.control.situation import Bounds, Zero
from tests.control.situations import NOW, after, known, signals, situation

QUIET: Final[dict[str, Any]] = {"inflight": 0, "kv": 0.0, "rate": 0.0}


def awake(after_s: float, starts: tuple[float, ...]) -> float:
    """For how long one stays that was woken just now, though nobody asked for days."""
    asleep = Zero(after_s=after_s, waiting=0.0, idle_s=200_000.0)
    quiet = replace(situation(signals(1, **QUIET), bounds=Bounds(min=0, max=4)), zero=asleep)
    memory, now = known(begun=NOW, woken_at=NOW, starts=starts), NOW
    while (decision := after(quiet, memory=memory, begin=now)).replicas:
        memory, now = decision.memory, now + 15
    return now - NOW


@pytest.mark.parametrize(
    ("after_s", "start_s", "stays_s"),
    [(60, 20, 90), (60, 100, 300), (900, 100, 900), (900, 400, 1200), (7200, 100, 7200)],
    ids=[
        "the least that a start counts",
        "three starts",
        "as long as idleness is waited for",
        "three slow starts",
        "hours",
    ],
)
def test_a_replica_that_was_woken_stays_as_long_as_idleness_is_waited_for_and_for_three_starts(
    after_s: float, start_s: float, stays_s: float
) -> None:
    assert awake(after_s, (start_s,) * 10) == pytest.approx(stays_s, abs=15)
