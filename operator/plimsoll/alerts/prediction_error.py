"""The engine's KV pool is another one than the plan said: capacity and scaling are computed from the wrong number."""

from __future__ import annotations

from typing import Final

from plimsoll.alerts.base import WHO, Alert, Level
from plimsoll.alerts.records import KV_TOKENS, SAME
from plimsoll.alerts.thresholds import PREDICTION

PREDICTION_ERROR: Final = Alert(
    name="PredictionError",
    summary=f"The KV pool of {WHO} is not what was planned.",
    description=(
        "The engine reports a pool that differs by {{ $value | humanizePercentage }} from the plan's. Where it is smaller, requests wait or are preempted "
        "earlier than planned. Plimsoll learns from it for the next plan; take it with the annotation plimsoll.dev/replan. "
        "Look for another process on the GPU, other arguments, or a cold compile cache."
    ),
    levels=(
        Level(
            "warning",
            f'abs({KV_TOKENS}{{source="measured"}} / {SAME} {KV_TOKENS}{{source="predicted"}} - 1) > {PREDICTION}',
            "15m",
        ),
    ),
)
