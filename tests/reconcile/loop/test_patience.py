"""A condition that comes and goes from tick to tick reaches the status once it has lasted."""

from __future__ import annotations

from plimsoll import names
from plimsoll.control.decision import Told
from plimsoll.control.law import Law
from plimsoll.reconcile.loop.patience import LIMITED_S, MISSING_S, Patience

LAW = Law(tick_s=15.0)
MISSING = Told(names.METRICS, "False", "Missing", "2 of 4 ready replicas have metrics of the last minute")
FRESH = Told(names.METRICS, "True", "Fresh", "all ready replicas have fresh metrics")
LIMITED = Told(names.SCALING, "True", "AtMax", "9 replicas are wanted, 4 can be had")


def told(
    patience: Patience, *found: Told, last: tuple[Told, ...] = (), now: float, same: bool = True
) -> set[str]:
    after = patience.told(found, last, now=now, law=LAW, same_number=same)
    return {one.reason for one in after}


def test_metrics_that_are_missing_for_a_moment_leave_what_was_told_before():
    patience = Patience()
    assert told(patience, MISSING, last=(FRESH,), now=100.0) == {"Fresh"}
    assert told(patience, MISSING, last=(FRESH,), now=99.0 + MISSING_S) == {"Fresh"}
    assert told(patience, MISSING, last=(FRESH,), now=100.0 + MISSING_S) == {"Missing"}


def test_metrics_that_come_back_begin_the_wait_anew():
    patience = Patience()
    told(patience, MISSING, last=(FRESH,), now=100.0)
    assert told(patience, FRESH, last=(FRESH,), now=130.0) == {"Fresh"}
    assert told(patience, MISSING, last=(FRESH,), now=100.0 + MISSING_S) == {"Fresh"}


def test_a_clock_that_is_put_back_does_not_make_the_wait_longer():
    patience = Patience()
    told(patience, MISSING, last=(FRESH,), now=10_000.0)
    told(patience, MISSING, last=(FRESH,), now=100.0)
    assert told(patience, MISSING, last=(FRESH,), now=100.0 + MISSING_S) == {"Missing"}


def test_a_limit_that_has_just_gone_is_still_told_while_the_number_of_replicas_stays():
    patience = Patience()
    assert told(patience, LIMITED, now=100.0) == {"AtMax"}
    assert told(patience, last=(LIMITED,), now=115.0) == {"AtMax"}
    assert told(patience, last=(LIMITED,), now=115.0, same=False) == set()
    assert told(patience, last=(LIMITED,), now=100.0 + LIMITED_S) == set()
