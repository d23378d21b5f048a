"""An engine that comes back from its death for a moment is not taken for one that serves, nor one that misses probes for one that is late."""

from __future__ import annotations

import pytest

from plimsoll.control.rollout.failing import STEADY_SECONDS, failure, look_again, steady
from plimsoll.facts.serving import Beside, PodSeen, Serving, SetSeen, Stage


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


@pytest.mark.parametrize(
    ("since", "unready", "late", "again"),
    [
        (100.0, None, True, None),
        (950.0, None, False, 550.0),
        (950.0, 100.0, False, 550.0),
        (100.0, 100.0, True, None),
        (100.0, 990.0, False, 590.0),
        (100.0, 350.0, True, None),
    ],
    ids=["it starts for long", "it starts", "it starts once more", "it was never ready", "it missed a probe", "it has missed them for long"],
)  # fmt: skip
def test_one_that_was_ready_has_as_long_to_be_so_again_as_a_start_may_take(
    since: float, unready: float | None, late: bool, again: float | None
) -> None:
    pod = PodSeen(name="a-0", uid="a", stage=Stage.LOADING, since=since, unready=unready, created=50.0)
    seen = SetSeen(name="a", replicas=1, pods=(pod,))
    assert failure(seen, 1000.0, 600) == ("a-0 was not ready within 600 s" if late else None)
    assert look_again(seen, 1000.0, 600) == again


@pytest.mark.parametrize(
    ("beside", "given_up"), [(None, True), (Beside(name="istio-proxy", restarts=9), False)]
)
def test_what_fails_beside_an_engine_that_ended_long_ago_is_no_end_of_it(
    beside: Beside | None, given_up: bool
) -> None:
    pod = PodSeen(name="a", uid="a", stage=Stage.FAILED, restarts=3, reason="CrashLoopBackOff", beside=beside)
    assert bool(failure(SetSeen(name="a", replicas=1, pods=(pod,)), 1000.0, 600)) is given_up
