"""Engines end more requests with an error, or refuse more, than the resource promises."""

from __future__ import annotations

from typing import Final

from plimsoll.alerts.base import SWINGS, WHO, Alert, Level
from plimsoll.alerts.records import ASKED, AVAILABILITY, FAILED, SAME
from plimsoll.alerts.thresholds import SAMPLES

ANSWERS_FAIL: Final = Alert(
    name="AnswersFail",
    summary=f"More requests to {WHO} fail than promised.",
    description=(
        "{{ $value | humanizePercentage }} of the requests to the engines ended in an error or were refused (503, as no more may wait), which is more than the "
        "resource's own spec.slo.availabilityPercent leaves room for. The engines' logs say which error; where it began with an edit or an image, put that "
        "back. Where they are refused (llm:refused:increase5m), more replicas are needed (spec.scaling.max), or a longer queue (spec.engine.maxQueuedRequests)."
    ),
    levels=(
        Level(
            "critical",
            f"{FAILED} > {SAME} (1 - {AVAILABILITY}) and {SAME} {ASKED} >= {SAMPLES}",
            "5m",
            keeps=SWINGS,
        ),
    ),
)
