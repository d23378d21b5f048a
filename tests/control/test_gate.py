"""What is told where metrics are missing sends nobody to look in the wrong place."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from plimsoll.control.gate import OUTAGE, SILENT, gate_of, lasting
from plimsoll.control.law import Law
from tests.control.situations import NOW, signals

HELD = "; the number of replicas is held and nothing is retuned"


LATE, AHEAD = "more than 60 s old", "more than 60 s ahead of the operator's clock"


@pytest.mark.parametrize(
    ("spoke", "said", "reason", "message"),
    [
        (0, {"late": 3}, "OutOfDate", f"the newest samples of 3 of 3 ready replicas are {LATE}, and count as none"),
        (0, {"late": 2}, "OutOfDate", f"the newest samples of 2 of 3 ready replicas are {LATE}, and count as none"),
        (1, {"late": 1}, "OutOfDate", f"the newest samples of 1 of 3 ready replicas are {LATE}, and count as none"),
        (0, {"ahead": 3}, "OutOfDate", f"the newest samples of 3 of 3 ready replicas are {AHEAD}, and count as none"),
        (
            0, {"late": 1, "ahead": 1}, "OutOfDate",
            f"the newest samples of 1 of 3 ready replicas are {LATE} and those of 1 of 3 ready replicas are {AHEAD}, and count as none",
        ),
        (1, {}, "Missing", "1 of 3 ready replicas have metrics of the last minute"),
        (
            0, {"late": 1}, "Missing",
            f"0 of 3 ready replicas have metrics of the last minute; the newest samples of 1 of 3 ready replicas are {LATE}",
        ),
    ],
)  # fmt: skip
def test_samples_that_come_too_late_are_told_from_those_that_never_come(
    spoke: int, said: dict[str, Any], reason: str, message: str
) -> None:
    gate = gate_of(replace(signals(spoke, live=3), **said), Law())
    assert (gate.open, gate.told.reason, gate.told.message) == (False, reason, message + HELD)
    assert gate.told.reason in SILENT


def test_who_gets_old_samples_for_long_is_sent_to_look_at_how_often_they_are_scraped_and_at_the_clocks() -> (
    None
):
    dark = gate_of(replace(signals(0, live=3), late=3), Law()).told
    told = lasting(dark, NOW - 3600, NOW, Law())
    assert told.reason == OUTAGE
    assert LATE in told.message
    for cause in ("how often", "behind", "clocks"):
        assert cause in told.message
    assert "allowFrom" not in told.message


@pytest.mark.parametrize(
    ("silent", "status", "reason"), [(1, "True", "Fresh"), (2, "False", "Missing"), (3, "False", "Missing")]
)
def test_where_most_do_not_say_how_many_requests_they_have_that_is_told_as_missing_though_other_figures_come(
    silent: int, status: str, reason: str
) -> None:
    """More may still be asked for by what they do say."""
    said = signals(3)
    mute = tuple(
        replace(one, waiting=None) if place < silent else one for place, one in enumerate(said.replicas)
    )
    gate = gate_of(replace(said, replicas=mute), Law())
    assert (gate.open, gate.missing, gate.told.status, gate.told.reason) == (True, silent, status, reason)
    assert gate.retunes is (status == "True"), "the alert on this condition says that nothing is retuned"
    assert ("nothing is retuned" in gate.told.message) is (status == "False")
    assert (
        f"{silent} of 3 ready replicas do not say how many requests they have; they count as full"
        in gate.told.message
    )
