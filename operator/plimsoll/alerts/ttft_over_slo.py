"""Users wait longer for the first token than the resource promises."""

from __future__ import annotations

from typing import Final

from plimsoll.alerts.base import SWINGS, WHO, Alert, Level
from plimsoll.alerts.records import ENOUGH, SAME, SLO, TTFT
from plimsoll.alerts.thresholds import SLO_ACT

_LIMIT: Final = f'{SLO}{{latency="ttft_p99"}}'

TTFT_OVER_SLO: Final = Alert(
    name="TTFTOverSLO",
    summary=f"The first token of {WHO} takes longer than promised.",
    description=(
        "99 of 100 take up to {{ $value | humanizeDuration }}, which is over the resource's own spec.slo. "
        "Where the queue grows, more replicas are needed (spec.scaling.max). Where it does not, prompts are long: give prefill "
        "more room (spec.workload.inputTokens as they are, so that the plan is made for them) or promise less."
    ),
    levels=(
        Level("warning", f"{TTFT} > {SAME} {_LIMIT} {ENOUGH}", "5m", "above the promise", keeps=SWINGS),
        Level(
            "critical",
            f"{TTFT} > {SAME} ({SLO_ACT} * {_LIMIT}) {ENOUGH}",
            "5m",
            f"above {SLO_ACT} times the promise",
            keeps=SWINGS,
        ),
    ),
)
