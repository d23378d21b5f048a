"""Engines end more requests with an error than the resource promises."""

from __future__ import annotations

from typing import Final

from plimsoll.alerts.base import SWINGS, WHO, Alert, Level
from plimsoll.alerts.records import AVAILABILITY, FAILED, FINISHED, SAME
from plimsoll.alerts.thresholds import SAMPLES

ANSWERS_FAIL: Final = Alert(
    name="AnswersFail",
    summary=f"More requests to {WHO} fail than promised.",
    description=(
        "{{ $value | humanizePercentage }} of the requests that engines took ended in an error, which is more than the resource's own "
        "spec.slo.availabilityPercent leaves room for. The engines' logs say which error; where it began with an edit or an image, put that back."
    ),
    levels=(
        Level(
            "critical",
            f"{FAILED} > {SAME} (1 - {AVAILABILITY}) and {SAME} {FINISHED} >= {SAMPLES}",
            "5m",
            keeps=SWINGS,
        ),
    ),
)
