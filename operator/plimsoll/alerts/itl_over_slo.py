"""Tokens come slower, or with longer gaps, than the resource promises."""

from __future__ import annotations

from typing import Final

from plimsoll.alerts.base import SWINGS, WHO, Alert, Level
from plimsoll.alerts.records import ENOUGH, ITL, SAME, SLO
from plimsoll.alerts.thresholds import SLO_ACT

_LIMIT: Final = f'{SLO}{{latency="itl_p99"}}'

ITL_OVER_SLO: Final = Alert(
    name="ITLOverSLO",
    summary=f"Gaps between tokens of {WHO} last longer than promised.",
    description=(
        "99 of 100 take up to {{ $value | humanizeDuration }}, which is over the resource's own spec.slo. "
        "Too many requests run at once, long prompts cut in, or preempted answers stand still: Preemption and PrefillContention tell "
        "these apart. Fewer sequences (let retuning work: spec.tuning.mode auto), more replicas (spec.scaling.max), or promise less."
    ),
    levels=(
        Level("warning", f"{ITL} > {SAME} {_LIMIT} {ENOUGH}", "5m", "above the promise", keeps=SWINGS),
        Level(
            "critical",
            f"{ITL} > {SAME} ({SLO_ACT} * {_LIMIT}) {ENOUGH}",
            "5m",
            f"above {SLO_ACT} times the promise",
            keeps=SWINGS,
        ),
    ),
)
