"""Engines end more requests with an error, or refuse more, than the resource promises."""

from __future__ import annotations

from typing import Final

from plimsoll.alerts.base import SWINGS, WHO, Alert, Level
from plimsoll.alerts.records import (
    ASKED,
    AVAILABILITY,
    FAILED,
    FAILED_HOUR,
    FAILURES,
    FAILURES_HOUR,
    SAME,
    lately,
)
from plimsoll.alerts.thresholds import FAILURES_LEAST

_ROOM: Final = f"{SAME} (1 - {AVAILABILITY})"
_NOW: Final = f"{FAILED} > {_ROOM} and {SAME} {FAILURES} >= {FAILURES_LEAST}"
_HOUR: Final = (
    f"{FAILED_HOUR} > {_ROOM} and {SAME} {FAILURES_HOUR} >= {FAILURES_LEAST} "
    f"and {SAME} {lately(FAILURES, '15m')} > {_ROOM} * {SAME} {lately(ASKED, '15m')}"
)
"""Where few requests come, or few fail, five minutes have too few to tell by, and the hour has enough: as long as its last quarter is no better."""

ANSWERS_FAIL: Final = Alert(
    name="AnswersFail",
    summary=f"More requests to {WHO} fail than promised.",
    description=(
        "{{ $value | humanizePercentage }} of the requests to the engines ended in an error or were refused (503, as no more may wait), in five "
        "minutes or, where few come, in an hour. That is more than the resource's own spec.slo.availabilityPercent leaves room for. The engines' logs say which error; where it began with an edit or an image, put that "
        "back. Where they are refused (llm:refused:increase5m), more replicas are needed (spec.scaling.max), or a longer queue (spec.engine.maxQueuedRequests)."
    ),
    levels=(
        Level(
            "critical",
            f"{_NOW} or ({_HOUR})",
            "5m",
            keeps=SWINGS,
        ),
    ),
)
