"""The engine's KV pool is smaller than the plan said: capacity and scaling are computed from a number that is too large."""

from __future__ import annotations

from typing import Final

from plimsoll.alerts.base import WHO, Alert, Level
from plimsoll.alerts.records import KV_TOKENS, READY, SAME
from plimsoll.alerts.thresholds import PREDICTION

PREDICTION_ERROR: Final = Alert(
    name="PredictionError",
    summary=f"The KV pool of {WHO} is smaller than planned.",
    description=(
        "The engine reports a pool that is {{ $value | humanizePercentage }} smaller than the plan's: requests wait or are preempted "
        "earlier than planned. Plimsoll learns from it for the next plan; take it with the annotation plimsoll.dev/replan. "
        "Look for another process on the GPU, other arguments, or a cold compile cache."
    ),
    levels=(
        Level(
            "warning",
            f'1 - {KV_TOKENS}{{source="measured"}} / {SAME} {KV_TOKENS}{{source="predicted"}} > {PREDICTION} '
            f"and {SAME} {READY} > 0",
            "15m",
        ),
    ),
)
