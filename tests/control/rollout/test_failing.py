"""An engine that comes back from its death for a moment is not taken for one that serves."""

from __future__ import annotations

import pytest

from plimsoll.control.rollout.failing import STEADY_SECONDS, steady
from plimsoll.facts.serving import PodSeen, Serving, SetSeen, Stage


@pytest.mark.parametrize(
    ("restarts", "ready_for", "ready", "wait"),
    [
        (0, 1.0, 1, None),
        (1, 1.0, 0, STEADY_SECONDS - 1),
        (1, STEADY_SECONDS, 1, None),
        (7, 600.0, 1, None),
    ],
)
def test_one_that_has_died_counts_when_it_has_been_ready_for_a_while(
    restarts: int, ready_for: float, ready: int, wait: float | None
) -> None:
    now = 1000.0
    pod = PodSeen(name="a", uid="a", stage=Stage.READY, since=now - ready_for, restarts=restarts)
    shown, left = steady(Serving(sets=(SetSeen(name="a", replicas=1, pods=(pod,)),)), now)
    assert (shown.sets[0].ready, left) == (ready, wait)
