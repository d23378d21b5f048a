"""Conditions keep their time while their status stays, and only known reasons are given."""

import re

import pytest

from plimsoll import names
from plimsoll.api.conditions import REASONS, TYPES, Status, drop_condition, get_condition, set_condition
from plimsoll.api.v1alpha1 import Condition

EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"


def ready(
    status: Status, now: str, *, reason: str = "Starting", before: tuple[Condition, ...] = ()
) -> tuple[Condition, ...]:
    return set_condition(
        before, names.READY, status=status, reason=reason, message="m", now=now, generation=3
    )


def test_the_time_stays_while_the_status_stays() -> None:
    first = ready("False", EARLY)
    second = ready("False", LATE, reason="RollingOut", before=first)
    assert second[0].last_transition_time == EARLY
    assert second[0].reason == "RollingOut"


def test_the_time_moves_when_the_status_flips() -> None:
    second = ready("True", LATE, reason="Serving", before=ready("False", EARLY))
    assert second[0].last_transition_time == LATE


def test_conditions_are_sorted_so_that_equal_sets_are_equal_bytes() -> None:
    both = set_condition(
        ready("True", EARLY, reason="Serving"),
        names.FITS,
        status="True",
        reason="Fits",
        message="m",
        now=EARLY,
    )
    assert [condition.type for condition in both] == [names.FITS, names.READY]


def test_a_condition_can_be_dropped() -> None:
    assert (
        get_condition(drop_condition(ready("True", EARLY, reason="Serving"), names.READY), names.READY)
        is None
    )


@pytest.mark.parametrize(("kind", "reason"), [(names.READY, "Nonsense"), ("Nonsense", "Serving")])
def test_an_unknown_reason_is_refused(kind: str, reason: str) -> None:
    with pytest.raises(ValueError, match="no reason"):
        set_condition((), kind, status="True", reason=reason, message="m", now=EARLY)


def test_every_type_is_documented_with_reasons_in_camel_case() -> None:
    assert list(TYPES) == list(REASONS)
    for kind, reasons in REASONS.items():
        assert reasons, kind
        for word in (kind, *reasons):
            assert re.fullmatch(r"[A-Z][A-Za-z]{1,62}", word)
